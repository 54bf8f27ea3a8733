package cli

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
)

// TestExportResumes kills an export, edits a result that it had read, and
// exports again. What is taken over is said in the first line, and nothing is
// where --fresh is given, where it was read more than an hour ago, or where it
// was for another file.
func TestExportResumes(t *testing.T) {
	const line = `^resuming: 100 results read \d+ seconds? ago are taken over; --fresh reads them again\n`
	for _, c := range []struct {
		name  string
		flags []string
		age   time.Duration // of what was read
		says  string        // "": nothing is taken over
	}{
		{"at once", nil, 0, line},
		{"as JSON", []string{"--log-format", "json"}, 0, `^\{"time":"[^"]+","level":"INFO","msg":"resuming: 100 results read [^"]+","pipeline":"export","run_id":"[^"]+","results":100,"since":"[^"]+Z"\}\n`},
		{"within the hour", nil, 50 * time.Minute, strings.Replace(line, `\d+ seconds?`, `50 minutes`, 1)},
		{"--fresh", []string{"--fresh"}, 0, ""},
		{"after an hour", nil, 61 * time.Minute, ""},
		{"another file", []string{"-o", "other.csv"}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			form := keptForm(t, 12)
			var hook atomic.Pointer[func(formservice.Request)] // of the service, which is asked meanwhile
			service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{form}, Before: func(r formservice.Request) {
				if before := hook.Load(); before != nil {
					(*before)(r)
				}
			}}
			server := httptest.NewServer(service)
			defer server.Close()
			schema := "version: 1\ncolumns:\n  - {name: id, from: result_id, type: int64}\n  - {name: answer, from: \"item:1\", type: string}\n"
			args := append(keptCommand(t, dir, server.URL, "export", ".csv", schema), "--concurrency", "1")
			killWhen(t, service, &hook, 10, filepath.Join(dir, "state"), command(t, dir, testKey, args...))
			makeOlder(t, filepath.Join(dir, "state"), c.age)
			server.CloseClientConnections()
			answer(t, form, 1, "edited since")
			service.Reset()

			p := command(t, dir, testKey, append(args, c.flags...)...)
			if code := p.code(t, p.Run()); code != console.ExitOK {
				t.Fatalf("ended with %d:\n%s", code, &p.stderr)
			}
			says, pages := p.stderr.String(), service.Counts()[formservice.TransactionResults]
			asked := func(n int) bool { return pages == n || pages == n+1 } // the last request of the killed command may come late
			name := "out.csv"
			if c.name == "another file" {
				name = "other.csv"
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(string(data), "\n"); lines != 121 {
				t.Errorf("%d lines", lines)
			}
			if c.says == "" {
				if strings.Contains(says, "resuming") || !asked(32) || !strings.Contains(string(data), "edited since") { // one asks what changed
					t.Errorf("asked for %d pages, the new value is there: %t; said:\n%s", pages, strings.Contains(string(data), "edited since"), says)
				}
				return
			}
			if !regexp.MustCompile(c.says).MatchString(says) || !asked(21) {
				t.Errorf("asked for %d pages, said:\n%s", pages, says)
			}
		})
	}
}

// killWhen runs a command that gets so many pages and no more, and kills it when
// what they brought is in the checkpoint.
func killWhen(t *testing.T, service *formservice.Server, hook *atomic.Pointer[func(formservice.Request)], pages int64, state string, p *child) {
	t.Helper()
	var asked atomic.Int64
	before := func(r formservice.Request) {
		if r.Transaction == formservice.TransactionResults && !asksWhatChanged(r) && asked.Add(1) == pages+1 {
			service.SetFaults(formservice.Faults{Latency: time.Minute})
		}
	}
	hook.Store(&before)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		found, err := filepath.Glob(filepath.Join(state, "checkpoint", "*", "*-record"))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d windows are in the checkpoint, %v", len(found), err)
		}
		whole := slices.DeleteFunc(found, func(name string) bool {
			data, _ := os.ReadFile(name) // it is read again
			return unsealed(data) == nil
		})
		if int64(len(whole)) == pages {
			break
		}
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // it was killed
	hook.Store(nil)
	service.SetFaults(formservice.Faults{})
}

// makeOlder sets back what a checkpoint says of when it was opened, and its
// windows counted and read.
func makeOlder(t *testing.T, state string, age time.Duration) {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*/header", "*/*-record"} {
		found, err := filepath.Glob(filepath.Join(state, "checkpoint", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%v, %v", found, err)
		}
		files = append(files, found...)
	}
	times := regexp.MustCompile(`"(opened_at|read_at|at)":"([^"]+)"`)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := unsealed(data)
		older := times.ReplaceAllStringFunc(string(text), func(text string) string {
			m := times.FindStringSubmatch(text)
			at, err := time.Parse(time.RFC3339Nano, m[2])
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%q:%q", m[1], at.Add(-age).Format(time.RFC3339Nano))
		})
		if older == string(text) && age > 0 {
			t.Fatalf("%s holds no time", file)
		}
		if err := os.WriteFile(file, sealed([]byte(older)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaitIsTold: who waits for rows on standard output is told why there are none yet, and what
// gives a quick look. That gives them at once.
func TestWaitIsTold(t *testing.T) {
	service, server := newService(testKey, largeForm("form1", 450))
	defer server.Close()
	service.SetFaults(formservice.Faults{Latency: 250 * time.Millisecond})
	for limit, told := range map[string]bool{"": true, "--limit=5": false} {
		args := slices.DeleteFunc(append([]string{"export", "--form", "form1", "--progress", "on", limit}, serviceArgs(server.URL)...), func(a string) bool { return a == "" })
		p := command(t, t.TempDir(), testKey, args...)
		if code := p.code(t, p.Run()); code != 0 || strings.Contains(p.stderr.String(), "rows come at the end") != told {
			t.Errorf("%v ends with %d:\n%s", args, code, &p.stderr)
		}
	}
}
