package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/formservice"
)

// TestForeignAnswers: a redirect or a web page among the answers of a service is a fault
// that passes, however long it lasts. Where no answer was ever the service's, the base URL
// is wrong.
func TestForeignAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  formservice.Faults
		from    int64 // the first request that meets it
		through int64 // and the last
		code    int
		says    string
	}{
		{"a redirect", formservice.Faults{Redirect: 1}, 5, 5, exit.OK, ""},
		{"a page", formservice.Faults{HTML: 1, HTMLStatus: 200}, 5, 5, exit.OK, ""},
		{"a redirect at first", formservice.Faults{Redirect: 1}, 1, 1, exit.OK, ""},
		{"redirects to the end", formservice.Faults{Redirect: 1}, 5, 1000, exit.Temporary, "run the same command again later"},
		{"pages to the end", formservice.Faults{HTML: 1, HTMLStatus: 200}, 5, 1000, exit.Temporary, "run the same command again later"},
		{"redirects alone", formservice.Faults{Redirect: 1}, 1, 1000, exit.Config, "the service's own address"},
		{"pages alone", formservice.Faults{HTML: 1, HTMLStatus: 200}, 1, 1000, exit.Config, "the service's own address"},
	} {
		for _, api := range []string{formservice.V1, formservice.V2} {
			t.Run(c.name+" "+api, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				service, server := newService(testKey, largeForm("form1", 600))
				defer server.Close()
				var asked atomic.Int64
				service.Before = func(formservice.Request) {
					switch n := asked.Add(1); n {
					case c.from:
						service.SetFaults(c.faults)
					case c.through + 1:
						service.SetFaults(formservice.Faults{})
					}
				}
				file := write(t, dir, "foreign.yaml", fmt.Sprintf("version: 1\nname: foreign\n"+
					"source: {base_url: %q, account: acme, timezone: UTC, api: %s, requests: {retries: 2, concurrency: 1}}\n"+
					"forms: [form1]\nextract: {from: 2025-01-01, to: 2025-02-01, window: 1d}\nload: [{path: form1.csv}]\n", server.URL, api))
				var stdout, stderr bytes.Buffer
				code := Main([]string{"run", file}, strings.NewReader(""), &stdout, &stderr, environ(dir, never))
				_, err := os.Stat(filepath.Join(dir, "form1.csv"))
				if code != c.code || !strings.Contains(stderr.String(), c.says) || (err == nil) != (code == exit.OK) {
					t.Errorf("ended with %d, want %d, %v:\n%s", code, c.code, err, &stderr)
				}
			})
		}
	}
}
