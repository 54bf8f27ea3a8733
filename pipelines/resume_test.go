package pipelines_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// resumed is a world whose runs can be stopped at a point.
type resumed struct {
	*world
	o    pipelines.Options
	form *formservice.Form
}

func newResumed(t *testing.T) *resumed { return newResumedOf(t, fourDays()) }

func newResumedOf(t *testing.T, form *formservice.Form) *resumed {
	t.Helper()
	w := newWorld(t, form)
	o := options()
	o.Now = zoned(t, w, "2026-02-15 12:00:00")
	return &resumed{world: w, o: o, form: form}
}

func days() definition.Output {
	return definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay}
}

func months() definition.Output {
	return definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth}
}

// stopAt runs until a point is reached for the n-th time, and stops there. It
// gives the report of the run that was stopped.
func (r *resumed) stopAt(def *definition.Definition, point string, n int) *pipelines.Report {
	r.t.Helper()
	ctx, cancel := context.WithCancelCause(r.t.Context())
	defer cancel(nil)
	o := r.o
	var mu sync.Mutex
	o.At = func(p string) {
		mu.Lock()
		defer mu.Unlock()
		if p == point {
			if n--; n == 0 {
				cancel(errStop)
			}
		}
	}
	report, err := pipelines.Run(ctx, def, o)
	if !errors.Is(err, errStop) {
		r.t.Fatalf("stopped at %s: %v", point, err)
	}
	return report
}

// leaveHost removes what only a run on the same host finds.
func (w *world) leaveHost() {
	w.t.Helper()
	if err := os.RemoveAll(w.path("state")); err != nil {
		w.t.Fatal(err)
	}
}

// asked runs to the end and gives the days that were asked for results, and
// the report.
func (r *resumed) asked(def *definition.Definition) ([]string, *pipelines.Report) {
	r.t.Helper()
	days, report := r.askedUntidy(def)
	r.checkTidy()
	return days, report
}

// askedUntidy is asked, where others left something.
func (r *resumed) askedUntidy(def *definition.Definition) ([]string, *pipelines.Report) {
	r.t.Helper()
	r.service.Reset()
	report, err := pipelines.Run(r.t.Context(), def, r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	var days []string
	for _, request := range r.service.Log() {
		if strings.Contains(request.Query, "fs_min_id=") {
			continue // the tail of a day that was read
		}
		if _, from, ok := strings.Cut(request.Query, "fs_min_date="); ok && request.Transaction == formservice.TransactionResults {
			days = append(days, from[:len("2026-01-01")])
		}
	}
	slices.Sort(days)
	return slices.Compact(days), report
}

// staged counts the staged objects of the dataset "days".
func (r *resumed) staged() int {
	r.t.Helper()
	found := 0
	err := filepath.WalkDir(filepath.Join(r.path("days"), load.ControlFolder), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), "staged-") {
			found++
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// checkpoints are the files of the checkpoints in the state folder that match a
// pattern.
func (w *world) checkpoints(pattern string) []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.path("state/checkpoint"), "*", pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// noCheckpoint fails if anything of a checkpoint is left.
func (w *world) noCheckpoint() {
	w.t.Helper()
	if left, err := os.ReadDir(w.path("state/checkpoint")); len(left) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Errorf("the checkpoint holds %v, %v", left, err)
	}
}

// overwrite replaces the checkpoint's files that match a pattern.
func (r *resumed) overwrite(pattern, content string) {
	r.t.Helper()
	found := r.checkpoints(pattern)
	if len(found) == 0 {
		r.t.Fatalf("no %s", pattern)
	}
	for _, file := range found {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// lostLease is a destination whose lease is lost when a part is staged.
type lostLease struct {
	*local.Destination
	lost chan struct{}
}

type lostLeaseOf struct {
	load.Lease
	lost chan struct{}
}

func (l lostLeaseOf) Lost() <-chan struct{} { return l.lost }

func (l *lostLease) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	lease, err := l.Destination.Acquire(ctx, scope, h)
	return lostLeaseOf{lease, l.lost}, err
}

// TestLostLease: the run stops soon, commits nothing, and leaves what it
// prepared to whoever has the lease now.
func TestLostLease(t *testing.T) {
	for _, point := range []string{"read", "verified", "prepared", "parts"} {
		t.Run(point, func(t *testing.T) {
			r := newResumed(t)
			lost := make(chan struct{})
			o := r.o
			o.BuiltIn.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
				d, err := local.New(root)
				return &lostLease{d, lost}, err
			}
			var once sync.Once
			o.At = func(p string) {
				if p == point {
					once.Do(func() { close(lost) })
				}
			}
			_, err := pipelines.Run(t.Context(), r.daily(days()), o)
			if e := new(load.HeldError); !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if n := r.staged(); (point == "prepared" || point == "parts") != (n > 0) {
				t.Errorf("%d parts are staged", n)
			}
			_, report := r.askedUntidy(r.daily(days()))
			if kept := report.Forms[0].WindowsKept; (point != "parts") != (kept > 0) {
				t.Errorf("%d windows were kept", kept)
			}
			r.cleaned()
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}
