package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
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

func newSharing(t *testing.T) *sharing { return newSharingOf(t, fourDays()) }

func newSharingOf(t *testing.T, form *formservice.Form) *sharing {
	t.Helper()
	s := &sharing{resumed: newResumedOf(t, form), run: "20260215T120000Z-00000001"}
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
	o.Shared = &pipelines.Shared{Owner: "flow", Run: s.run, Try: try, Decided: s.o.Now(), GroupRequests: 1, Of: planner}
	return o
}

// plan begins the run, which has a group for each of four days.
func (s *sharing) plan(try int) {
	s.t.Helper()
	plan, _, err := pipelines.PlanForm(s.t.Context(), s.def, s.options(try), "form1")
	if err != nil || plan == nil || plan.Groups != 4 || plan.Windows != 4 || plan.Of != fmt.Sprint("p.", try) {
		s.t.Fatalf("the plan is %+v, %v", plan, err)
	}
}

// reads lets a process read each group of a plan.
func (s *sharing) reads(of string, groups int) {
	s.t.Helper()
	for group := range groups {
		if _, err := pipelines.ReadGroup(s.t.Context(), s.def, s.after(of, 1), "form1", group); err != nil {
			s.t.Fatal(err)
		}
	}
}

// after are the options of a try of a process that goes on from another one.
func (s *sharing) after(of string, try int) pipelines.Options {
	o := s.options(try)
	o.Shared.Of = of
	return o
}

// reconcile goes on with the run whose groups are read, up to where shares can be staged.
func (s *sharing) reconcile(of string, try int) *pipelines.SharedPlan {
	s.t.Helper()
	plan, _, err := pipelines.ReconcileForm(s.t.Context(), s.def, s.after(of, try), "form1")
	if err != nil || plan == nil || plan.Groups > 0 || plan.Shares != 4 {
		s.t.Fatalf("the run goes on with %+v, %v", plan, err)
	}
	return plan
}

// stages lets a process stage each share.
func (s *sharing) stages(plan *pipelines.SharedPlan, try int) {
	s.t.Helper()
	for share := range plan.Shares {
		if err := pipelines.StageShare(s.t.Context(), s.def, s.after(plan.Of, try), "form1", share); err != nil {
			s.t.Fatal(err)
		}
	}
}

// commit ends the run, and checks that every result is there once.
func (s *sharing) commit(plan *pipelines.SharedPlan, try int) *pipelines.FormReport {
	s.t.Helper()
	report, err := pipelines.CommitForm(s.t.Context(), s.def, s.after(plan.Of, try), "form1")
	if err != nil {
		s.t.Fatal(err)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, inJanuary))
	return report
}

// finish ends the run whose groups are read.
func (s *sharing) finish(try int) *pipelines.FormReport {
	s.t.Helper()
	plan := s.reconcile(planner, try)
	s.stages(plan, try)
	return s.commit(plan, try)
}

// planner is the name of the process that plans in these tests.
const planner = "p.1"

// staged are the names of the objects that are staged at the destination.
func (s *sharing) staged() (names []string) {
	for name := range tree(s.t, s.path("days")) {
		if strings.HasPrefix(name, ".formetl/"+s.run) {
			names = append(names, name)
		}
	}
	return names
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
	if one := report.Forms[0]; one.Rows != end.Rows || one.Windows != end.Windows || one.Range != end.Range || *one.Verified != *end.Verified {
		t.Errorf("the report is %+v", end)
	}
	s.checkTidy()
}

