package crashtest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"syscall"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// pointsInARow are where one run after the other is killed, each of which takes
// over what the ones before had read, and comes a step further.
func pointsInARow(o output) []string {
	// Up to three more windows are in the checkpoint than the kill was told to
	// wait for.
	points := []string{
		"planned", "read:1", "planned", "read:2", "piece:1", "read:1",
		"verified", "snapshot", "staged", "prepared", "planned", string(load.StepCheck),
	}
	if o.file == "" {
		points = append(points, string(load.StepBeside))
	}
	return append(points, string(load.StepIntent), string(load.StepUnmark), string(load.StepParts), string(load.StepManifest), string(load.StepClose))
}

// TestResumedRunsKilledAgainAndAgain kills run after run, the resumed ones too:
// no window is asked for again that the checkpoint holds whole.
func TestResumedRunsKilledAgainAndAgain(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for _, outputs := range needs.Sample([][]output{{csvFile}, {wholeDataset}, {csvFile, ndjsonDataset}}, 2) {
			t.Run(fmt.Sprintf("%d, first %s", len(outputs), outputs[0].format), func(t *testing.T) {
				worlds := newWorlds(t, k, outputs...)
				w := worlds[0]
				if !k.s3 { // there what was there before is not replaced, to save time
					w.run()
					change(w.form, 1)
				}
				w.inARow(pointsInARow(w.output))
				for _, w := range worlds {
					w.whole(truth(w.form))
					w.clean()
				}
			})
		}
	})
}

// inARow kills runs at the faults and ends with one that is not killed.
func (w *world) inARow(faults []string) {
	w.t.Helper()
	ever, kept := map[string]bool{}, map[string]bool{}
	for _, fault := range append(faults, "") {
		w.service.Reset()
		if fault != "" {
			w.runInto(fault)
		} else {
			w.run()
		}
		for window := range w.asked() {
			if kept[window] {
				w.t.Errorf("the run that is killed at %q asks again for the window of %s", fault, window)
			}
		}
		before := kept
		kept = w.kept()
		maps.Copy(ever, kept)
		if recorded := len(kept) == 0; recorded && len(ever) == lastDay {
			continue // the commits are, so that nobody needs the checkpoint
		}
		for window := range before {
			if !kept[window] {
				w.t.Errorf("the run that is killed at %q loses the window of %s", fault, window)
			}
		}
	}
	if len(ever) != lastDay {
		w.t.Errorf("%d windows were in the checkpoint at some time, want %d", len(ever), lastDay)
	}
}

// TestSignalKeepsTheCheckpoint stops a run with a single file by SIGTERM: it ends in
// order, and the next one asks for the rest only.
func TestSignalKeepsTheCheckpoint(t *testing.T) {
	w, d := newLongWorlds(t, kind{"disk", false}, newLongForm(), csvFile)
	const pages = longDays * longPages / 2
	if o := w[0].signalledAfter(d, pages, syscall.SIGTERM); o.code != 143 {
		t.Errorf("the run ended with %d:\n%s", o.code, o.stderr)
	}
	w[0].resumes(pages)
	w[0].clean()
}

// TestKillKeepsTheCheckpoint is what a kill leaves to a definition that is changed
// where it does not matter, and to one that is changed where it does.
func TestKillKeepsTheCheckpoint(t *testing.T) {
	const pages = longDays * longPages / 2
	ndjsonFile := output{"form1.ndjson", "ndjson", ".ndjson", declared, ""}
	form := newLongForm()
	t.Run("more retries", func(t *testing.T) {
		w, d := newLongWorlds(t, kind{"disk", false}, form, csvFile)
		w[0].killedAfter(d, pages)
		data, err := os.ReadFile(w[0].definition())
		if err == nil {
			err = os.WriteFile(w[0].definition(), bytes.Replace(data, []byte("retries: 3"), []byte("retries: 4"), 1), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		w[0].resumes(pages)
	})
	t.Run("another output", func(t *testing.T) {
		w, d := newLongWorlds(t, kind{"disk", false}, form, csvFile)
		w[0].killedAfter(d, pages)
		w[0].output = ndjsonFile
		define(declared, w...)
		w[0].service.Reset()
		w[0].run()
		if n := len(w[0].asked()); n != longDays {
			t.Errorf("the run asks for %d windows of %d", n, longDays)
		}
		w[0].whole(truth(form))
	})
	t.Run("another column", func(t *testing.T) {
		w, d := newLongWorlds(t, kind{"disk", false}, form, ndjsonFile)
		w[0].killedAfter(d, pages)
		if len(w[0].kept()) == 0 {
			t.Error("nothing is in the checkpoint")
		}
		define(declared+"  - {name: again, from: \"item:3\", type: string}\n", w...)
		w[0].service.Reset()
		w[0].run()
		if n := len(w[0].asked()); n != longDays {
			t.Errorf("the run asks for %d windows of %d", n, longDays)
		}
		w[0].everyRowHas(`"again":`)
		w[0].whole(truth(form))
		w[0].clean()
	})
}

// resumes runs the pipeline that was ended early at a page, and checks that it
// asks for the windows that the checkpoint does not hold whole, and only those.
func (w *world) resumes(pages int) {
	w.t.Helper()
	kept := w.kept()
	// A window is one page more: a full one does not tell that it is the last.
	if least := pages/(longPages+1) - concurrency; len(kept) < least {
		w.t.Errorf("%d windows are in the checkpoint, want %d at least", len(kept), least)
	}
	w.service.Reset()
	w.run()
	asked := w.asked()
	for window := range asked {
		if kept[window] {
			w.t.Errorf("the window of %s is asked for again", window)
		}
	}
	// Windows that were read in part are asked for behind their last id, as tails are.
	if n := len(asked) + len(kept); n > longDays || n < longDays-concurrency {
		w.t.Errorf("the run asks for %d windows, and %d of %d were in the checkpoint", len(asked), len(kept), longDays)
	}
	w.whole(truth(w.form))
}
