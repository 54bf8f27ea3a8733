package pipelines_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// openEnded reads from January up to now.
func (r *declaredRun) openEnded() *definition.Definition {
	def := r.daily(days())
	def.Extract.To = time.Time{}
	return def
}

// stopBeyond stops a run, and then the one that resumes from it days later,
// after that had read what the earlier one left and a part of what lies beyond.
func (r *declaredRun) stopBeyond() {
	r.t.Helper()
	r.stopAt(r.openEnded(), "read", 4) // the four days of January
	for id, finished := range map[int64]string{100: "2026-02-16 09:00:00", 101: "2026-02-17 09:00:00"} {
		if _, err := r.form.Insert(pipelinestest.Result(id, finished, "beyond")); err != nil {
			r.t.Fatal(err)
		}
	}
	r.o.Now = zoned(r.t, r.world, "2026-02-18 12:00:00")
	r.stopAt(r.openEnded(), "read", 42+1) // what the earlier run left, and a day beyond
}

// TestResumedRunIsStopped: the run that resumes from an earlier one is itself
// stopped, beyond the range of that one, and the next one resumes from both.
func TestResumedRunIsStopped(t *testing.T) {
	r := newDeclared(t)
	r.stopBeyond()
	asked, report := r.asked(r.openEnded())
	if f := report.Forms[0]; f.Continued == "" || f.Kept != 47 || !slices.Equal(asked, []string{"2026-02-17", "2026-02-18"}) {
		t.Errorf("asked for %v, report %+v", asked, f)
	}
	r.checkDataset("days", pipelinestest.Truth(r.form, dated))
}

// TestUndatedAreReadAgain: which results have no date may change with every
// window that is read, so they are not taken over.
func TestUndatedAreReadAgain(t *testing.T) {
	for _, point := range []string{"verified", "snapshot", "prepared"} {
		r := newDeclared(t)
		all := func() *definition.Definition {
			def := r.openEnded()
			def.Extract.From = time.Time{}
			return def
		}
		r.stopAt(all(), point, 1)
		_, report := r.asked(all())
		if f := report.Forms[0]; f.Continued == "" || f.Kept != f.Windows-1 || f.Undated != 1 || f.Rows != int64(len(pipelinestest.Truth(r.form, nil))) || f.Requests.Results > 3 {
			t.Errorf("stopped at %s: report %+v", point, f)
		}
		r.checkDataset("days", pipelinestest.Truth(r.form, nil))
	}
}

