package pipelines_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// open is a folder that several processes of this test write to at once, as a bucket with
// a lease that they share. Who holds the lease is a matter of load/s3 and of the worker.
type open struct{ *local.Destination }

// Acquire gives everyone a lease.
func (open) Acquire(context.Context, string, load.Holder) (load.Lease, error) { return held{}, nil }

type held struct{}

func (held) Lost() <-chan struct{}         { return nil }
func (held) Release(context.Context) error { return nil }
func (held) Leave(context.Context) error   { return nil }

// sharing is a run of several processes over four days, a day for each group.
type sharing struct {
	*resumed
	def *definition.Definition
	run string
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	s := &sharing{resumed: newResumed(t), run: "20260215T120000Z-00000001"}
	s.o.Tables.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
		d, err := local.New(root)
		return open{d}, err
	}
	s.def = s.daily(days())
	s.def.CheckpointAtDestination = true
	return s
}

// options are those of a try of a process.
func (s *sharing) options(try int) pipelines.Options {
	o := s.o
	o.Shared = &pipelines.Shared{Owner: "flow", Run: s.run, Try: try, Decided: s.o.Now(), GroupRequests: 1}
	return o
}

// plan begins the run, which has a group for each of four days.
func (s *sharing) plan(try int) {
	s.t.Helper()
	plan, _, err := pipelines.PlanForm(s.t.Context(), s.def, s.options(try), "form1")
	if err != nil || plan == nil || plan.Groups != 4 || plan.Windows != 4 {
		s.t.Fatalf("the plan is %+v, %v", plan, err)
	}
}

// finish ends the run, and checks that every result is there once.
func (s *sharing) finish(try int) *pipelines.FormReport {
	s.t.Helper()
	report, err := pipelines.FinishForm(s.t.Context(), s.def, s.options(try), "form1")
	if err != nil {
		s.t.Fatal(err)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, inJanuary))
	return report
}

// data are the data objects that a run left.
func (s *sharing) data() map[string]string {
	all := tree(s.t, s.path("days"))
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasPrefix(name, "dt=") })
	return all
}

// TestSharedRunEqualsARun lets processes read the groups side by side. The data are the
// bytes that one process writes, and the requests are as many.
func TestSharedRunEqualsARun(t *testing.T) {
	alone := newSharing(t)
	report, err := pipelines.Run(t.Context(), alone.def, alone.o)
	if err != nil {
		t.Fatal(err)
	}
	s := newSharing(t)
	s.plan(1)
	var wg sync.WaitGroup
	for group := range 4 {
		wg.Go(func() {
			if r, err := pipelines.ReadGroup(t.Context(), s.def, s.options(1), "form1", group); err != nil || r.Windows != 1 {
				t.Errorf("group %d: %+v, %v", group, r, err)
			}
		})
	}
	wg.Wait()
	end := s.finish(1)
	if !maps.Equal(s.data(), alone.data()) {
		t.Error("the bytes differ from those of one process")
	}
	sent := s.service.Log()
	if n, one := len(sent), len(alone.service.Log()); n > one {
		t.Errorf("%d requests, and one process sends %d", n, one)
	}
	if end.Continued == "" || report.Forms[0].Rows != end.Rows {
		t.Errorf("the report is %+v", end)
	}
	s.checkTidy()
}

// TestSharedRunIsTriedAgain repeats each process, as a workflow does that did not learn of
// its end. Nothing is asked for twice but what the check at the end asks.
func TestSharedRunIsTriedAgain(t *testing.T) {
	s := newSharing(t)
	s.plan(1)
	s.plan(2)
	for group := range 4 {
		if _, err := pipelines.ReadGroup(t.Context(), s.def, s.options(1), "form1", group); err != nil {
			t.Fatal(err)
		}
		before := len(s.service.Log())
		if _, err := pipelines.ReadGroup(t.Context(), s.def, s.options(2), "form1", group); err != nil {
			t.Fatal(err)
		}
		if n := len(s.service.Log()) - before; n != 0 {
			t.Errorf("group %d: a second try sent %d requests", group, n)
		}
	}
	first := s.finish(1)
	before := len(s.service.Log())
	again := s.finish(2)
	if n := len(s.service.Log()) - before; n != 0 || again.Outputs[0].Rows != first.Outputs[0].Rows {
		t.Errorf("the run was over, and another try sent %d requests: %+v", n, again.Outputs)
	}
	s.checkTidy()
}

// TestSharedRunIsOvertaken runs the definition between the processes. Those that come
// later notice, and write nothing.
func TestSharedRunIsOvertaken(t *testing.T) {
	s := newSharing(t)
	s.plan(1)
	if _, err := pipelines.ReadGroup(t.Context(), s.def, s.options(1), "form1", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := pipelines.Run(t.Context(), s.def, s.o); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := pipelines.ReadGroup(t.Context(), s.def, s.options(1), "form1", 2); !errors.Is(err, checkpoint.ErrNoPlan) {
			t.Errorf("got %v", err)
		}
	}
	s.finish(1) // it has nothing to take over, and reads all of it
	s.checkTidy()
}

// TestSharedRunOfOneGroup does all in one process where there is nothing to share.
func TestSharedRunOfOneGroup(t *testing.T) {
	s := newSharing(t)
	o := s.options(1)
	o.Shared.GroupRequests = 0
	plan, report, err := pipelines.PlanForm(t.Context(), s.def, o, "form1")
	if err != nil || plan != nil || len(report.Outputs) != 1 {
		t.Fatalf("%+v, %+v, %v", plan, report, err)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, inJanuary))
	s.checkTidy()
}

// TestSharedRunIsCancelled stops the last process after it has staged. Nothing staged is
// left, and the next try asks for no results again.
func TestSharedRunIsCancelled(t *testing.T) {
	s := newSharing(t)
	s.plan(1)
	for group := range 4 {
		if _, err := pipelines.ReadGroup(t.Context(), s.def, s.options(1), "form1", group); err != nil {
			t.Fatal(err)
		}
	}
	for _, point := range []string{"staged", "prepared"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		o := s.options(1)
		o.At = func(p string) {
			if p == point {
				cancel(errStop)
			}
		}
		if _, err := pipelines.FinishForm(ctx, s.def, o, "form1"); !errors.Is(err, errStop) {
			t.Fatalf("at %s: %v", point, err)
		}
		for name := range tree(t, s.path("days")) {
			if !strings.HasPrefix(name, ".formetl/checkpoint/") {
				t.Errorf("cancelled at %s, it left %s", point, name)
			}
		}
	}
	if err := pipelines.EndForm(t.Context(), s.def, s.options(1), "form1"); err != nil {
		t.Error(err)
	}
	before := s.service.Counts()["results"]
	s.finish(2)
	if n := s.service.Counts()["results"] - before; n > 2 { // what changed meanwhile
		t.Errorf("another try asked %d times for results", n)
	}
	s.checkTidy()
}

// TestSharedRunOfAnExclusivePlace does all in one process where only one can hold the lease,
// as that of a file or of a table.
func TestSharedRunOfAnExclusivePlace(t *testing.T) {
	s := newSharing(t)
	s.o.Tables.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
		return local.New(root)
	}
	plan, report, err := pipelines.PlanForm(t.Context(), s.def, s.options(1), "form1")
	if err != nil || plan != nil || len(report.Outputs) != 1 {
		t.Fatalf("%+v, %+v, %v", plan, report, err)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, inJanuary))
	s.checkTidy()
}
