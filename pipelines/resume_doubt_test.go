package pipelines_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reconcile"
)

func dated(r formservice.Result) bool { return pipelinestest.Date(r) != "" }

// TestKilledInOneOfTwoCommits: whatever step the one commit had come to while
// the other was done, the next run finishes it before anything else, and asks
// for what it needs in its own range.
func TestKilledInOneOfTwoCommits(t *testing.T) {
	for _, at := range []struct{ op, name string }{
		{"delete", load.SuccessName}, {"commit", ""}, {"put", load.ManifestName}, {"put", load.SuccessName}, {"delete", ".formetl/intent"},
	} {
		t.Run(at.op+" "+at.name, func(t *testing.T) {
			r := newDeclared(t)
			def := func() *definition.Definition { return r.daily(days(), months()) }
			o := watching(func(root, op, name string) error {
				if filepath.Clean(root) == r.path("months") && op == at.op && (at.name == "" || at.name == name) {
					return errBoom
				}
				return nil
			})
			o.Now = r.o.Now
			if _, err := pipelines.Run(t.Context(), def(), o); !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
			r.noCheckpoint()
			var log bytes.Buffer
			r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			if err := r.form.Finish(1, extracttest.Wall("2026-01-04 15:00:00")); err != nil {
				t.Fatal(err)
			}
			asked, report := r.asked(def())
			if len(asked) != 4 || report.Forms[0].Continued != "" || strings.Count(log.String(), "the commit of an earlier run was finished") != 1 {
				t.Errorf("asked for %v, report %+v\n%s", asked, report.Forms[0], &log)
			}
			for _, name := range []string{"days", "months"} {
				r.checkDataset(name, pipelinestest.Truth(r.form, inJanuary))
			}
		})
	}
}

// TestResumeWithTrust: windows that were read in the trust that counts will
// vouch for them are counted, also where it is not asked for any more.
func TestResumeWithTrust(t *testing.T) {
	for _, verify := range []bool{true, false} {
		r := newResumed(t)
		r.service.Faults.PageCap = 1
		def := r.daily(days())
		def.Extract.Verify = verify
		r.stopAt(def, "read", 3)
		def = r.daily(days())
		def.Extract.Verify = !verify
		_, report := r.asked(def)
		r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		if !report.Forms[0].Verified.Match {
			t.Errorf("verify %t, then not: %+v", verify, report.Forms[0].Verified)
		}
	}
}

// TestLostCommitKeepsNothing, and does not say that it does.
func TestLostCommitKeepsNothing(t *testing.T) {
	r := newResumed(t)
	var log bytes.Buffer
	o := r.o
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.At = func(p string) {
		if p == string(load.StepCheck) {
			r.writeManifest()
		}
	}
	_, err := pipelines.Run(t.Context(), r.daily(days()), o)
	if !errors.Is(err, load.ErrConflict) || strings.Contains(log.String(), "kept") {
		t.Errorf("%v\n%s", err, &log)
	}
	r.checkTidy()
}

// TestUndatedByStart: between a run that was stopped and the next one, a day gets an
// unfinished result, which has a date of its start alone, and loses another. Its count agrees
// with what was read. The pass over the results without a date meets the new one there.
func TestUndatedByStart(t *testing.T) {
	form := fourDays()
	if _, err := form.Insert(formservice.Result{ID: 90, Items: []formservice.Answer{{ID: "1", Values: []string{"undated"}}}}); err != nil {
		t.Fatal(err)
	}
	r := newResumedOf(t, form)
	r.service.SetFaults(formservice.Faults{IgnoreSort: true})
	def := func() *definition.Definition {
		d := r.definition(days())
		d.Source.Requests.Concurrency = 1
		return d
	}
	r.stopAt(def(), reconcile.PointVerified, 1)
	fresh := formservice.Result{ID: 91, Metas: []formservice.Meta{{ID: "result_status", Value: "Incomplete"}, {ID: "date_start", Value: "2026-01-02 15:00:00"}}}
	if _, err := form.Insert(fresh); err != nil {
		t.Fatal(err)
	}
	for _, old := range pipelinestest.Truth(form, nil) {
		if strings.HasPrefix(pipelinestest.Date(old), "2026-01-02") {
			form.Delete(old.ID)
			break
		}
	}
	r.asked(def())
	r.checkDataset("days", pipelinestest.Truth(form, nil))
}
