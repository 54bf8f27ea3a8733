package pipelines_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/maintain"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// partsOf are the parts of the dataset "days", as its manifest lists them.
func (r *resumed) partsOf() []load.Part {
	r.t.Helper()
	return readManifest(r.t, filepath.Join(r.path("days"), load.ManifestName)).Parts
}

// lose removes or empties a part of the dataset "days".
func (r *resumed) lose(p load.Part, empty bool) {
	r.t.Helper()
	file := filepath.Join(r.path("days"), filepath.FromSlash(p.Path))
	err := os.Remove(file)
	if empty {
		err = os.WriteFile(file, nil, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// edit gives a result another answer.
func (r *resumed) edit(id int64, finished string) {
	r.t.Helper()
	if err := r.form.Update(pipelinestest.Result(id, finished, "edited")); err != nil {
		r.t.Fatal(err)
	}
}

// TestPartsGoneAreMadeAgain: a run over the whole range writes the parts anew
// that are gone or empty, though its results equal those of the run before.
func TestPartsGoneAreMadeAgain(t *testing.T) {
	for _, incremental := range []bool{false, true} {
		r := newResumed(t)
		def := func() *definition.Definition {
			d := r.daily(days())
			d.Extract.Incremental, d.Extract.Lookback = incremental, 30*24*time.Hour
			return d
		}
		r.asked(def())
		before := r.partsOf()
		r.lose(before[1], false)
		r.lose(before[2], true)
		r.asked(def())
		after := r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary)).Parts
		for i, p := range after {
			if same := p.Path == before[i].Path; same != (i == 0 || i == 3) {
				t.Errorf("part %d was %s and is %s", i, before[i].Path, p.Path)
			}
		}
	}
}

// TestPartsGoneElsewhere: a run makes parts again that are gone outside its range.
func TestPartsGoneElsewhere(t *testing.T) {
	r := newResumed(t)
	r.asked(r.daily(days()))
	parts := r.partsOf()
	r.lose(parts[0], true)
	r.lose(parts[1], false)
	o := r.o
	o.From, o.To = extracttest.Wall("2026-01-04"), extracttest.Wall("2026-01-05")
	r.edit(4, "2026-01-04 09:00:00")
	report, err := pipelines.Run(t.Context(), r.daily(days()), o)
	if err != nil || report.Forms[0].Older != 2 {
		t.Fatalf("error %v, report %+v", err, report.Forms[0])
	}
	r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
}

// TestUndatedPartGone: no range reads results without a date again.
func TestUndatedPartGone(t *testing.T) {
	r := newResumed(t)
	def := func() *definition.Definition {
		d := r.definition(days())
		d.Extract.Incremental = true
		return d
	}
	r.asked(def())
	parts := r.partsOf()
	last := parts[len(parts)-1]
	if !last.Undated {
		t.Fatalf("the last part is %+v", last)
	}
	r.lose(last, false)
	if _, err := pipelines.Run(t.Context(), def(), r.o); !isA[*load.DamagedPartsError](err) || !strings.HasSuffix(err.Error(), " --full`") {
		t.Fatalf("error %v", err)
	}
	r.o.Full = true
	r.asked(def())
	r.checkDataset("days", pipelinestest.Truth(r.form, func(formservice.Result) bool { return true }))
}

// TestResumingWithPartsGone: a run that resumes from one that ended early also
// makes a part again that neither touched.
func TestResumingWithPartsGone(t *testing.T) {
	r := newResumed(t)
	r.asked(r.daily(days()))
	r.lose(r.partsOf()[0], false)
	def := func(to string) *definition.Definition {
		d := r.daily(days())
		d.Extract.From, d.Extract.To = extracttest.Wall("2026-01-03"), extracttest.Wall(to)
		return d
	}
	stopped := r.stopAt(def("2026-01-05"), "read", 1)
	report, err := pipelines.Run(t.Context(), def("2026-02-12"), r.o)
	if err != nil || len(report.Forms) != 1 {
		t.Fatalf("%d runs, error %v", len(report.Forms), err)
	}
	if f := report.Forms[0]; f.Continued != stopped.RunID || f.Kept != 1 || f.Older != 1 {
		t.Errorf("report %+v", f)
	}
	r.lose(r.partsOf()[1], true) // both lie before the next run's range
	r.o.From, r.o.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-01-03")
	r.asked(r.daily(days()))
	r.checkDataset("days", pipelinestest.Truth(r.form, func(x formservice.Result) bool { return pipelinestest.Date(x) != "" }))
}

// TestManifestLost: nothing is written beside parts that no manifest lists, and
// both ways out lead out.
func TestManifestLost(t *testing.T) {
	def := func(r *resumed) *definition.Definition { return r.daily(days()) }
	for name, way := range map[string]func(t *testing.T, r *resumed){
		"full": func(_ *testing.T, r *resumed) { r.o.Full = true },
		"clean": func(t *testing.T, r *resumed) {
			dry, err := maintain.Clean(t.Context(), def(r), r.o.Options, load.CleanOptions{DryRun: true, Unlisted: true})
			if err != nil || len(dry.Outputs[0].Removed) != 8 {
				t.Fatalf("a dry run tells of other than four parts and their id sets: %+v, %v", dry.Outputs, err)
			}
			if _, err := maintain.Clean(t.Context(), def(r), r.o.Options, load.CleanOptions{Unlisted: true}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			r.asked(def(r))
			r.edit(2, "2026-01-02 09:00:00")
			r.asked(def(r)) // one part is of the second generation by now
			if err := os.Remove(filepath.Join(r.path("days"), load.ManifestName)); err != nil {
				t.Fatal(err)
			}
			before := files(t, r.path("days"))
			r.service.Reset()
			_, err := pipelines.Run(t.Context(), def(r), r.o)
			unlisted, ok := errors.AsType[*load.UnlistedPartsError](err)
			if !ok || len(unlisted.Names) != 4 {
				t.Fatalf("error %v", err)
			}
			for _, say := range append(unlisted.Names, " --full`", " --unlisted`") {
				if !strings.Contains(err.Error(), say) {
					t.Errorf("%q is not said: %v", say, err)
				}
			}
			if n := len(r.service.Log()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
			if after := files(t, r.path("days")); !slices.Equal(before, after) {
				t.Errorf("the dataset has %v, had %v", after, before)
			}
			way(t, r)
			r.asked(def(r))
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}

// TestForeignPart: one part that the manifest does not know stops a run, is told
// by clean and stays, until it is to be removed.
func TestForeignPart(t *testing.T) {
	r := newResumed(t)
	r.asked(r.daily(days()))
	own := filepath.Join(r.path("days"), filepath.FromSlash(r.partsOf()[0].Path))
	foreign := strings.Replace(own, "-000001-", "-000007-", 1)
	data, err := os.ReadFile(own)
	if err == nil {
		err = os.WriteFile(foreign, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pipelines.Run(t.Context(), r.daily(days()), r.o); !isA[*load.UnlistedPartsError](err) {
		t.Fatalf("error %v", err)
	}
	mark := func() string {
		data, err := os.ReadFile(filepath.Join(r.path("days"), load.SuccessName))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before := mark()
	report, err := maintain.Clean(t.Context(), r.daily(days()), r.o.Options, load.CleanOptions{})
	if kept := report.Outputs[0].Kept; err != nil || len(kept) != 1 || kept[0].Kind != load.UnlistedPart || mark() != before {
		t.Fatalf("kept %+v, %v", kept, err)
	}
	report, err = maintain.Clean(t.Context(), r.daily(days()), r.o.Options, load.CleanOptions{Unlisted: true})
	if removed := report.Outputs[0].Removed; err != nil || len(removed) != 1 || removed[0].Path != foreign {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	if after := mark(); after == before || !strings.HasPrefix(after, before) {
		t.Errorf("_SUCCESS holds %q, held %q", after, before)
	}
	r.asked(r.daily(days()))
	r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
}

// TestFileGone: a single file is made anew, whatever became of the one that its
// manifest tells of.
func TestFileGone(t *testing.T) {
	for _, damage := range []func(string) error{os.Remove, func(file string) error { return os.WriteFile(file, []byte("x"), 0o600) }} {
		r := newResumed(t)
		def := func() *definition.Definition {
			return r.daily(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
		}
		r.asked(def())
		file := r.path("form1.ndjson")
		want, err := os.ReadFile(file)
		if err == nil {
			err = damage(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.asked(def())
		if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("%v: the file holds %q", err, got)
		}
	}
}

// TestFolderInTheWay: a file whose name a folder has is refused before any
// request, and so is a dataset whose folder is a file.
func TestFolderInTheWay(t *testing.T) {
	r := newResumed(t)
	write := func(name string) {
		if err := errors.Join(os.MkdirAll(r.path("out"), 0o700), os.WriteFile(r.path(name), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("out/x")
	write("lake")
	for _, out := range []definition.Output{{Path: "out", Format: "ndjson"}, {Path: "lake/", Format: "ndjson"}} {
		r.service.Reset()
		_, err := pipelines.Run(t.Context(), r.daily(out), r.o)
		if !isA[*load.CreateError](err) || len(r.service.Log()) != 0 {
			t.Errorf("%s: %d requests, error %v", out.Path, len(r.service.Log()), err)
		}
	}
}

// TestLeasesInOrder: of two runs that want the same two outputs, in whatever
// order, the one that meets the other leaves it all of them.
func TestLeasesInOrder(t *testing.T) {
	r := newResumed(t)
	copied := days()
	copied.Path = "copy/"
	d, err := local.New(r.path("copy"))
	if err != nil {
		t.Fatal(err)
	}
	for pipeline, others := range map[string]bool{"e2e": false, "another": true} {
		lease, err := d.Acquire(t.Context(), "", load.Holder{RunID: "twin", Pipeline: pipeline})
		if err != nil {
			t.Fatal(err)
		}
		r.service.Reset()
		_, err = pipelines.Run(t.Context(), r.daily(days(), copied), r.o)
		if !isA[*load.HeldError](err) {
			t.Fatalf("error %v", err)
		}
		if asked := len(r.service.Log()) > 0; asked != others {
			t.Errorf("held by %s: requests were sent: %v", pipeline, asked)
		}
		if _, err := os.Stat(filepath.Join(r.path("days"), load.ManifestName)); (err == nil) != others {
			t.Errorf("held by %s: the other output: %v", pipeline, err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(r.path("days")); err != nil {
			t.Fatal(err)
		}
	}
}

// isA tells whether an error is, or wraps, one of a type.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
