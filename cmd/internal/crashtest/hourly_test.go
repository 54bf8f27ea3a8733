package crashtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// hourly is an incremental pipeline that runs every hour over a form that goes
// on. Its older results are those of newForm.
type hourly struct {
	*world
	now   time.Time
	hour  int
	added []int64 // results of the hours so far
	moved []int64 // ids in older parts, and without a date, that are to be finished one an hour
}

// firstHour is when the first run of an hourly pipeline is.
func firstHour() time.Time { return time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC) }

// undatedResults is how many unfinished results the form begins with.
const undatedResults = 6

func newHourly(t testing.TB, k kind) *hourly {
	t.Helper()
	form := newForm()
	h := &hourly{now: firstHour()}
	for day := 1; day <= firstDays; day++ {
		ids := ofDay(form, day)
		h.moved = append(h.moved, ids[1], ids[2], ids[4])
	}
	for i := range undatedResults {
		id, err := form.Insert(valued("unfinished"))
		if err != nil {
			t.Fatal(err)
		}
		h.moved[5*i+2] = id
	}
	rejected := dated(valued("rejected"), h.now.Add(-time.Hour))
	rejected.Items[1].Values = []string{spoilt}
	if _, err := form.Insert(rejected); err != nil {
		t.Fatal(err)
	}
	h.world = newWorldsOf(t, k, form, "mode: incremental, lookback: 2d", ndjsonDataset)[0]
	h.at(0)
	return h
}

// valued is a result without a date.
func valued(value string) formservice.Result {
	return formservice.Result{Items: []formservice.Answer{{ID: "1", Values: []string{value}}, {ID: "2", Values: []string{"1"}}}}
}

func dated(r formservice.Result, at time.Time) formservice.Result {
	r.Metas = []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}}
	return r
}

// at sets the clock of the processes to some time after the hour.
func (h *hourly) at(after time.Duration) {
	h.env = []string{"FORMETL_NOW=" + h.now.Add(after).Format(time.RFC3339)}
}

// passes lets an hour pass: a result of an older part or one without a date is
// finished, one comes, and of those that came before one is edited and one
// deleted.
func (h *hourly) passes() {
	h.t.Helper()
	h.hour++
	h.now = h.now.Add(time.Hour)
	h.at(0)
	old, ok := h.form.Get(h.moved[h.hour-1])
	if !ok {
		h.t.Fatalf("result %d is gone", h.moved[h.hour-1])
	}
	old.Items[0].Values = []string{fmt.Sprint("finished in hour ", h.hour)}
	err := h.form.Update(dated(old, h.now.Add(-10*time.Minute)))
	fresh, failed := h.form.Insert(dated(valued(fmt.Sprint("came in hour ", h.hour)), h.now.Add(-20*time.Minute)))
	if err = errors.Join(err, failed); err != nil {
		h.t.Fatal(err)
	}
	if n := len(h.added); n > 2 {
		edited, _ := h.form.Get(h.added[n-1])
		edited.Items[0].Values = []string{fmt.Sprint("edited in hour ", h.hour)}
		if err := h.form.Update(edited); err != nil {
			h.t.Fatal(err)
		}
		h.form.Delete(h.added[n-2])
		h.added = append(h.added[:n-2], h.added[n-1])
	}
	h.added = append(h.added, fresh)
}

// reached checks that the watermark lies between two times after the hour, less
// what the definition lets results settle.
func (h *hourly) reached(from, to time.Duration) {
	h.t.Helper()
	data, err := h.get(h.t.Context(), h.manifest())
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := load.DecodeManifest(data)
	if err != nil {
		h.t.Fatal(err)
	}
	settled := h.now.Add(-time.Minute)
	if least, most := settled.Add(from), settled.Add(to); m.Watermark.Before(least) || m.Watermark.After(most) {
		h.t.Errorf("in hour %d the watermark is %s, want from %s to %s", h.hour, m.Watermark, least, most)
	}
}

// setsFit checks that each part has its set of ids, and there is no other.
func (h *hourly) setsFit() {
	h.t.Helper()
	if orphans, missing, err := h.beside(h.t.Context()); err != nil || len(orphans)+len(missing) > 0 {
		h.t.Errorf("in hour %d there is %v beside no part, and parts lack %v, %v", h.hour, orphans, missing, err)
	}
}

// hourlyCrashes are where every second run of the pipeline is killed, one after
// the other. Points come again for the older part.
func hourlyCrashes(k kind) []string {
	if k.s3 {
		return []string{"read:3", "prepared:2", string(load.StepBeside), "parts:2", "supersede:2", string(load.StepMark)}
	}
	var all []string
	for _, p := range points() {
		if p.name == string(load.StepLetters) {
			continue // only files have it
		}
		all = append(all, p.name)
		if p.often {
			all = append(all, p.name+":2")
		}
	}
	return all
}

// TestHourlyRunsKilledAtEveryPoint kills every hourly run on its way, in which
// a result moved out of an older part or got its date, while readers poll: each
// of their readings holds every result once, as one of the runs left it. The
// run after it brings the dataset, its sets of ids and its watermark there.
func TestHourlyRunsKilledAtEveryPoint(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		h := newHourly(t, k)
		past := &history{}
		past.add(truth(h.form))
		h.run()
		h.whole(truth(h.form))
		pollers := polling(t, h.world, past)
		for _, fault := range needs.Sample(hourlyCrashes(k), 4) {
			h.passes()
			past.add(truth(h.form))
			h.runInto(fault)
			h.at(10 * time.Minute)
			h.run()
			h.whole(truth(h.form))
			h.setsFit()
			h.reached(0, 10*time.Minute+patience)
			for _, p := range pollers {
				if err := p.sees(h.hour); err != nil {
					t.Fatalf("%s, after hour %d, killed at %s: %v", p.name, h.hour, fault, err)
				}
			}
		}
		h.clean()
	})
}
