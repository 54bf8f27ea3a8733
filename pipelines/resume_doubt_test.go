package pipelines_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reconcile"
)

func dated(r formservice.Result) bool { return pipelinestest.Date(r) != "" }

// TestReadingsOfTwoAttempts: a result moves between the attempts from a window
// that one of them read to a window that another one did, there and back. No
// reading is taken for that of another attempt.
func TestReadingsOfTwoAttempts(t *testing.T) {
	for shape, outs := range shapes() {
		t.Run(shape, func(t *testing.T) {
			r := newDeclared(t)
			def := func() *definition.Definition { return r.daily(slices.Clone(outs)...) }
			r.stopAt(def(), "read", 2)
			if err := r.form.Finish(3, extracttest.Wall("2026-01-01 12:00:00")); err != nil { // from a day to be read to one that was
				t.Fatal(err)
			}
			r.stopAt(def(), "read", 1)
			if err := r.form.Finish(2, extracttest.Wall("2026-01-04 12:00:00")); err != nil { // from a day that was read to one to be
				t.Fatal(err)
			}
			r.asked(def())
			r.checkAll(outs, inJanuary)
		})
	}
}

// TestMovedBeyond: a result that a kept window holds is finished again after
// the end of the range of the run that was stopped, and no count tells.
func TestMovedBeyond(t *testing.T) {
	for name, c := range map[string]struct {
		verify bool
		point  string
		change func(*formservice.Form) error
	}{
		"not verified": {false, "read", func(*formservice.Form) error { return nil }},
		"balanced": {true, "read", func(f *formservice.Form) error {
			_, err := f.Insert(pipelinestest.Result(100, "2026-01-04 15:00:00", "instead"))
			return err
		}},
		"in a commit that was finished": {true, "parts", func(*formservice.Form) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			def := func() *definition.Definition {
				d := r.daily(days())
				d.Extract.To, d.Extract.Verify = time.Time{}, c.verify
				return d
			}
			if c.point == "parts" {
				r.killAt(def(), "days", load.StepParts)
			} else {
				r.stopAt(def(), c.point, 1)
			}
			if err := errors.Join(r.form.Finish(1, extracttest.Wall("2026-02-16 09:00:00")), c.change(r.form)); err != nil {
				t.Fatal(err)
			}
			r.o.Now = zoned(t, r.world, "2026-02-18 12:00:00")
			r.asked(def())
			r.checkDataset("days", pipelinestest.Truth(r.form, dated))
		})
	}
}

// killAt ends the commit of one output at a step as a crash would.
func (r *resumed) killAt(def *definition.Definition, output string, step load.Step) {
	r.t.Helper()
	killed := errors.New("killed")
	at := map[load.Step][2]string{
		load.StepIntent: {"put", ".formetl/intent"}, load.StepUnmark: {"delete", load.SuccessName}, load.StepParts: {"commit", ""},
		load.StepManifest: {"put", load.ManifestName}, load.StepMark: {"put", load.SuccessName}, load.StepClose: {"delete", ".formetl/intent"},
	}[step]
	if at[0] == "" {
		r.t.Fatalf("no commit can be killed at %s", step)
	}
	o := watching(func(root, op, name string) error {
		if filepath.Clean(root) == r.path(output) && op == at[0] && (at[1] == "" || at[1] == name) {
			return killed
		}
		return nil
	})
	o.Now = r.o.Now
	if _, err := pipelines.Run(r.t.Context(), def, o); !errors.Is(err, killed) {
		r.t.Fatal(err)
	}
}

// TestKilledInOneOfTwoCommits: whatever step the one commit had come to while
// the other was done, the next run finishes it before anything else, and asks
// for what it needs in its own range.
func TestKilledInOneOfTwoCommits(t *testing.T) {
	for _, step := range []load.Step{load.StepUnmark, load.StepParts, load.StepManifest, load.StepMark, load.StepClose} {
		t.Run(string(step), func(t *testing.T) {
			r := newDeclared(t)
			def := func() *definition.Definition { return r.daily(days(), months()) }
			r.killAt(def(), "months", step)
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

// TestResumeWithARange: a run without a range resumes from one that had one, and
// the other way round. Results without a date belong to everything.
func TestResumeWithARange(t *testing.T) {
	for _, verify := range []bool{true, false} {
		r := newResumed(t)
		all := func() *definition.Definition {
			d := r.daily(days())
			d.Extract.From, d.Extract.To, d.Extract.Verify = time.Time{}, time.Time{}, verify
			return d
		}
		ranged := func() *definition.Definition {
			d := r.daily(days())
			d.Extract.From, d.Extract.Verify = extracttest.Wall("2026-01-02"), verify
			return d
		}
		r.stopAt(ranged(), "read", 1)
		r.asked(all())
		r.checkDataset("days", pipelinestest.Truth(r.form, nil))

		r = newResumed(t)
		r.stopAt(all(), "read", 1)
		r.asked(ranged())
		r.checkDataset("days", pipelinestest.Truth(r.form, func(x formservice.Result) bool { return inJanuary(x) && pipelinestest.Date(x) >= "2026-01-02" }))
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

// TestAnothersCheckpointStays: a definition that does not fit the dataset is
// refused, and discards nothing.
func TestAnothersCheckpointStays(t *testing.T) {
	r := newResumed(t)
	if _, err := pipelines.Run(t.Context(), r.daily(days()), r.o); err != nil {
		t.Fatal(err)
	}
	if err := r.form.Finish(3, extracttest.Wall("2026-01-04 12:00:00")); err != nil {
		t.Fatal(err)
	}
	r.stopAt(r.daily(days()), "read", 3)
	before := r.checkpoints("*")
	def := r.daily(days())
	def.Source.Account = "other"
	_, err := pipelines.Run(t.Context(), def, r.o)
	if e := new(output.DatasetChangedError); !errors.As(err, &e) || !slices.Equal(r.checkpoints("*"), before) {
		t.Errorf("%v; %v are left of %v", err, r.checkpoints("*"), before)
	}
	if asked, report := r.asked(r.daily(days())); len(asked) != 1 || report.Forms[0].Kept != 3 {
		t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
	}
	r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
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
