package cli

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/formservice"
)

// stopped is a point of a run at which a signal comes.
type stopped struct {
	name     string
	signal   syscall.Signal
	code     int
	requests string // of the definition
	// trap is asked before each request is answered and tells when to stop.
	trap func(formservice.Request) bool
	// then is how the service behaves from there on.
	then formservice.Faults
}

func stops() []stopped {
	minute := formservice.Faults{Latency: time.Minute}
	results := func(n int) func(formservice.Request) bool {
		seen := new(atomic.Int64)
		return func(r formservice.Request) bool {
			return r.Transaction == formservice.TransactionResults && seen.Add(1) >= int64(n)
		}
	}
	return []stopped{
		{"while planning, interrupted", syscall.SIGINT, exit.Interrupted, "", func(r formservice.Request) bool { return r.Transaction == formservice.TransactionCount }, minute},
		{"in the first page", syscall.SIGINT, exit.Interrupted, "", results(1), minute},
		{"while reading, interrupted", syscall.SIGINT, exit.Interrupted, "", results(25), minute},
		{"while reading, terminated", syscall.SIGTERM, exit.Terminated, "", results(25), minute},
		{"while pausing between attempts", syscall.SIGTERM, exit.Terminated, "", results(25), formservice.Faults{Busy: 1, RetryAfter: 60}},
		{"while waiting for the budget", syscall.SIGINT, exit.Interrupted, "per_minute: 20", results(19), formservice.Faults{}},
	}
}

const stopDefinition = `version: 1
name: stopped
source: {base_url: %s, account: acme, timezone: UTC, requests: {timeout: 10m, %s}}
forms: [form1]
extract: {from: 2025-01-01, to: 2025-03-01, window: 1d}
load:
  - {path: out/form1.csv.gz}
  - {path: out/lake/, format: parquet, partition: day}
`

// TestStop stops runs by signals: they end soon, with the signal's code, and
// leave nothing half-written. Another run then makes what an undisturbed one
// makes.
func TestStop(t *testing.T) {
	for _, s := range stops() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			service, server := newService(testKey, largeForm("form1", 600))
			defer server.Close()
			there := make(chan struct{})
			var reached atomic.Bool
			service.Before = func(r formservice.Request) {
				if !reached.Load() && s.trap(r) && reached.CompareAndSwap(false, true) {
					service.SetFaults(s.then)
					close(there)
				}
			}
			definition := write(t, dir, "stop.yaml", fmt.Sprintf(stopDefinition, server.URL, s.requests))
			p := command(t, dir, testKey, "run", definition)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-there:
			case <-time.After(patience):
				t.Fatalf("the run never came there:\n%s", &p.stderr)
			}
			began := time.Now()
			if err := p.Process.Signal(s.signal); err != nil {
				t.Fatal(err)
			}
			code := p.code(t, p.Wait())
			took := time.Since(began)
			t.Logf("ended %s after the signal", took.Round(time.Millisecond))
			// Without the signal it would have been a minute.
			if code != s.code || took > patience/3 {
				t.Fatalf("ended with %d after %s, want %d:\n%s", code, took, s.code, &p.stderr)
			}
			if !strings.Contains(p.stderr.String(), (&exit.StopError{Signal: s.signal}).Error()) || p.stdout.Len() > 0 {
				t.Errorf("told:\n%s%s", &p.stdout, &p.stderr)
			}
			for left := range files(t, dir) { // the checkpoint is for the next run
				if left != filepath.Base(definition) && !strings.Contains(left, "checkpoint/") {
					t.Errorf("left %s", left)
				}
			}
			server.CloseClientConnections()
			checkRecovers(t, dir, definition, service)
		})
	}
}

// checkRecovers runs the definition again, and elsewhere undisturbed, and
// compares what both wrote.
func checkRecovers(t *testing.T, dir, definition string, service *formservice.Server) {
	t.Helper()
	service.SetFaults(formservice.Faults{})
	data, err := os.ReadFile(definition)
	if err != nil {
		t.Fatal(err)
	}
	quick := strings.Replace(string(data), "per_minute: 20", "", 1)
	elsewhere := t.TempDir()
	for _, d := range []string{dir, elsewhere} {
		p := command(t, d, testKey, "run", write(t, d, "stop.yaml", quick))
		if code := p.code(t, p.Run()); code != exit.OK {
			t.Fatalf("the next run ended with %d:\n%s", code, &p.stderr)
		}
	}
	again, whole := files(t, dir), files(t, elsewhere)
	for name, sum := range again {
		if whole[name] != sum {
			t.Errorf("after the stop %s is another file", name)
		}
	}
	if len(again) != len(whole) {
		t.Errorf("after the stop there are %d files, undisturbed %d", len(again), len(whole))
	}
}

// files are the sums of all files under a folder, without the budget's, and
// without the sums of what holds a run's id or the time.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), "requests-") {
			return nil
		}
		found[name] = ""
		if strings.HasSuffix(name, "manifest.json") || d.Name() == "_SUCCESS" {
			return nil
		}
		data, err := os.ReadFile(path)
		found[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