// TestSharedRunIsTriedAgain repeats each process, as a workflow does that did not learn of
// its end. Nothing is asked for twice but what the check at the end asks.
func TestSharedRunIsTriedAgain(t *testing.T) {
	s := newSharing(t)
	s.plan(2)
	s.plan(1)
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
	plan, again, err := pipelines.ReconcileForm(t.Context(), s.def, s.after(planner, 2), "form1")
	if n := len(s.service.Log()) - before; err != nil || plan != nil || n != 0 || again.Outputs[0].Rows != first.Outputs[0].Rows {
		t.Errorf("the run was over, and another try sent %d requests: %v; %+v", n, err, again.Outputs)
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
	s.run = "20260215T120000Z-00000002" // the workflow begins again
	s.plan(1)
	s.reads(planner, 4)
	s.finish(1)
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

// TestSharedRunIsCancelled stops a process after it has staged. Nothing that it staged is
// left. What others staged is there until the run is given up, and the next try asks for
// no results again.
func TestSharedRunIsCancelled(t *testing.T) {
	s := newSharing(t)
	s.plan(1)
	s.reads(planner, 4)
	plan := s.reconcile(planner, 1)
	if err := pipelines.StageShare(t.Context(), s.def, s.after(plan.Of, 1), "form1", 0); err != nil || len(s.staged()) != 1 {
		t.Fatal(err, s.staged())
	}
	for _, point := range []string{"staged", "prepared"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		o := s.after(plan.Of, 1)
		o.At = func(p string) {
			if p == point {
				cancel(errStop)
			}
		}
		if err := pipelines.StageShare(ctx, s.def, o, "form1", 1); !errors.Is(err, errStop) || len(s.staged()) != 1 {
			t.Fatalf("at %s: %v; %v is staged", point, err, s.staged())
		}
		if _, err := pipelines.CommitForm(ctx, s.def, o, "form1"); !errors.Is(err, errStop) || len(s.staged()) != 1 {
			t.Fatalf("at %s: %v; %v is staged", point, err, s.staged())
		}
	}
	if err := pipelines.EndForm(t.Context(), s.def, s.options(1), "form1"); err != nil || len(s.staged()) != 0 {
		t.Error(err, s.staged())
	}
	before := s.service.Counts()["results"]
	s.finish(2)
	if n := s.service.Counts()["results"] - before; n > 2 { // what changed meanwhile
		t.Errorf("another try asked %d times for results", n)
	}
	s.checkTidy()
}

// TestSharedRunIsStagedByMany stages and commits without a request. A share that was staged
// is not staged again, and one that is gone is staged by the process that commits.
func TestSharedRunIsStagedByMany(t *testing.T) {
	s := newSharing(t)
	s.plan(1)
	s.reads(planner, 4)
	plan := s.reconcile(planner, 1)
	before := len(s.service.Log())
	s.stages(plan, 1)
	first := s.staged()
	s.stages(plan, 2)
	if again := s.staged(); len(first) != 4 || !slices.Equal(slices.Sorted(slices.Values(first)), slices.Sorted(slices.Values(again))) {
		t.Errorf("%v is staged, and then %v", first, again)
	}
	if err := os.Remove(filepath.Join(s.path("days"), first[0])); err != nil {
		t.Fatal(err)
	}
	made := 0
	o := s.after(plan.Of, 1)
	o.At = func(point string) {
		if point == "prepared" {
			made++
		}
	}
	report, err := pipelines.CommitForm(t.Context(), s.def, o, "form1")
	if err != nil || made != 1 || report.Rows == 0 {
		t.Errorf("%v; the process that commits staged %d parts of %d rows", err, made, report.Rows)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, inJanuary))
	s.commit(plan, 2)
	if n := len(s.service.Log()) - before; n != 0 {
		t.Errorf("%d requests were sent to stage and to commit", n)
	}
	s.checkTidy()
}

// TestSharedRunOfEveryShape compares the run of several processes with that of one, for all
// results and outputs of several shapes. Objects and manifests are the same.
func TestSharedRunOfEveryShape(t *testing.T) {
	every := []definition.Output{
		file(), months(), wholeDataset(),
		{Path: "lists.csv", Format: "csv"},
		{Path: "typed/", Format: "parquet", Partition: definition.PartitionMonth, Compression: "zstd"},
	}
	form := generated(1200)
	alone, s := newSharingOf(t, form), newSharingOf(t, form)
	for _, is := range []*sharing{alone, s} {
		is.def = is.definition(slices.Clone(every)...)
		is.def.CheckpointAtDestination = true
	}
	one, err := pipelines.Run(t.Context(), alone.def, alone.o)
	if err != nil {
		t.Fatal(err)
	}
	o := s.options(1)
	plan, _, err := pipelines.PlanForm(t.Context(), s.def, o, "form1")
	if err != nil || plan == nil || plan.Groups < 3 {
		t.Fatal(plan, err)
	}
	s.reads(plan.Of, plan.Groups)
	plan, _, err = pipelines.ReconcileForm(t.Context(), s.def, s.after(plan.Of, 1), "form1")
	if err != nil || plan == nil || plan.Shares < 3 {
		t.Fatal(plan, err)
	}
	s.stages(plan, 1)
	many, err := pipelines.CommitForm(t.Context(), s.def, s.after(plan.Of, 1), "form1")
	if err != nil || many.Undated == 0 || many.Undated != one.Forms[0].Undated {
		t.Fatalf("%v; %+v", err, many)
	}
	want, got := alone.shown(), s.shown()
	for name := range want {
		if want[name] != got[name] {
			t.Errorf("%s differs:\n%s\n%s", name, want[name], got[name])
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d objects, and one process writes %d", len(got), len(want))
	}
	s.checkTidy()
}

// shown are all objects, without what differs from run to run.
func (s *sharing) shown() map[string]string {
	all := tree(s.t, s.dir)
	for name, text := range all {
		if strings.HasSuffix(name, "_SUCCESS") { // it holds the run's id
			all[name] = ""
		}
		if strings.HasSuffix(name, "manifest.json") {
			for _, differs := range []string{`"run_id": "[^"]*"`, `"created_at": "[^"]*"`, `"requests": {[^}]*}`} {
				text = regexp.MustCompile(differs).ReplaceAllString(text, "")
			}
			all[name] = strings.ReplaceAll(text, s.dir, "")
		}
	}
	return all
}

// TestSharedRunReadsOlderParts moves a result from a part of an earlier run to the range of
// a shared one. That one reads the part again, and replaces it.
func TestSharedRunReadsOlderParts(t *testing.T) {
	s := newSharing(t)
	if _, err := pipelines.Run(t.Context(), s.def, s.o); err != nil {
		t.Fatal(err)
	}
	moved, _ := s.form.Get(2)
	for i := range moved.Metas {
		moved.Metas[i].Value = strings.Replace(moved.Metas[i].Value, "2026-01-02", "2026-02-09", 1)
	}
	if err := s.form.Update(moved); err != nil {
		t.Fatal(err)
	}
	s.def.Extract.From, s.def.Extract.To = extracttest.Wall("2026-02-08"), extracttest.Wall("2026-02-13")
	plan, _, err := pipelines.PlanForm(t.Context(), s.def, s.options(1), "form1")
	if err != nil || plan == nil || plan.Groups < 2 {
		t.Fatal(plan, err)
	}
	s.reads(plan.Of, plan.Groups)
	plan, _, err = pipelines.ReconcileForm(t.Context(), s.def, s.after(plan.Of, 1), "form1")
	if err != nil || plan == nil || plan.Shares < 2 {
		t.Fatal(plan, err)
	}
	s.stages(plan, 1)
	if _, err := pipelines.CommitForm(t.Context(), s.def, s.after(plan.Of, 1), "form1"); err != nil {
		t.Fatal(err)
	}
	s.checkDataset("days", pipelinestest.Truth(s.form, func(r formservice.Result) bool { return pipelinestest.Date(r) != "" }))
	s.checkTidy()
}

// TestSharedRunDropsWhatIsStagedTwice holds that a try which was given up and went on leaves
// nothing behind.
func TestSharedRunDropsWhatIsStagedTwice(t *testing.T) {
	s := newSharing(t)
	s.plan(1)
	s.reads(planner, 4)
	plan := s.reconcile(planner, 1)
	o, once := s.after(plan.Of, 1), sync.Once{}
	o.At = func(point string) {
		if point == "staged" {
			once.Do(func() { // another worker does the same meanwhile
				if err := pipelines.StageShare(t.Context(), s.def, s.after(plan.Of, 2), "form1", 0); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err := pipelines.StageShare(t.Context(), s.def, o, "form1", 0); err != nil {
		t.Fatal(err)
	}
	s.stages(plan, 1)
	if n := len(s.staged()); n != 5 {
		t.Fatalf("%d objects are staged", n)
	}
	s.commit(plan, 1)
	s.checkTidy()
}

// TestSharedRunIsOvertakenLate runs the definition between the reconciliation and the end.
// The processes notice.
func TestSharedRunIsOvertakenLate(t *testing.T) {
	for name, staged := range map[string]bool{"before it is staged": false, "before the commit": true} {
		s := newSharing(t)
		s.plan(1)
		s.reads(planner, 4)
		plan := s.reconcile(planner, 1)
		if staged {
			s.stages(plan, 1)
		}
		if _, err := pipelines.Run(t.Context(), s.def, s.o); err != nil {
			t.Fatal(err)
		}
		if err := pipelines.StageShare(t.Context(), s.def, s.after(plan.Of, 1), "form1", 0); !errors.Is(err, checkpoint.ErrNoPlan) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := pipelines.CommitForm(t.Context(), s.def, s.after(plan.Of, 1), "form1"); !errors.Is(err, checkpoint.ErrNoPlan) {
			t.Errorf("%s: got %v", name, err)
		}
		s.checkDataset("days", pipelinestest.Truth(s.form, inJanuary))
		s.checkTidy()
	}
}

// TestSharedRunFindsDamage damages an object of the checkpoint between the processes. They
// notice, and the run that begins again reads what is missing.
func TestSharedRunFindsDamage(t *testing.T) {
	for _, what := range []string{"-rows", "-record", "snapshot-"} {
		s := newSharing(t)
		s.plan(1)
		s.reads(planner, 4)
		plan := s.reconcile(planner, 1)
		damaged := 0
		for file := range tree(t, s.path("days")) {
			if at := filepath.Join(s.path("days"), file); strings.Contains(file, what) && damaged < 1 {
				damaged++
				if err := os.WriteFile(at, []byte("damaged"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		failed := 0
		for share := range plan.Shares {
			err := pipelines.StageShare(t.Context(), s.def, s.after(plan.Of, 1), "form1", share)
			if errors.Is(err, checkpoint.ErrNoPlan) {
				failed++
			} else if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := pipelines.CommitForm(t.Context(), s.def, s.after(plan.Of, 1), "form1"); failed == 0 || !errors.Is(err, checkpoint.ErrNoPlan) {
			t.Errorf("%s: %d shares failed; %v", what, failed, err)
		}
		s.run = "20260215T120000Z-00000002"
		again, _, err := pipelines.PlanForm(t.Context(), s.def, s.options(1), "form1")
		if err != nil {
			t.Fatal(err)
		}
		s.reads(again.Of, again.Groups)
		s.finish(1)
		s.checkTidy()
	}
}

// TestSharedRunAsksForMore takes three windows of what was read away. The run asks for it again
// in groups, unless it is to go on alone.
func TestSharedRunAsksForMore(t *testing.T) {
	for name, alone := range map[string]bool{"by others": false, "alone": true} {
		s := newSharing(t)
		s.plan(1)
		s.reads(planner, 4)
		for file := range tree(t, s.path("days")) {
			if strings.Contains(file, "-p.1-") && !strings.Contains(file, "-p.1-0000000-") {
				if err := os.Remove(filepath.Join(s.path("days"), file)); err != nil {
					t.Fatal(err)
				}
			}
		}
		o := s.after(planner, 1)
		o.Shared.Alone = alone
		plan, _, err := pipelines.ReconcileForm(t.Context(), s.def, o, "form1")
		if err != nil || plan == nil {
			t.Fatal(plan, err)
		}
		if !alone {
			if plan.Groups != 3 || plan.Shares != 0 {
				t.Fatalf("the run goes on with %+v", plan)
			}
			s.reads(plan.Of, 3)
			plan = s.reconcile(plan.Of, 1)
		}
		s.stages(plan, 1)
		s.commit(plan, 1)
		if sent := s.service.Counts()["results"]; sent > 12 {
			t.Errorf("%s: results were asked for %d times", name, sent)
		}
		s.checkTidy()
	}
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