// crowded is a world whose form has so many results on one day, and two on each
// of the days around it.
func crowded(t *testing.T, n int64) *declaredRun {
	t.Helper()
	results := make([]formservice.Result, 0, n+4)
	for id := range n {
		results = append(results, pipelinestest.Result(id+1, "2026-01-02 09:00:00", fmt.Sprint("r", id)))
	}
	for i, day := range []string{"2026-01-01", "2026-01-03", "2026-01-01", "2026-01-03"} {
		results = append(results, pipelinestest.Result(n+1+int64(i), day+" 10:00:00", "beside"))
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	w := newWorld(t, form)
	o := options()
	o.Now = zoned(t, w, "2026-02-15 12:00:00")
	return &declaredRun{&resumed{world: w, o: o, form: form}}
}

// pages counts the requests for results since the service was reset.
func (w *world) pages() (n int) {
	for _, q := range w.service.Log() {
		if q.Transaction == formservice.TransactionResults {
			n++
		}
	}
	return n
}

// TestResumeInTheMiddleOfAWindow: what was read of a window that is large is
// not asked for again, with one output or several, declared columns or inferred
// ones, and the bytes are those of a run that was not stopped.
func TestResumeInTheMiddleOfAWindow(t *testing.T) {
	for shape, declared := range map[string]bool{"a file": false, "one part": true, "divided otherwise": false} {
		t.Run(shape, func(t *testing.T) {
			outs := shapes()[shape]
			define := func(r *declaredRun) *definition.Definition {
				d := r.daily(slices.Clone(outs)...)
				if !declared {
					d.Schema = nil
				}
				return d
			}
			whole := crowded(t, 3500)
			whole.asked(define(whole))
			r := crowded(t, 3500)
			r.stopAt(define(r), "piece", 4) // the day before, and pieces of this one are on disk
			before := len(r.checkpoints("*-record"))
			_, report := r.asked(define(r))
			f := report.Forms[0]
			if n := r.pages(); f.Continued == "" || f.Kept >= f.Windows || before < 2 || n > 38-28 {
				t.Errorf("%d pieces; %d of about 38 pages were asked for, report %+v", before, n, f)
			}
			r.checkAll(outs, inJanuary)
			sameTree(t, dataOnly(tree(t, whole.dir)), dataOnly(tree(t, r.dir)))
		})
	}
}

// TestKilledInTheMiddleOfAWindowAgainAndAgain: each run adds some pieces, and
// each page is asked for hardly more than once.
func TestKilledInTheMiddleOfAWindowAgainAndAgain(t *testing.T) {
	r := crowded(t, 6000)
	def := func() *definition.Definition { return r.daily(file(), days()) }
	r.service.Reset()
	for range 4 {
		r.stopAt(def(), "piece", 2)
	}
	stopped := r.pages()
	_, report := r.asked(def())
	if n := stopped + r.pages(); n > 61+5*11 || report.Forms[0].Continued == "" { // a piece is lost at each stop
		t.Errorf("%d pages were asked for, report %+v", n, report.Forms[0])
	}
	r.checkAll([]definition.Output{file(), days()}, inJanuary)
}

// TestWindowThatChangedInTheMiddle: results of the part of a window that was
// read move within it, leave it, come to it or are deleted before the rest is
// read.
func TestWindowThatChangedInTheMiddle(t *testing.T) {
	for name, change := range map[string]func(r *declaredRun){
		"deleted":             func(r *declaredRun) { r.form.Delete(7) },
		"left for a day read": func(r *declaredRun) { _ = r.form.Finish(7, extracttest.Wall("2026-01-01 15:00:00")) },
		"left for a day to be read": func(r *declaredRun) {
			_ = r.form.Finish(7, extracttest.Wall("2026-01-03 15:00:00"))
		},
		"came from a day read": func(r *declaredRun) { _ = r.form.Finish(3503, extracttest.Wall("2026-01-02 15:00:00")) },
		"moved within it":      func(r *declaredRun) { _ = r.form.Finish(7, extracttest.Wall("2026-01-02 15:00:00")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := crowded(t, 3500)
			def := func() *definition.Definition { return r.daily(file(), days()) }
			r.stopAt(def(), "piece", 4)
			change(r)
			_, report := r.asked(def())
			if f := report.Forms[0]; !f.Verified.Match || f.Continued == "" {
				t.Errorf("report %+v", f)
			}
			if name == "moved within it" || name == "left for a day read" { // it has a state that it had when it was read
				if m := readManifest(t, r.path("form1.ndjson.manifest.json")); m.Rows != 3504 {
					t.Errorf("%d rows", m.Rows)
				}
				return
			}
			r.checkAll([]definition.Output{file(), days()}, inJanuary)
		})
	}
}

// TestResumedRunGivesTheSameBytes: whatever point a run is stopped at, what the
// next one writes does not show it.
func TestResumedRunGivesTheSameBytes(t *testing.T) {
	outs := []definition.Output{{Path: "form1.csv", Format: "csv"}, {Path: "form1.parquet", Format: "parquet"}, days(), wholeDataset()}
	whole := newResumed(t)
	whole.asked(whole.daily(slices.Clone(outs)...))
	for _, point := range []string{"planned", "piece", "read", "verified", "snapshot", "staged", "prepared"} {
		for _, n := range []int{1, 2, 3} {
			if n > 1 && (point == "planned" || point == "verified" || point == "snapshot") {
				continue
			}
			r := newResumed(t)
			r.stopAt(r.daily(slices.Clone(outs)...), point, n)
			r.asked(r.daily(slices.Clone(outs)...))
			sameTree(t, dataOnly(tree(t, whole.dir)), dataOnly(tree(t, r.dir)))
			if t.Failed() {
				t.Fatalf("stopped at %s, %d", point, n)
			}
		}
	}
}

// TestPlanIsKept: counts that the earlier run asked for are not asked for again
// where they cost much, also where nothing was read by then.
func TestPlanIsKept(t *testing.T) {
	form := generated(600)
	w := newWorld(t, form)
	r := &declaredRun{&resumed{world: w, o: options(), form: form}}
	def := func() *definition.Definition { return w.definition(file(), days()) }
	r.service.Reset()
	r.stopAt(def(), "planned", 1)
	counted := r.service.Counts()[formservice.TransactionCount]
	if counted < 4 {
		t.Fatalf("the plan cost %d counts", counted)
	}
	if n := len(r.checkpoints("header")); n != 0 {
		t.Fatal("the plan is kept before it is whole")
	}
	ended := errors.New("the end")
	r.service.Reset()
	o := r.o
	o.At = nil
	r.service.Decide = func(q formservice.Request) formservice.Fault {
		if q.Transaction == formservice.TransactionResults && !strings.Contains(q.Query, "fs_sort=") { // what changed last is asked within the plan
			return formservice.FaultTruncate
		}
		return formservice.NoFault
	}
	first := def()
	first.Source.Requests.Retries = 0
	if _, err := pipelines.Run(t.Context(), first, o); err == nil || errors.Is(err, ended) {
		t.Fatal(err)
	}
	r.service.Decide = nil
	_, report := r.asked(def())
	if n := report.Forms[0].Requests.Count; n > 6 {
		t.Errorf("%d counts were asked for, and the plan cost %d", n, counted)
	}
	w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
}

// TestCheckpointIsPrivate: it holds what the outputs will, and only its owner
// reads it.
func TestCheckpointIsPrivate(t *testing.T) {
	r := newDeclared(t)
	r.stopAt(r.daily(file()), "read", 2)
	all := r.checkpoints("*")
	if len(all) != 5 { // header, and two pieces
		t.Errorf("the checkpoint is %v", all)
	}
	for _, name := range all {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if ext := filepath.Ext(name); ext != "" {
			t.Errorf("%s has the extension of data", name)
		}
	}
}
