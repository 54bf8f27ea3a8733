package pipelines_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
)

var errBoom = errors.New("boom")

// TestCheckpointCannotBeWritten: the run fails, names the folder and what to do,
// and leaves nothing that is half written. What it had read by then is resumed
// from.
func TestCheckpointCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		object string // a folder stands in its place
		kept   int
	}{
		"the header":             {"header", 0},
		"the first rows":         {"0000000-RUN-rows", 0},
		"the first record":       {"0000000-RUN-record", 0},
		"the rows of the third":  {"0000002-RUN-rows", 2},
		"the record of the last": {"0000003-RUN-record", 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			o := r.o
			o.RunID = "run1"
			object := strings.Replace(c.object, "RUN", fmt.Sprintf("%x", sha256.Sum256([]byte(o.RunID)))[:8], 1)
			var once sync.Once
			o.At = func(p string) {
				if p == "planned" {
					once.Do(func() {
						folder := r.path("state/checkpoint/" + pipelines.CheckpointKey(r.daily(days()), "form1"))
						if err := os.MkdirAll(filepath.Join(folder, object), 0o700); err != nil {
							t.Error(err)
						}
					})
				}
			}
			_, err := pipelines.Run(t.Context(), r.daily(days()), o)
			failed := new(checkpoint.StateError)
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), "the state in "+r.path("state")) || !strings.Contains(err.Error(), "--state") {
				t.Errorf("error %v", err)
			}
			for _, at := range r.checkpoints(object) {
				if err := os.Remove(at); err != nil {
					t.Fatal(err)
				}
			}
			_, report := r.asked(r.daily(days()))
			if report.Forms[0].WindowsKept != c.kept {
				t.Errorf("%d windows were kept", report.Forms[0].WindowsKept)
			}
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}

// cleaned does what the log says where something could not be tidied up.
func (r *resumed) cleaned() {
	r.t.Helper()
	if _, err := upkeep.Clean(r.t.Context(), r.daily(days()), r.o, load.CleanOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.checkTidy()
}

// TestStagedIsSwept: what the run of a checkpoint was staging when it was killed
// is removed by the one that resumes from it, unless another scope's lease says
// that it is at it still.
func TestStagedIsSwept(t *testing.T) {
	for _, alive := range []bool{false, true} {
		t.Run(fmt.Sprint("alive: ", alive), func(t *testing.T) {
			r := newDeclared(t)
			def := func() *definition.Definition {
				return r.daily(file(), definition.Output{Path: "./", Format: "csv", Partition: definition.PartitionDay})
			}
			stopped := r.stopAt(def(), "read", 2)
			part := load.PartName(load.PartKey{DT: "2026-01-03", From: extracttest.Wall("2026-01-03"), To: extracttest.Wall("2026-01-04"), Generation: 1, Extension: ".csv"})
			before := r.leftovers()
			r.leave(".", "20260101T000000Z-0000aaaa", part)
			want := r.leftovers() - before // those of another run
			for _, object := range []string{part, "form1.ndjson"} {
				r.leave(".", stopped.RunID, object)
			}
			if alive {
				want = r.leftovers() - before
				d, err := local.New(r.dir)
				if err != nil {
					t.Fatal(err)
				}
				lease, err := d.Acquire(t.Context(), "other.csv", load.Holder{RunID: stopped.RunID})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = lease.Release(context.WithoutCancel(t.Context())) })
			}
			report, err := pipelines.Run(t.Context(), def(), r.o)
			if err != nil || report.Forms[0].WindowsKept != 2 {
				t.Fatalf("%v; report %+v", err, report.Forms[0])
			}
			if n := r.leftovers(); n != want || want == 0 {
				t.Errorf("%d are left over, want %d", n, want)
			}
		})
	}
}

// leftovers counts what runs left in the world's folder.
func (r *resumed) leftovers() int {
	r.t.Helper()
	d, err := local.New(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	left, err := d.Staged(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return len(left)
}

// TestKilledAfterEveryOperation: from one operation on nothing that is done at
// any destination has an effect, as if the process were gone. The next run
// finishes what was recorded, asks for no result that was read and is not
// committed, and all outputs hold what there is.
func TestKilledAfterEveryOperation(t *testing.T) {
	needs.Slow(t)
	outs := func() []definition.Output { return []definition.Output{file(), days(), months()} }
	for n := 1; ; n++ {
		r := newDeclared(t)
		var mu sync.Mutex
		done, recorded := 0, false
		o := watching(func(_, op, name string) error {
			mu.Lock()
			defer mu.Unlock()
			if done++; done >= n {
				return errBoom
			}
			recorded = recorded || op == "put" && strings.HasPrefix(name, ".formetl/intent")
			return nil
		})
		o.Now = r.o.Now
		report, err := pipelines.Run(t.Context(), r.daily(outs()...), o)
		if err == nil {
			if n < 30 {
				t.Errorf("the run does %d operations", n)
			}
			return
		}
		if !errors.Is(err, errBoom) || len(report.Forms) != 1 {
			t.Fatalf("operation %d: %v", n, err)
		}
		if recorded != (len(r.checkpoints("header")) == 0) {
			t.Errorf("operation %d: a commit is recorded: %t, and the checkpoints are %v", n, recorded, r.checkpoints("header"))
		}
		asked, report := r.askedUntidy(r.daily(outs()...))
		if f := report.Forms[0]; !recorded && len(asked) > 0 || !f.Verified.Match {
			t.Errorf("operation %d: asked for %v, report %+v", n, asked, f)
		}
		r.checkAll(outs(), inJanuary)
		if _, err := upkeep.Clean(t.Context(), r.daily(outs()...), r.o, load.CleanOptions{}); err != nil {
			t.Fatal(err)
		}
		r.checkTidy()
		r.checkAll(outs(), inJanuary)
		if t.Failed() {
			t.Fatalf("killed at operation %d", n)
		}
	}
}
