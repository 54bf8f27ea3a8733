package crashtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// Exit codes of contract.md for a run that was told to stop.
const (
	exitInterrupt  = 130
	exitTerminated = 143
)

// stopSignal is a signal that tells a run to stop, its name in FORMETL_SIGNAL,
// and the exit code that it gives.
type stopSignal struct {
	syscall.Signal
	name string
	code int
}

func stopSignals() []stopSignal {
	return []stopSignal{{syscall.SIGTERM, "TERM", exitTerminated}, {syscall.SIGINT, "INT", exitInterrupt}}
}

// reported is what a report says of a definition.
type reported struct {
	Pipeline string          `json:"pipeline"`
	ExitCode int             `json:"exit_code"`
	Error    string          `json:"error"`
	Forms    json.RawMessage `json:"forms"`
}

// pair is a pipeline whose definition is run together with a second one.
type pair struct {
	*world
	second string // its definition
	lake   disk   // what the second one writes
}

// newPair gives a pipeline to disk, and a second one that writes a dataset.
func newPair(t testing.TB, o output) pair {
	t.Helper()
	w := newWorld(t, kind{"disk", false}, o)
	data, err := os.ReadFile(w.definition())
	if err != nil {
		t.Fatal(err)
	}
	p := pair{world: w, second: filepath.Join(w.dir, "second.yaml"), lake: disk{filepath.Join(w.dir, "second")}}
	source, _, _ := strings.Cut(string(data), "load:")
	text := strings.ReplaceAll(source, "name: crash", "name: second") + "load: [{path: second/, format: ndjson, partition: day}]\n"
	if err := os.WriteFile(p.second, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p pair) reportFile() string { return filepath.Join(p.dir, "report.json") }

// both prepares a run of both definitions.
func (p pair) both(fault string) *process {
	p.t.Helper()
	_ = os.Remove(p.reportFile()) // of the run before
	return p.command(fault, "run", p.definition(), p.second, "--report", p.reportFile())
}

// checkReports holds that the report has an entry for each definition, in
// their order, and that each is done or was stopped.
func (p pair) checkReports(code int, stderr string) (done int) {
	p.t.Helper()
	data, err := os.ReadFile(p.reportFile())
	if err != nil {
		p.t.Fatal(err)
	}
	var list []reported
	if err := json.Unmarshal(data, &list); err != nil || len(list) != 2 || list[0].Pipeline != "crash" || list[1].Pipeline != "second" {
		p.t.Fatalf("%v, the report is %s:\n%s", err, data, stderr)
	}
	for _, r := range list {
		switch {
		case r.ExitCode == 0 && r.Error == "":
			done++
		case r.ExitCode != code || !strings.Contains(r.Error, "stopped by "):
			p.t.Errorf("the report says of %s: %d, %q", r.Pipeline, r.ExitCode, r.Error)
		}
		if string(r.Forms) == "null" {
			p.t.Errorf("the report says of %s: \"forms\": null", r.Pipeline)
		}
	}
	return done
}

// finish runs both definitions to their end and holds what they wrote.
func (p pair) finish() {
	p.t.Helper()
	if o := p.do(p.both("")); o.killed || o.code != 0 {
		p.t.Fatalf("the next run ended with %d:\n%s", o.code, o.stderr)
	}
	p.whole(truth(p.form))
	if names, err := p.lake.names(p.t.Context()); err != nil || !slices.Contains(names, load.ManifestName) {
		p.t.Errorf("the second definition wrote %v, %v", names, err)
	}
}

// TestStoppedAtEveryPoint sends a signal at each point of a run of two
// definitions. The run ends with the signal's code, also where the first
// definition was done by then, and its report tells of both.
func TestStoppedAtEveryPoint(t *testing.T) {
	for _, c := range []struct {
		name   string
		output output
		points []crash
	}{
		{"dataset", ndjsonDataset, firstOf(crashes(false))},
		{"file", csvFile, firstOf(fileCrashes(false))},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, point := range needs.Sample(c.points, 4) {
				s := stopSignals()[i%2]
				t.Run(point.name, func(t *testing.T) {
					t.Parallel()
					p := newPair(t, c.output)
					p.env = append(p.env, "FORMETL_SIGNAL="+s.name)
					o := p.do(p.both(point.name))
					if o.code != s.code || !strings.Contains(o.stderr, "formetl: ") || !strings.Contains(o.stderr, "stopped by SIG"+s.name) {
						t.Fatalf("ended with %d, want %d:\n%s", o.code, s.code, o.stderr)
					}
					if done := p.checkReports(s.code, o.stderr); done > 1 {
						t.Errorf("%d definitions are reported as done", done)
					}
					p.env = nil
					p.finish()
				})
			}
		})
	}
}

// firstOf leaves each point once.
func firstOf(all []crash) []crash {
	var list []crash
	for _, c := range all {
		if c.k == 1 {
			list = append(list, c)
		}
	}
	return list
}
