package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// keptForm is a form of ten results a day over so many days of January 2026.
// asksWhatChanged tells whether a request is of the feed of changes.
func asksWhatChanged(r formservice.Request) bool { return strings.Contains(r.Query, "fs_sort=") }

func keptForm(t *testing.T, days int) *formservice.Form {
	t.Helper()
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, nil)
	form.Metas = []string{"date_finish"}
	for day := range days {
		for i := range 10 {
			at := time.Date(2026, 1, 1+day, 9+i, 0, 0, 0, time.UTC)
			r := formservice.Result{
				Metas: []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}},
				Items: []formservice.Answer{{ID: "1", Values: []string{strconv.Itoa(100*day + i)}}},
			}
			if _, err := form.Insert(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return form
}

// answer changes what a result says.
func answer(t *testing.T, form *formservice.Form, id int64, text string) {
	t.Helper()
	r, ok := form.Get(id)
	if !ok {
		t.Fatalf("the form has no result %d", id)
	}
	r.Items[0].Values = []string{text}
	if err := form.Update(r); err != nil {
		t.Fatal(err)
	}
}

// checkpointsIn are the checkpoints in a state folder.
func checkpointsIn(t *testing.T, state string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(state, "checkpoint", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDataAtFaultKeepNothing has a run and an export end with 65, mends what
// was wrong, and does them again: they ask for it and write it.
func TestDataAtFaultKeepNothing(t *testing.T) {
	const days = 12
	long := strings.Repeat("x", 32768)
	schema := "version: 1\nunknown: %s\nmax_rejects: 0\ncolumns:\n  - {name: id, from: result_id, type: int64}\n"
	number := "  - {name: answer, from: \"item:1\", type: int64, on_error: %s}\n"
	for _, c := range []struct {
		name, schema, extension, text string
	}{
		{"a text that no cell holds", "", ".xlsx", long},
		{"too many rejects", fmt.Sprintf(schema+number, "ignore", "reject"), ".csv", "no number"},
		{"a value that does not fit", fmt.Sprintf(schema+number, "ignore", "fail"), ".csv", "no number"},
		{"an answer without results", "", ".csv", ""},
	} {
		for _, how := range []string{"run", "export"} {
			t.Run(c.name+", "+how, func(t *testing.T) {
				t.Parallel()
				form := keptForm(t, days)
				service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{form}}
				wrong := new(atomic.Bool)
				wrong.Store(c.text == "")
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if wrong.Load() && strings.Contains(r.URL.RawQuery, "fs_min_date=2026-01-12") && strings.HasSuffix(r.URL.Path, "/results") {
						_, _ = io.WriteString(w, `<?xml version="1.0"?><fs_response status="success"><forms/></fs_response>`)
						return
					}
					service.ServeHTTP(w, r)
				}))
				defer server.Close()
				dir := t.TempDir()
				args := keptCommand(t, dir, server.URL, how, c.extension, c.schema)
				const id = 10*days - 3
				before, _ := form.Get(id)
				if c.text != "" {
					answer(t, form, id, c.text)
				}
				if code, _, stderr := inProcess(testKey, args...); code != console.ExitData {
					t.Fatalf("ended with %d:\n%.3000s", code, stderr)
				}
				if left := checkpointsIn(t, filepath.Join(dir, "state")); len(left) > 0 {
					t.Errorf("left %v", left)
				}
				wrong.Store(false)
				answer(t, form, id, before.Items[0].Values[0])
				asked := service.Counts()[formservice.TransactionResults]
				if code, _, stderr := inProcess(testKey, args...); code != console.ExitOK {
					t.Fatalf("mended, it ended with %d:\n%.3000s", code, stderr)
				}
				if n := service.Counts()[formservice.TransactionResults] - asked; n < days {
					t.Errorf("mended, it asked for %d pages of %d", n, days)
				}
			})
		}
	}
}

// keptCommand is a run of a definition, or an export, with a window for each
// day, whose state folder is state.
func keptCommand(t *testing.T, dir, url, how, extension, schema string) []string {
	t.Helper()
	if schema != "" {
		write(t, dir, "schema.yaml", schema)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if how == "export" {
		args := append([]string{"export"}, serviceArgs(url)...)
		args = append(args, "--form", "form1", "--from", "2026-01-01", "--to", "2026-02-01", "--window", "1d", "--state", at("state"), "-o", at("out"+extension))
		if schema != "" {
			args = append(args, "--schema", at("schema.yaml"))
		}
		return args
	}
	text := "version: 1\nname: kept\nsource: {base_url: %q, account: acme, timezone: UTC, requests: {retries: 0}}\nforms: [form1]\nstate: state\n" +
		"extract: {from: 2026-01-01, to: 2026-02-01, window: 1d}\nload: [{path: out%s}]\n"
	if schema != "" {
		text += "schema: schema.yaml\n"
	}
	return []string{"run", write(t, dir, "kept.yaml", fmt.Sprintf(text, url, extension))}
}

// readOut is what a command wrote.
func readOut(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestStopTellsWhatIsKept stops commands in the middle. What they say of what
// they keep is what the next one does not ask for again.
func TestStopTellsWhatIsKept(t *testing.T) {
	for _, c := range []struct {
		name, how, window string
		page              int // that the signal comes at
		kept              string
		again             int // pages of the next one
	}{
		{"windows of a run", "run", "1d", 11, "kept for the next run: 100 results", 21},
		{"windows of an export", "export", "1d", 11, "kept for an hour: 100 results", 21},
		{"half a window of a run", "run", "1mo", 2, "kept for the next run: 100 results", 1},
		{"half a window of an export", "export", "1mo", 2, "kept for an hour: 100 results", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{keptForm(t, 12)}}
			there := make(chan struct{})
			var pages atomic.Int64
			service.Before = func(r formservice.Request) {
				if r.Transaction == formservice.TransactionResults && !asksWhatChanged(r) && pages.Add(1) == int64(c.page) {
					service.SetFaults(formservice.Faults{Latency: time.Minute})
					close(there)
				}
			}
			server := httptest.NewServer(service)
			defer server.Close()
			dir := t.TempDir()
			args := slices.Clone(keptCommand(t, dir, server.URL, c.how, ".csv", ""))
			if c.how == "export" {
				args = append(args, "--concurrency", "1")
				args[slices.Index(args, "1d")] = c.window
			} else {
				data, err := os.ReadFile(args[1])
				if err != nil {
					t.Fatal(err)
				}
				write(t, dir, "kept.yaml", strings.NewReplacer("window: 1d", "window: "+c.window, "retries: 0", "retries: 0, concurrency: 1").Replace(string(data)))
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
			if want := "formetl: hint: run the same command again (" + c.kept + ")\n"; code != console.ExitInterrupted || !strings.HasSuffix(p.stderr.String(), want) {
				t.Errorf("ended with %d, want %q:\n%s", code, want, &p.stderr)
			}
			server.CloseClientConnections()
			service.SetFaults(formservice.Faults{})
			before := pages.Load()
			p = command(t, dir, testKey, args...)
			if code := p.code(t, p.Run()); code != console.ExitOK {
				t.Fatalf("the next one ended with %d:\n%s", code, &p.stderr)
			}
			if n := int(pages.Load() - before); n != c.again {
				t.Errorf("the next one asked for %d pages, want %d", n, c.again)
			}
			if lines := strings.Count(readOut(t, dir), "\n"); lines != 121 {
				t.Errorf("the file has %d lines", lines)
			}
		})
	}
}
