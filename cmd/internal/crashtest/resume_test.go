package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
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

// asked are the windows that were asked for since the service's last reset,
// with the number of requests for each. What changed last is no window.
func (w *world) asked() map[string]int {
	windows := map[string]int{}
	for _, r := range w.service.Log() {
		if r.Transaction != formservice.TransactionResults {
			continue
		}
		query, err := url.ParseQuery(r.Query)
		if err != nil {
			w.t.Fatal(err)
		}
		if !query.Has("fs_sort") && !query.Has("fs_min_id") { // a tail is no window
			windows[query.Get("fs_min_date")]++
		}
	}
	return windows
}

// checkpoints are what is left in the state folder of what runs had read.
func (w *world) checkpoints() []string {
	w.t.Helper()
	left, err := filepath.Glob(filepath.Join(w.dir, "state", "checkpoint", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return left
}

// kept are the beginnings of the windows that a checkpoint holds whole. A record
// that its process did not finish writing is left out.
func (w *world) kept() map[string]bool {
	w.t.Helper()
	records, err := filepath.Glob(filepath.Join(w.dir, "state", "checkpoint", "*", "*-record"))
	if err != nil {
		w.t.Fatal(err)
	}
	windows := map[string]bool{}
	for _, name := range records {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		_, data, _ = bytes.Cut(data, []byte(" ")) // behind a checksum
		var r struct {
			Window struct {
				From string `json:"from"`
			} `json:"window"`
			Through int64 `json:"through"`
			Open    bool  `json:"open"` // it ends with a page that was not full
		}
		if err := json.Unmarshal(data, &r); err == nil && (r.Open || r.Through == math.MaxInt64) {
			windows[r.Window.From] = true
		}
	}
	return windows
}
