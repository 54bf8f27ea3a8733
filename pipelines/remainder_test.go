//go:build resumeold

package pipelines_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// openEnded reads from January up to now.
func (r *resumed) openEnded() *definition.Definition {
	def := r.daily(days())
	def.Extract.To = time.Time{}
	return def
}

// stopInRemainder stops a run, and then the one that goes on with it, after it
// had ended the earlier one's range and recorded a part of what lies beyond.
func (r *resumed) stopInRemainder() {
	r.t.Helper()
	r.stopAt(r.openEnded(), "recorded", 2)
	for id, finished := range map[int64]string{100: "2026-02-16 09:00:00", 101: "2026-02-17 09:00:00"} {
		if _, err := r.form.Insert(result(id, finished, "beyond")); err != nil {
			r.t.Fatal(err)
		}
	}
	r.o.Now = zoned(r.t, r.world, "2026-02-18 12:00:00")
	r.stopAt(r.openEnded(), "recorded", 46) // 44 of the earlier run's 46 days, and two beyond
}

// TestRemainderIsStopped: the run that does what lies beyond an earlier one is
// itself stopped, and the next one goes on with it.
func TestRemainderIsStopped(t *testing.T) {
	r := newResumed(t)
	r.stopInRemainder()
	if n := r.staged(); n != 1 {
		t.Errorf("%d parts are staged", n)
	}
	asked, report := r.asked(r.openEnded())
	if f := report.Forms[0]; f.Continued == "" || f.Kept != 2 || slices.Contains(asked, "2026-02-16") || !slices.Contains(asked, "2026-02-17") {
		t.Errorf("asked for %v, report %+v", asked, f)
	}
	r.checkDataset("days", truth(r.form, dated))
}

// TestRemainderIsStoppedAndMoved: a result of the first run's range moves to
// what is left of the second one's. What the second one was told of the first
// must reach the third.
func TestRemainderIsStoppedAndMoved(t *testing.T) {
	r := newResumed(t)
	r.stopInRemainder()
	if err := r.form.Finish(1, at(t, "2026-02-17 15:00:00")); err != nil {
		t.Fatal(err)
	}
	asked, report := r.asked(r.openEnded())
	if f := report.Forms[0]; f.Continued == "" || f.Older != 1 || !slices.Equal(asked, []string{"2026-01-01", "2026-02-17", "2026-02-18"}) {
		t.Errorf("asked for %v, report %+v", asked, f)
	}
	r.checkDataset("days", truth(r.form, dated))
}

// TestMovedBetweenRemainders: what lies beyond an earlier run are two ranges,
// and a result moves from the one to the other between their commits.
func TestMovedBetweenRemainders(t *testing.T) {
	r := newResumed(t)
	def := r.daily(days())
	def.Extract.From, def.Extract.To = at(t, "2026-01-02"), at(t, "2026-01-04")
	r.stopAt(def, "recorded", 1)
	commits := 0
	r.o.At = func(p string) {
		if p != string(load.StepClose) {
			return
		}
		if commits++; commits == 2 { // January 1st is committed, the 4th not yet read
			if err := r.form.Finish(1, at(t, "2026-01-04 15:00:00")); err != nil {
				t.Error(err)
			}
		}
	}
	r.asked(r.daily(days()))
	r.checkDataset("days", truth(r.form, inJanuary))
}

// TestDifferentRuns: the outputs hold what two runs left. It cannot be told
// which of them to go on with.
func TestDifferentRuns(t *testing.T) {
	r := newResumed(t)
	copied := days()
	copied.Path = "copy/"
	r.stopAt(r.daily(days()), "recorded", 2)
	r.stopAt(r.daily(copied), "recorded", 1)
	asked, report := r.asked(r.daily(days(), copied))
	if len(asked) != 4 || report.Forms[0].Continued != "" {
		t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
	}
	for _, name := range []string{"days", "copy"} {
		r.checkDataset(name, truth(r.form, inJanuary))
	}
}

// TestRecordedTwice: a result moved while its run read, so two of the parts
// that it left hold it. Both windows are read again.
func TestRecordedTwice(t *testing.T) {
	r := newResumed(t)
	r.service.Before = once(reads("2026-01-02"), func() { _ = r.form.Finish(1, at(t, "2026-01-02 15:00:00")) })
	r.stopAt(r.daily(days()), "recorded", 3)
	asked, report := r.asked(r.daily(days()))
	if want := []string{"2026-01-01", "2026-01-02", "2026-01-04"}; !slices.Equal(asked, want) || report.Forms[0].Kept != 1 {
		t.Errorf("asked for %v, kept %d", asked, report.Forms[0].Kept)
	}
	r.checkDataset("days", truth(r.form, inJanuary))
}

