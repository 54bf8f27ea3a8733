package cli

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
)

// keptForm is a form of ten results on each of twelve days of January 2026.
func keptForm() *formservice.Form {
	results := make([]formservice.Result, 0, 120)
	for i := range 120 {
		at := time.Date(2026, 1, 1+i/10, 9+i%10, 0, 0, 0, time.UTC)
		results = append(results, formservice.Result{
			ID:    int64(i + 1),
			Metas: []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}},
			Items: []formservice.Answer{{ID: "1", Values: []string{strconv.Itoa(i)}}},
		})
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	form.Metas = []string{"date_finish"}
	return form
}

// TestStopTellsWhatIsKept stops commands in the middle. What they say of what they keep is what
// the next one does not ask for again. An export says in its first line what it takes over, and
// takes nothing over with --fresh or for another file. pipelines' TestResumeWithin shows that it
// takes nothing over after an hour.
func TestStopTellsWhatIsKept(t *testing.T) {
	const run, export = "the next run continues after 100 results already read", "the same export within an hour continues after 100 results already read"
	for _, c := range []struct {
		name, window string
		page         int // that the signal comes at
		kept         string
		flags        []string // of the next export
		again        int      // pages of the next one
	}{
		{"windows of a run", "1d", 11, run, nil, 21},
		{"windows of an export", "1d", 11, export, nil, 21},
		{"half a window of a run", "1mo", 2, run, nil, 1},
		{"half a window of an export", "1mo", 2, export, nil, 1},
		{"an export afresh", "1d", 11, export, []string{"--fresh"}, 31},
		{"an export to another file", "1d", 11, export, []string{"-o", "other.csv"}, 31},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{keptForm()}}
			there := make(chan struct{})
			var pages atomic.Int64
			service.Before = func(r formservice.Request) {
				whatChanged := strings.Contains(r.Query, "fs_sort=")
				if r.Transaction == formservice.TransactionResults && !whatChanged && pages.Add(1) == int64(c.page) {
					service.SetFaults("latency=1m")
					close(there)
				}
			}
			server := httptest.NewServer(service)
			defer server.Close()
			dir := t.TempDir()
			args := append([]string{
				"export", "--form", "form1", "--from", "2026-01-01", "--to", "2026-02-01", "--window", c.window, "--concurrency", "1",
				"--state", "state", "-o", "out.csv",
			}, serviceArgs(server.URL)...)
			if c.kept == run {
				args = []string{"run", write(t, dir, "kept.yaml", fmt.Sprintf(`version: 1
name: kept
source: {base_url: %q, account: acme, timezone: UTC, requests: {retries: 0, concurrency: 1}}
forms: [form1]
state: state
extract: {from: 2026-01-01, to: 2026-02-01, window: %s}
load: [{path: out.csv}]
`, server.URL, c.window))}
			}
			p := command(t, dir, testKey, args...)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			<-there
			if err := p.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			code := p.code(t, p.Wait())
			if want := "run the same command again (" + c.kept + ")"; code != console.ExitInterrupted || !strings.Contains(p.stderr.String(), want) {
				t.Errorf("ended with %d, want %q:\n%s", code, want, &p.stderr)
			}
			server.CloseClientConnections()
			service.SetFaults("")
			before := pages.Load()
			p = command(t, dir, testKey, slices.Concat(args, c.flags)...)
			if code := p.code(t, p.Run()); code != console.ExitOK {
				t.Fatalf("the next one ended with %d:\n%s", code, &p.stderr)
			}
			if n := int(pages.Load() - before); n != c.again {
				t.Errorf("the next one asked for %d pages, want %d", n, c.again)
			}
			told := regexp.MustCompile(`^resuming: using 100 results that an earlier export read \d+ seconds? ago; add --fresh to read everything again\n`).MatchString(p.stderr.String())
			if told != (c.kept == export && c.flags == nil) {
				t.Errorf("it says:\n%s", &p.stderr)
			}
			name := "out.csv"
			if slices.Contains(c.flags, "other.csv") {
				name = "other.csv"
			}
			if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || strings.Count(string(data), "\n") != 121 {
				t.Errorf("%s has %d lines, %v", name, strings.Count(string(data), "\n"), err)
			}
		})
	}
}

// TestWaitIsTold: who waits for rows on standard output is told why there are none yet, and what
// gives a quick look. That gives them at once.
func TestWaitIsTold(t *testing.T) {
	service, server := newService(testKey, largeForm("form1", 450))
	defer server.Close()
	service.SetFaults("latency=250ms")
	for _, limit := range []string{"", "--limit=5"} {
		args := slices.DeleteFunc(append([]string{"export", "--form", "form1", "--progress", "on", limit}, serviceArgs(server.URL)...), func(a string) bool { return a == "" })
		p := command(t, t.TempDir(), testKey, args...)
		if code := p.code(t, p.Run()); code != 0 || strings.Contains(p.stderr.String(), "rows are shown once all") != (limit == "") {
			t.Errorf("%v ends with %d:\n%s", args, code, &p.stderr)
		}
	}
}
