//go:build resumeold

package pipelines_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

func dated(r formservice.Result) bool { return date(r) != "" }

// TestReadingsOfTwoAttempts: one output could not go on with a run that the
// other went on with; then both have a reading of the window of the same
// number, and yet not the same.
func TestReadingsOfTwoAttempts(t *testing.T) {
	r := newResumed(t)
	copied := days()
	copied.Path = "copy/"
	def := func() *definition.Definition { return r.daily(days(), copied) }
	r.stopAt(def(), "recorded", 5)
	if err := r.form.Finish(3, at(t, "2026-01-04 12:00:00")); err != nil {
		t.Fatal(err)
	}
	d, err := local.New(r.path("days"))
	if err != nil {
		t.Fatal(err)
	}
	lease, err := d.Acquire(t.Context(), "", load.Holder{RunID: "other"})
	if err != nil {
		t.Fatal(err)
	}
	r.stopAt(def(), "recorded", 1)
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.asked(def())
	for _, name := range []string{"days", "copy"} {
		r.checkDataset(name, truth(r.form, inJanuary))
	}
}

// TestMovedBeyond: a result that a kept window holds is finished again after
// the end of the range that was gone on with, and no count tells.
func TestMovedBeyond(t *testing.T) {
	for name, c := range map[string]struct {
		verify bool
		point  string
		change func(*formservice.Form) error
	}{
		"not verified": {false, "recorded", func(*formservice.Form) error { return nil }},
		"balanced": {true, "recorded", func(f *formservice.Form) error {
			_, err := f.Insert(result(100, "2026-01-04 15:00:00", "instead"))
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
				r.killAt(def(), c.point)
			} else {
				r.stopAt(def(), c.point, 1)
			}
			if err := errors.Join(r.form.Finish(1, at(t, "2026-02-16 09:00:00")), c.change(r.form)); err != nil {
				t.Fatal(err)
			}
			r.o.Now = zoned(t, r.world, "2026-02-18 12:00:00")
			r.asked(def())
			r.checkDataset("days", truth(r.form, dated))
		})
	}
}

// killAt ends the run's commit at a step as a crash would.
func (r *resumed) killAt(def *definition.Definition, step string) {
	r.t.Helper()
	killed := errors.New("killed")
	o := watching(func(_, op, _ string) error {
		if op == "commit" && step == string(load.StepParts) {
			return killed
		}
		return nil
	})
	o.Now = r.o.Now
	if _, err := pipelines.Run(r.t.Context(), def, o); !errors.Is(err, killed) {
		r.t.Fatal(err)
	}
}

// TestGoOnWithARange: a run without a range goes on with one that had one, and
// the other way round. Results without a date belong to everything.
func TestGoOnWithARange(t *testing.T) {
	for _, verify := range []bool{true, false} {
		r := newResumed(t)
		all := func() *definition.Definition {
			d := r.daily(days())
			d.Extract.From, d.Extract.To, d.Extract.Verify = time.Time{}, time.Time{}, verify
			return d
		}
		ranged := func() *definition.Definition {
			d := r.daily(days())
			d.Extract.From, d.Extract.Verify = at(t, "2026-01-02"), verify
			return d
		}
		r.stopAt(ranged(), "recorded", 1)
		r.asked(all())
		r.checkDataset("days", truth(r.form, nil))

		r = newResumed(t)
		r.stopAt(all(), "recorded", 1)
		r.asked(ranged())
		r.checkDataset("days", truth(r.form, nil))
	}
}

// TestGoOnWithTrust: windows that were read in the trust that counts will
// vouch for them are counted, also where it is not asked for any more.
func TestGoOnWithTrust(t *testing.T) {
	for _, verify := range []bool{true, false} {
		r := newResumed(t)
		r.service.Faults.PageCap = 1
		def := r.daily(days())
		def.Extract.Verify = verify
		r.stopAt(def, "recorded", 3)
		def = r.daily(days())
		def.Extract.Verify = !verify
		_, report := r.asked(def)
		r.checkDataset("days", truth(r.form, inJanuary))
		if !report.Forms[0].Verified.Match {
			t.Errorf("verify %t, then not: %+v", verify, report.Forms[0].Verified)
		}
	}
}

// TestOneOutputCannotGoOn: the others commit, and the error names the place.
func TestOneOutputCannotGoOn(t *testing.T) {
	r := newResumed(t)
	copied := days()
	copied.Path = "copy/"
	r.stopAt(r.daily(days(), copied), "recorded", 5)
	o := watching(func(root, op, name string) error {
		if op == "delete" && strings.Contains(root, "/days") && strings.Contains(name, "journal-") {
			return errors.New("boom")
		}
		return nil
	})
	o.Now = r.o.Now
	_, err := pipelines.Run(t.Context(), r.daily(days(), copied), o)
	if err == nil || !strings.Contains(err.Error(), "/days/: boom") {
		t.Errorf("error %v", err)
	}
	r.checkDataset("copy", truth(r.form, inJanuary))
}

