package cli

import (
	"bufio"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
)

// TestReaderGone: a reader that has seen enough, as head, ends an export quietly.
func TestReaderGone(t *testing.T) {
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

// TestFullStdout exports to a device that is full.
func TestFullStdout(t *testing.T) {
	_, server := newService(testKey, largeForm("form1", 500))
	defer server.Close()
	for _, format := range []string{"csv", "ndjson", "parquet"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := command(t, t.TempDir(), testKey, append([]string{"export", "--form", "form1", "--format", format}, serviceArgs(server.URL)...)...)
		p.Stdout = full
		if code := p.code(t, p.Run()); code != console.ExitIO || !strings.Contains(p.stderr.String(), "no space left") {
			t.Errorf("%s ends with %d: %s", format, code, &p.stderr)
		}
		_ = full.Close() // nothing was written
	}
}
