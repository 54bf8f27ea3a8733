package cli

import (
	"bufio"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestReaderGone: a reader that has seen enough, as head, ends an export quietly.
func TestReaderGone(t *testing.T) {
	needs.Slow(t)
	for name, flags := range map[string][]string{
		"whole": nil, "JSON log": {"--log-format", "json"}, "its head": {"--limit", "4000"},
	} {
		t.Run(name, func(t *testing.T) {
			service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{
				formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: 5000, Seed: 1}),
			}}
			server := httptest.NewServer(service)
			defer server.Close()
			p := command(t, t.TempDir(), testKey, append(append([]string{"export", "--form", "form1"}, serviceArgs(server.URL)...), flags...)...)
			p.Stdout = nil
			out, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReaderSize(out, 16).ReadString(',')
			if err != nil || line != "result_id," {
				t.Errorf("%q, %v", line, err)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			if code := p.code(t, p.Wait()); code != console.ExitOK || strings.Contains(p.stderr.String(), "pipe") {
				t.Errorf("ended with %d: %s", code, &p.stderr)
			}
		})
	}
}
