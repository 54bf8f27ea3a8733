package pipelines_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
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
	if f := report.Forms[0]; f.Continued == "" || f.WindowsKept != 47 || !slices.Equal(asked, []string{"2026-02-17", "2026-02-18"}) {
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
		if f := report.Forms[0]; f.Continued == "" || f.WindowsKept != f.Windows-1 || f.Undated != 1 || f.Rows != int64(len(pipelinestest.Truth(r.form, nil))) || f.Requests.Results > 3 {
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
			if n := r.pages(); f.Continued == "" || f.WindowsKept >= f.Windows || before < 2 || n > 38-28 {
				t.Errorf("%d pieces; %d of about 38 pages were asked for, report %+v", before, n, f)
			}
			r.checkAll(outs, inJanuary)
			sameTree(t, dataOnly(tree(t, whole.dir)), dataOnly(tree(t, r.dir)))
		})
	}
}

// written are the files of a world: data, codebooks, and manifests without what tells runs apart,
// which are their ids, times and requests.
func (r *resumed) written() map[string]string {
	r.t.Helper()
	files := tree(r.t, r.dir)
	for name := range files {
		switch {
		case strings.HasSuffix(name, load.SuccessName):
			delete(files, name)
		case strings.HasSuffix(name, "manifest.json"):
			m := readManifest(r.t, filepath.Join(r.dir, name))
			m.RunID, m.CreatedAt, m.Requests = "run", time.Time{}, load.Requests{}
			data, err := m.Encode()
			if err != nil {
				r.t.Fatal(err)
			}
			files[name] = string(data)
		}
	}
	return files
}

// TestResumedRunGivesTheSameBytes: whatever point a run is stopped at, neither data nor codebooks
// nor manifests that the next one writes show it, also where earlier manifests give the columns. The
// headings come with first pages alone, and the run that resumes may read none.
func TestResumedRunGivesTheSameBytes(t *testing.T) {
	needs.Slow(t)
	declare := func(unknown schemas.Unknown) func(def *definition.Definition) {
		return func(def *definition.Definition) {
			def.Schema = declared(t, unknown, schemas.OnErrorReject, "string")
		}
	}
	for name, edit := range map[string]func(def *definition.Definition){
		"inferred": func(*definition.Definition) {}, "by label": func(def *definition.Definition) { def.Names = schemas.ByLabel },
		"declared": declare(schemas.UnknownIgnore), "declared, the rest added": declare(schemas.UnknownAdd),
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, again %t", name, again), func(t *testing.T) {
				run := func(stop string, n int) map[string]string {
					r := newResumed(t)
					define := func() *definition.Definition {
						def := r.daily(definition.Output{Path: "form1.csv", Format: "csv"}, definition.Output{Path: "form1.parquet", Format: "parquet"}, days(), wholeDataset())
						edit(def)
						return def
					}
					if again {
						r.asked(define())
						r.answers(2, "changed")
					}
					if stop != "" {
						r.stopAt(define(), stop, n)
					}
					r.asked(define())
					return r.written()
				}
				undisturbed := run("", 0)
				for point, n := range map[string]int{"planned": 1, "piece": 2, "read": 3, "verified": 1, "snapshot": 1, "staged": 2, "prepared": 3} {
					if sameTree(t, undisturbed, run(point, n)); t.Failed() {
						t.Fatalf("stopped at %s %d", point, n)
					}
				}
			})
		}
	}
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
