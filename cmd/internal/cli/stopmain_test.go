package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
)

// interrupt sends the process of the test a signal, and waits until it came.
// Without a handler of Main it would end the test.
func interrupt(s syscall.Signal) {
	came := make(chan os.Signal, 1)
	signal.Notify(came, s)
	_ = syscall.Kill(os.Getpid(), s)
	<-came
	signal.Stop(came)
}

// trigger is standard error that sends a signal once a text is written to it.
type trigger struct {
	bytes.Buffer
	text string
	once sync.Once
}

func (w *trigger) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.once.Do(func() {
			interrupt(syscall.SIGTERM)
			time.Sleep(50 * time.Millisecond) // the command's own goroutine takes the signal meanwhile
		})
	}
	return w.Buffer.Write(p)
}

// stopWorld is a service with two forms, and definitions of one each.
func stopWorld(t *testing.T) (dir, one, two string) {
	t.Helper()
	dir = t.TempDir()
	_, server := newService(testKey, largeForm("form1", 50), largeForm("form2", 50))
	t.Cleanup(server.Close)
	define := func(name, form string) string {
		return write(t, dir, name+".yaml", fmt.Sprintf("version: 1\nname: %s\n"+
			"source: {base_url: %q, account: acme, timezone: UTC}\nforms: [%s]\nload: [{path: %s.ndjson}, {path: lake/%s/, format: ndjson}]\n", name, server.URL, form, name, name))
	}
	return dir, define("one", "form1"), define("two", "form2")
}

// environ is an environment with the key. The first variable that is asked for
// sends a signal where first says so: that is before flags are read.
func environ(dir string, first func()) func(string) (string, bool) {
	return func(name string) (string, bool) {
		first()
		switch name {
		case "FORMETL_API_KEY":
			return testKey, true
		case "XDG_CACHE_HOME", "HOME":
			return dir, true
		}
		return "", false
	}
}

func never() {}

// printing calls first before it writes.
type printing struct {
	bytes.Buffer
	first func()
}

func (p *printing) Write(b []byte) (int, error) {
	p.first()
	return p.Buffer.Write(b)
}

// TestStopBeforeFlags sends a signal before a command asks for the environment, or prints
// if it does that first. Every command ends as stopped, also one that takes no longer than to
// hear of it.
func TestStopBeforeFlags(t *testing.T) {
	dir, one, two := stopWorld(t)
	data, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Split(string(data), `"`)[1]
	schema := write(t, dir, "schema.yaml", "version: 1\ncolumns: [{name: id, from: result_id, type: int64}]\n")
	for _, args := range [][]string{
		{"run", one, two},
		{"run", one, "--dry-run"},
		append([]string{"export", "--form", "form1", "-o", filepath.Join(dir, "e.csv")}, serviceArgs(url)...),
		{"plan", one},
		{"plan", one, "--offline"},
		{"validate", one},
		{"state", "show", one},
		{"state", "reset", one, "--yes"},
		{"clean", one},
		{"clean", one, "--dry-run"},
		{"doctor", one},
		{"replay", one},
		{"replay", one, "--dry-run"},
		{"schema", "show", one},
		{"schema", "diff", schema, schema},
		{"schema", "ddl", schema, "--dialect", "duckdb"},
		{"schema", "definition"},
		append([]string{"schema", "infer", "--form", "form1"}, serviceArgs(url)...),
		append([]string{"count", "--form", "form1"}, serviceArgs(url)...),
		append([]string{"forms"}, serviceArgs(url)...),
		append([]string{"status", "--form", "form1"}, serviceArgs(url)...),
		append([]string{"publish", "--form", "form1"}, serviceArgs(url)...),
		append([]string{"copy", "--form", "form1", "--to-account", "acme", "--to-form", "x", "--yes"}, serviceArgs(url)...),
		{"demo", "--results", "10", "--dir", filepath.Join(dir, "demo")},
		{"--help"},
		{"--version"},
	} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			var once sync.Once
			first := func() { once.Do(func() { interrupt(s) }) }
			stdout, stderr := &printing{first: first}, &printing{first: first}
			code := Main(args, strings.NewReader(""), stdout, stderr, environ(dir, first))
			if want := console.ExitCode(&console.StopError{Signal: s}); code != want || !strings.Contains(stderr.String(), (&console.StopError{Signal: s}).Error()) {
				t.Errorf("%v: ended with %d, want %d:\n%s", args, code, want, stderr)
			}
		}
	}
}

// TestStopInTheCommand sends signals from between two definitions to the last
// file that a run writes: it ends as stopped, and its report tells of each
// definition.
func TestStopInTheCommand(t *testing.T) {
	for _, c := range []struct {
		name, at string
		done     int
	}{
		{"between two definitions", `"msg":"run finished","pipeline":"one"`, 1},
		{"before the report", `"msg":"run finished","pipeline":"two"`, 2},
		{"in the metrics", "the metrics file of earlier runs cannot be read", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, one, two := stopWorld(t)
			report, damaged := filepath.Join(dir, "report.json"), write(t, dir, "damaged.prom", "{")
			stderr := &trigger{text: c.at}
			code := Main([]string{"run", one, two, "--report", report, "--metrics", damaged, "--log-format", "json"}, strings.NewReader(""), &bytes.Buffer{}, stderr, environ(dir, never))
			if code != console.ExitTerminated {
				t.Errorf("ended with %d:\n%s", code, stderr)
			}
			checkStopped(t, report, c.done)
			metrics := readMetrics(t, damaged)
			for i, key := range []string{"one form1", "two form2"} {
				got, there := metrics[runSuccess][key]
				if want := map[bool]float64{true: 1, false: 0}[i < c.done]; !there || got != want {
					t.Errorf("formetl_last_run_success of %q is %v (%t), want %v", key, got, there, want)
				}
			}
		})
	}
}

// checkStopped reads a report of two definitions, the first of which are done.
func checkStopped(t *testing.T, file string, done int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var reports []*pipelines.Report
	if err := json.Unmarshal(data, &reports); err != nil || len(reports) != 2 {
		t.Fatalf("%v in %s", err, data)
	}
	for i, r := range reports {
		code, failure := 0, ""
		if i >= done { // it had not begun, or just begun, when the run heard of the signal
			code, failure = console.ExitTerminated, "stopped by SIGTERM"
		}
		if r.Pipeline != []string{"one", "two"}[i] || r.ExitCode != code || !strings.Contains(r.Error, failure) || len(r.Forms) != 1 || r.Forms[0].ExitCode != code {
			t.Errorf("the report of definition %d is %+v", i+1, r)
		}
		if strings.Contains(r.Error, "not begun") && r.Requests.Count+r.Requests.Results > 0 {
			t.Errorf("for a definition that was not begun there were requests: %+v", r.Requests)
		}
	}
}