// TestUndatedAreReadAgain: their part is in no plan, so it is not taken over.
func TestUndatedAreReadAgain(t *testing.T) {
	r := newResumed(t)
	all := func() *definition.Definition {
		def := r.openEnded()
		def.Extract.From = time.Time{}
		return def
	}
	r.stopAt(all(), "verified", 1)
	staged := r.staged()
	_, report := r.asked(all())
	if f := report.Forms[0]; staged != 7 || f.Kept != f.Windows-1 || f.Rows != int64(len(truth(r.form, nil))) {
		t.Errorf("%d parts were staged, report %+v", staged, f)
	}
	r.checkDataset("days", truth(r.form, nil))
}

// records are the files of the journal's records, by their numbers.
func (r *resumed) records() []string {
	r.t.Helper()
	found, err := filepath.Glob(filepath.Join(r.path("days"), load.ControlFolder, load.JournalName+"-*", "*"))
	if err != nil || len(found) == 0 {
		r.t.Fatalf("records %v, %v", found, err)
	}
	return found
}

// change rewrites a JSON file of the journal.
func change[T any](t *testing.T, file string, change func(*T)) {
	t.Helper()
	data, err := os.ReadFile(file)
	var v T
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err == nil {
		change(&v)
		data, err = json.Marshal(v)
	}
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCommitFinishedWithoutItsRecords: a commit is finished, and it can no
// longer be told which results it holds. One of them has moved on since: all
// is read again.
func TestCommitFinishedWithoutItsRecords(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, file string){
		"one is gone": func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
		"one is of another form": func(t *testing.T, file string) {
			change(t, file, func(r *load.JournalRecord) { r.Body = json.RawMessage(`[]`) })
		},
		"one has damaged ids": func(t *testing.T, file string) {
			change(t, file, func(r *load.JournalRecord) { r.Body = json.RawMessage(`{"windows":[{"ids":"AAAA"}]}`) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			r.killAt(r.openEnded(), string(load.StepParts))
			lose(t, r.records()[0])
			if err := r.form.Finish(1, at(t, "2026-02-16 09:00:00")); err != nil {
				t.Fatal(err)
			}
			r.o.Now = zoned(t, r.world, "2026-02-18 12:00:00")
			asked, report := r.asked(r.openEnded())
			if len(report.Forms) != 2 || asked[0] != "2026-01-01" {
				t.Errorf("asked for %v, reports %+v", asked, report.Forms)
			}
			r.checkDataset("days", truth(r.form, dated))
		})
	}
}

// TestFormsSideBySide: one form's destination fails, and the other's does not.
// The next run goes on with the one, and has the other's results as they are.
func TestFormsSideBySide(t *testing.T) {
	second := fourDays()
	second.Directory = "form2"
	w := newWorld(t, fourDays(), second)
	def := func() *definition.Definition {
		d := w.daily(definition.Output{Path: "{form}/", Format: "ndjson", Partition: definition.PartitionDay})
		d.Forms = []string{"form1", "form2"}
		return d
	}
	o := watching(func(root, op, name string) error {
		if op == "put" && strings.Contains(root, "form1") && strings.HasSuffix(name, "/000002") {
			return errBoom
		}
		return nil
	})
	report, err := pipelines.Run(t.Context(), def(), o)
	failed := new(pipelines.FormsError)
	if !errors.As(err, &failed) || len(failed.Errors) != 1 || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "form form1: ") {
		t.Fatalf("error %v", err)
	}
	if len(report.Forms) != 2 || report.Forms[0].Error == "" || report.Forms[1].Error != "" {
		t.Errorf("reports %+v", report.Forms)
	}
	w.checkDataset("form2", truth(second, inJanuary))
	again, err := pipelines.Run(t.Context(), def(), options())
	if err != nil || again.Forms[0].Kept < 2 || again.Forms[1].Continued != "" {
		t.Fatalf("%v; reports %+v, %+v", err, again.Forms[0], again.Forms[1])
	}
	w.checkTidy()
	for _, name := range []string{"form1", "form2"} {
		w.checkDataset(name, truth(second, inJanuary))
	}
}
