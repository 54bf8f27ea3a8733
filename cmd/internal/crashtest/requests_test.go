package crashtest

import (
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
)

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

// TestNoWindowIsAskedForTwice kills a run when many of its windows are in the
// checkpoint: the next one asks only for the others, and comes to the parts of a
// run that nobody disturbed.
func TestNoWindowIsAskedForTwice(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for name, o := range map[string]output{"declared": ndjsonDataset, "inferred": inferredDataset} {
			for _, faults := range [][]string{{"read:8"}, {"read:6", "read:5"}} {
				t.Run(name+"/"+strings.Join(faults, ","), func(t *testing.T) {
					w, undisturbed := newWorld(t, k, o), newWorld(t, k, o)
					undisturbed.run()
					plan := undisturbed.asked()
					if len(plan) != lastDay {
						t.Fatalf("a run asks for %d windows of %d", len(plan), lastDay)
					}
					again := w.continues(faults, plan)
					// Columns are inferred from the beginnings of many windows, which
					// are all under way then.
					if most := concurrency * len(faults); o.columns != "" && again > most {
						t.Errorf("%d windows were asked for again, with at most %d under way at each kill", again, concurrency)
					}
					if got, want := w.sums(), undisturbed.sums(); !maps.Equal(got, want) {
						t.Errorf("the parts are %v, undisturbed they are %v", got, want)
					}
					w.clean()
				})
			}
		}
	})
}

// sums are the parts that the manifest lists.
func (w *world) sums() map[string]string {
	w.t.Helper()
	data, err := w.get(w.t.Context(), w.manifest())
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := load.DecodeManifest(data)
	if err != nil {
		w.t.Fatal(err)
	}
	sums := map[string]string{}
	for _, p := range m.Parts {
		sums[p.Path] = p.SHA256
	}
	return sums
}

// quiet waits until the service has noted what a killed run had still sent.
func (w *world) quiet() {
	w.t.Helper()
	for before := -1; before != len(w.service.Log()); {
		before = len(w.service.Log())
		time.Sleep(50 * time.Millisecond)
	}
}

// continues kills runs at the faults and ends with one that is not killed. No
// run asks for a window that the checkpoint holds whole, and none costs more than
// the plan has for it. It gives how many windows were asked for again.
func (w *world) continues(faults []string, plan map[string]int) (again int) {
	w.t.Helper()
	runs := map[string]int{} // that asked for a window
	requests, kept := 0, map[string]bool{}
	for i := range len(faults) + 1 {
		w.quiet()
		w.service.Reset()
		if i < len(faults) {
			w.runInto(faults[i])
		} else {
			w.run()
		}
		asked := w.asked()
		if most := len(plan) - len(kept); len(asked) > most {
			w.t.Errorf("run %d asks for %d windows; %d of %d were in the checkpoint", i+1, len(asked), len(kept), len(plan))
		}
		for window, n := range asked {
			runs[window]++
			requests += n
			if n > plan[window] {
				w.t.Errorf("run %d asks %d times for the window of %s, undisturbed it is %d", i+1, n, window, plan[window])
			}
		}
		kept = w.kept()
	}
	for window := range plan {
		again += runs[window] - 1
	}
	w.t.Logf("%d requests for %d windows; %d windows were asked for again", requests, len(plan), again)
	return again
}
