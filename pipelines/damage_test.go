package pipelines_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
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

// put writes a file of the world.
func (w *world) put(name, data string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(data), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// TestPartsGone: a run makes parts again that are gone or have other bytes, within its range,
// though its results equal those of the run before, and those that are gone outside of it.
func TestPartsGone(t *testing.T) {
	for older, from := range map[int]string{0: "2026-01-01", 2: "2026-01-04"} {
		r := newResumed(t)
		r.asked(r.daily(days()))
		before := r.partsOf()
		r.lose(before[0], true)
		r.lose(before[1], false)
		if older == 0 {
			r.put("days/"+before[2].Path, strings.Repeat("x", int(before[2].Bytes)))
		}
		r.o.Range = between(extracttest.Wall(from), extracttest.Wall("2026-01-05"))
		if plan, err := pipelines.MakePlan(t.Context(), r.daily(days()), r.o, true); err != nil || !strings.HasPrefix(plan.Forms[0].Warnings[0], "missing or damaged: 2 parts of ") {
			t.Errorf("the plan is %+v, %v", plan.Forms[0], err)
		}
		var log bytes.Buffer
		r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if f := r.runBy(r.daily(days()), r.o).Forms[0]; f.Older != older || strings.Count(log.String(), "uploaded file of it, is damaged or missing") != older {
			t.Errorf("report %+v, log %s", f, &log)
		}
		for i, p := range r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary)).Parts {
			if again := p.Path != before[i].Path; again != (i < 2 || i == 2 && older == 0) {
				t.Errorf("part %d was %s and is %s", i, before[i].Path, p.Path)
			}
		}
	}
}

// TestUndatedPartGone: a part of results without a date is made again too, though no range reads it.
func TestUndatedPartGone(t *testing.T) {
	r := newResumed(t)
	def := func() *definition.Definition {
		d := r.definition(days())
		d.Extract.Incremental = true
		return d
	}
	var log bytes.Buffer
	r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.asked(def())
	parts := r.partsOf()
	last := parts[len(parts)-1]
	if !last.Undated || !strings.Contains(log.String(), "new or empty") {
		t.Fatalf("the last part is %+v, the log %s", last, &log)
	}
	r.lose(last, false)
	r.asked(def())
	r.checkDataset("days", pipelinestest.Truth(r.form, func(formservice.Result) bool { return true }))
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
		var log bytes.Buffer
		r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		_, err = pipelines.Run(t.Context(), r.daily(days(), copied), r.o)
		if !isA[*load.HeldError](err) {
			t.Fatalf("error %v", err)
		}
		if asked := len(r.service.Log()) > 0; asked != others || strings.Contains(log.String(), "the run goes on") != others {
			t.Errorf("held by %s: requests were sent: %v, log %s", pipeline, asked, &log)
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
