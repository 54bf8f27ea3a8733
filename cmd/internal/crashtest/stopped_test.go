package crashtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// reports reads the report, of which there is none where a run was stopped
// before it had read its flags.
func (p pair) reports() (list []reported, there bool) {
	p.t.Helper()
	data, err := os.ReadFile(p.reportFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		p.t.Fatalf("%v in the report %s", err, data)
	}
	return list, true
}

// checkReports holds that the report has an entry for each definition, in
// their order, and that each is done or was stopped.
func (p pair) checkReports(code int, stderr string) (done int) {
	p.t.Helper()
	list, _ := p.reports()
	if len(list) != 2 || list[0].Pipeline != "crash" || list[1].Pipeline != "second" {
		p.t.Fatalf("the report is %+v:\n%s", list, stderr)
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

// TestStoppedInTheSecond sends a signal where only the second definition is
// left to be done.
func TestStoppedInTheSecond(t *testing.T) {
	p := newPair(t, csvFile)
	p.env = []string{"FORMETL_SIGNAL=TERM"}
	o := p.do(p.both("planned:2"))
	if done := p.checkReports(exitTerminated, o.stderr); o.code != exitTerminated || done != 1 {
		t.Errorf("ended with %d, %d are done:\n%s", o.code, done, o.stderr)
	}
	p.whole(truth(p.form))
	p.env = nil
	p.finish()
}

// stops is how often a run is stopped at a random moment.
const stops = 100

// TestStoppedAtRandomMoments sends a signal at a hundred moments, from before
// the process has begun its main function to after its last file. Whatever the
// moment, the run ends with the signal's code, or as the signal itself ends a
// process that has not begun to catch it. It ends with 0 only where both
// definitions are done.
func TestStoppedAtRandomMoments(t *testing.T) {
	calm := newPair(t, csvFile)
	began := time.Now()
	calm.finish()
	took := time.Since(began)
	t.Logf("undisturbed a run takes %s", took)
	var early, stopped, ended atomic.Int64
	t.Run("moments", func(t *testing.T) {
		for i := range needs.Count(stops, 8) {
			// As many before the half of the time as after it, and some beyond it.
			after := time.Duration(rand.Int64N(int64(took) * 5 / 4))
			s := stopSignals()[i%2]
			t.Run(fmt.Sprintf("%s after %s", s.name, after.Round(time.Microsecond)), func(t *testing.T) {
				t.Parallel()
				p := newPair(t, csvFile)
				run := p.both("")
				timer := time.AfterFunc(after, func() {
					<-run.began
					_ = run.Process.Signal(s.Signal) // or it has ended by itself
				})
				o := p.do(run)
				timer.Stop()
				_, reported := p.reports()
				switch {
				case o.code == -1 && !o.killed && !reported && o.stderr == "":
					early.Add(1) // the signal's own action, before it is caught
				case o.code == s.code && reported:
					stopped.Add(1)
					p.checkReports(s.code, o.stderr)
				case (o.code == 0 || o.code == -1 && !o.killed) && reported: // it had ended, or was about to
					ended.Add(1)
					if done := p.checkReports(0, o.stderr); done != 2 {
						t.Errorf("ended with 0 and %d of 2 definitions are done:\n%s", done, o.stderr)
					}
				default:
					t.Errorf("ended with %d, with a report: %t:\n%s", o.code, reported, o.stderr)
				}
				p.oneOf(nil, truth(p.form))
			})
		}
	})
	t.Logf("%d died of the signal before they caught it, %d were stopped, %d had ended", early.Load(), stopped.Load(), ended.Load())
}