// TestAnothersJournalStays: a definition that does not fit the dataset is
// refused, and discards nothing.
func TestAnothersJournalStays(t *testing.T) {
	r := newResumed(t)
	if _, err := pipelines.Run(t.Context(), r.daily(days()), r.o); err != nil {
		t.Fatal(err)
	}
	if err := r.form.Finish(3, at(t, "2026-01-04 12:00:00")); err != nil {
		t.Fatal(err)
	}
	r.stopAt(r.daily(days()), "recorded", 3)
	def := r.daily(days())
	def.Source.Account = "other"
	_, err := pipelines.Run(t.Context(), def, r.o)
	if e := new(output.DatasetChangedError); !errors.As(err, &e) || r.staged() != 3 {
		t.Errorf("%v; %d staged", err, r.staged())
	}
}

// noAbort is a destination that is gone when the run tidies up.
type noAbort struct{ *local.Destination }

func (noAbort) Abort(context.Context, load.Prepared) error {
	return errors.New("the store is gone")
}

// TestOneLine: what cannot be tidied up after a failure is told in the log.
func TestOneLine(t *testing.T) {
	r := newResumed(t)
	o := r.o
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.Tables.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
		d, err := local.New(root)
		return noAbort{d}, err
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	o.At = func(p string) {
		if p == "verified" {
			cancel(errStop)
		}
	}
	_, err := pipelines.Run(ctx, r.daily(slices.Clone(fileAndDays())...), o)
	if !errors.Is(err, errStop) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q", err)
	}
	if !strings.Contains(log.String(), "the store is gone (and 3 more)") {
		t.Errorf("log %s", &log)
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

// TestOutputsDividedOtherwise share their windows side by side.
func TestOutputsDividedOtherwise(t *testing.T) {
	r := newResumed(t)
	for range 3 {
		def := r.daily(days(), months())
		def.Source.Requests.Concurrency = 4
		r.asked(def)
	}
	r.checkDataset("months", truth(r.form, inJanuary))
}

// TestChangedBetweenTwoCommits: one output was committed, the form changed,
// and the other one goes on: in the end both hold what there is.
func TestChangedBetweenTwoCommits(t *testing.T) {
	for _, second := range []definition.Output{months(), {Path: "copy/", Format: "ndjson", Partition: definition.PartitionDay}} {
		r := newResumed(t)
		def := func() *definition.Definition { return r.daily(days(), second) }
		r.stopAt(def(), "close", 1)
		if _, err := r.form.Insert(result(100, "2026-01-02 15:00:00", "new")); err != nil {
			t.Fatal(err)
		}
		r.asked(def())
		for _, name := range []string{"days", strings.TrimSuffix(second.Path, "/")} {
			r.checkDataset(name, truth(r.form, inJanuary))
		}
	}
}

// damaged changes the files below a folder whose names hold a text, keeping
// their length.
func (r *resumed) damaged(text string) {
	r.t.Helper()
	for _, file := range files(r.t, r.path("days")) {
		if !strings.Contains(file, text) {
			continue
		}
		data, err := os.ReadFile(file)
		if err == nil {
			data[len(data)/2] ^= 1
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestGoOnWithDamage: what is staged is compared by its checksum before it is
// taken over.
func TestGoOnWithDamage(t *testing.T) {
	r := newResumed(t)
	r.stopAt(r.daily(days()), "recorded", 2)
	r.damaged("staged-")
	_, report := r.asked(r.daily(days()))
	if report.Forms[0].Kept != 0 {
		t.Errorf("%d windows were kept", report.Forms[0].Kept)
	}
	r.checkDataset("days", truth(r.form, inJanuary))
}

// TestFullMendsDamage: a part that is not what its manifest says is made anew.
func TestFullMendsDamage(t *testing.T) {
	r := newResumed(t)
	r.asked(r.daily(days()))
	r.damaged("part-")
	r.o.Full = true
	r.asked(r.daily(days()))
	r.checkDataset("days", truth(r.form, inJanuary))
}

// TestNameTaken: a file that nobody lists lies in a part's place. That is told
// once and for all, not as something that passes.
func TestNameTaken(t *testing.T) {
	r := newResumed(t)
	r.asked(r.daily(days()))
	if err := os.Remove(filepath.Join(r.path("days"), load.ManifestName)); err != nil {
		t.Fatal(err)
	}
	r.damaged("part-")
	_, err := pipelines.Run(t.Context(), r.daily(days()), r.o)
	if e := new(load.UnlistedPartsError); !errors.As(err, &e) || len(e.Names) != 4 || strings.Count(err.Error(), "dt=2026-01-0") != 4 {
		t.Errorf("error %v", err)
	}
	r.leaveHost()
	r.checkTidy()
}
