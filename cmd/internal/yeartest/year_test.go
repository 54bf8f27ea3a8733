package yeartest

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// figures are what a world comes to.
type figures struct {
	runs, kills, continued, meddled, wrong, poor, stormy, out int
	codes                                                     map[int]int
	costs                                                     map[string]*cost
	took, ran, cpu                                            time.Duration
	ways                                                      map[string]int // how runs of forms found what changed
	stale, left                                               int            // parts that were read again; runs that left some
}

func newFigures() figures {
	return figures{codes: map[int]int{}, costs: map[string]*cost{}, ways: map[string]int{}}
}

// TestYear is a world for a week around each change of the clocks, or one of
// as many weeks as are asked for, from the beginning of 2026 on. Unless every test
// is asked for, it is the last days of these weeks, with the change.
func TestYear(t *testing.T) {
	seed := number(t, seedVariable, 1)
	if weeks := number(t, weeksVariable, 0); weeks > 0 {
		from := time.Date(2026, 1, 12, 6, 0, 0, 0, time.UTC)
		liveThrough(t, seed, asAsked(t), from, from.AddDate(0, 0, 7*int(weeks))) //nolint:gosec // nobody waits for so many
		return
	}
	days := needs.Count(7, 2)
	for name, to := range map[string]time.Time{
		"spring": time.Date(2026, 3, 10, 6, 0, 0, 0, time.UTC),
		"autumn": time.Date(2026, 11, 3, 6, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			liveThrough(t, seed, asAsked(t), to.AddDate(0, 0, -days), to)
		})
	}
}

// TestYearCostsLess lives through the same weeks twice, and compares the requests
// of runs that ask what changed with those of runs that read the lookback again.
// The first reading and the last are left out.
func TestYearCostsLess(t *testing.T) {
	needs.Long(t)
	seed, weeks := number(t, seedVariable, 1), number(t, weeksVariable, 1)
	from := time.Date(2026, 2, 3, 6, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	used := map[string]map[string]int{}
	t.Run("both", func(t *testing.T) {
		for _, changes := range []string{auto, lookbackOnly} {
			t.Run(changes, func(t *testing.T) {
				t.Parallel()
				costs := liveThrough(t, seed, way{sorts: true, changes: changes}, from, from.AddDate(0, 0, 7*int(weeks))) //nolint:gosec // as above
				sums := map[string]int{}
				for name, c := range costs {
					if name != beginnings {
						sums[name] = c.used + c.lost
						sums["all"] += c.used + c.lost
					}
				}
				mu.Lock()
				defer mu.Unlock()
				used[changes] = sums
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(used[auto])) {
		is, was := used[auto][name], used[lookbackOnly][name]
		t.Logf("%-9s %d requests where the service is asked what changed, %d where not: %.3f", name, is, was, float64(is)/float64(was))
	}
	// The pipelines that run seldom read large parts again because of old edits, which
	// a lookback never finds.
	if is, was := used[auto]["hourly"], used[lookbackOnly]["hourly"]; float64(is) > less*float64(was) {
		t.Errorf("%d requests of the hourly runs are more than %v times %d", is, less, was)
	}
}

// liveThrough lets a world live, and looks at it after every run. It returns what
// the runs cost.
func liveThrough(t *testing.T, seed uint64, y way, from, to time.Time) map[string]*cost {
	t.Helper()
	t.Logf("the seed is %d, from %s to %s, %+v; %s replays it", seed, from.Format(time.DateOnly), to.Format(time.DateOnly), y, seedVariable)
	began := time.Now()
	w := newWorld(t, seed, y, from, to)
	w.figures = newFigures()
	last := from
	for hour := from; hour.Before(to); hour = hour.Add(time.Hour) {
		w.weather.pass(w.random, hour)
		for i, p := range w.pipelines {
			if int(hour.Sub(from)/time.Hour)%p.every != 0 {
				continue
			}
			at := hour.Add(time.Duration(15*i)*time.Minute + time.Duration(w.random.Int64N(int64(10*time.Minute))))
			w.live(last, at)
			last = at
			w.hourly(t, w.next(p, at))
		}
		if hour.Hour() == 0 {
			w.wholeDatasets(t)
		}
	}
	w.end(t, last)
	w.figures.took = time.Since(began)
	w.table(t)
	return w.figures.costs
}

// live lets people live up to an instant.
func (w *world) live(from, to time.Time) {
	w.people.mu.Lock()
	defer w.people.mu.Unlock()
	w.people.live(from, to)
}

// hourly performs a run and judges it.
func (w *world) hourly(t *testing.T, r *run) {
	t.Helper()
	w.perform(t, r)
	if err := w.inspect(r); err != nil {
		t.Fatalf("%s=%d, moments %d to %d\n%s\n%v\nIt wrote:\n%s", seedVariable, w.seed, r.start, r.end, r, err, tail(r.stderr))
	}
}

// inspect looks at everything that a run may have touched.
func (w *world) inspect(r *run) error {
	log := w.service.Log()
	spent, err := w.overspent(r, log)
	if err != nil {
		return err
	}
	if !r.mayEnd(spent) {
		return fmt.Errorf("it may not end like this")
	}
	w.meetForms(r.pipeline)
	byForm, other := answered(r, log)
	w.count(r, other)
	for i, d := range r.pipeline.datasets {
		v, err := w.judge(r, d)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", d.form.name, r.pipeline.name, err)
		}
		w.cost(r, v.begins).add(v.charge(byForm[d.form.name]))
		if err := w.ways(v); err != nil {
			return err
		}
		r.origins[d.form.name] = &v.origin
		switch {
		case v.did:
			v.after.pending = nil
		case v.after.pending == nil && (r.killed || len(v.entries) > 0):
			v.after.pending = &v.origin
		}
		r.pipeline.datasets[i] = v.after
	}
	if r.pipeline.recent = append(r.pipeline.recent, r); len(r.pipeline.recent) > 100 {
		r.pipeline.recent = r.pipeline.recent[1:]
	}
	if r.code == 0 && !r.killed && slices.ContainsFunc(r.report.Forms, func(f formReport) bool {
		return f.Error != "" || f.Verified == nil || !f.Verified.Match && !f.leftStale()
	}) {
		return errors.New("it ended well, and a form did not or is not verified")
	}
	return nil
}

// ways notes how a run found what changed. Where the service sorts, only a form
// with few results may show no proof of it.
func (w *world) ways(v *verdict) error {
	if !v.did {
		return nil
	}
	last := v.entries[len(v.entries)-1]
	if !w.way.sorts && last.Verified != nil && last.Verified.Method == "changes" {
		return fmt.Errorf("%s: the run says that changes verify it, and the service does not sort", v.after.form.name)
	}
	if v.begins {
		return nil
	}
	how := "no changes"
	if last.Changes != nil {
		how = strings.TrimSpace(last.Changes.Method + " " + idPattern.ReplaceAllString(last.Changes.Reason, "N"))
		w.figures.stale += last.Changes.StaleParts
	}
	w.figures.ways[how]++
	if last.leftStale() {
		w.figures.left++
	}
	switch form := v.after.form.name; {
	case !v.w.way.follows() && how != "no changes" && last.knew():
		return fmt.Errorf("%s: the run says that it knew what changed, and nobody could tell", form)
	case v.w.way.follows() && (form == "orders" || form == "survey") && (last.Changes == nil || strings.Contains(last.Changes.Reason, "sort")):
		return fmt.Errorf("%s: the service sorts, and the run says %q", form, how)
	}
	return nil
}

var idPattern = regexp.MustCompile(`[0-9]+`)

// meetForms has a dataset for every form that a pipeline may have seen.
func (w *world) meetForms(p *pipeline) {
	for _, f := range w.people.forms {
		known := slices.ContainsFunc(p.datasets, func(d *dataset) bool { return d.form == f })
		if wants := strings.Contains(p.forms, "*\"]") || strings.Contains(p.forms, f.name[:4]); known || !wants {
			continue
		}
		p.datasets = append(p.datasets, &dataset{
			pipeline: p, form: f, dir: filepath.Join(w.dir, p.name, f.name),
			parts: map[string]*part{}, rows: map[int64]*row{}, seen: map[string]string{},
		})
	}
}

// count takes a run into the figures.
func (w *world) count(r *run, other cost) {
	f := &w.figures
	f.ran, f.cpu = f.ran+r.took, f.cpu+r.cpu
	if !r.killed {
		f.codes[r.code]++
	}
	continued := r.report != nil && slices.ContainsFunc(r.report.Forms, func(f formReport) bool { return f.Continued != "" })
	for _, one := range []struct {
		is bool
		n  *int
	}{
		{true, &f.runs},
		{r.killed, &f.kills},
		{continued, &f.continued},
		{r.meddleAt > 0, &f.meddled},
		{!r.told.Equal(r.at), &f.wrong},
		{r.perDay < usualPerDay, &f.poor},
		{r.storm > 0, &f.stormy},
		{r.outage != inReach, &f.out},
	} {
		if one.is {
			*one.n++
		}
	}
	w.cost(r, slices.Contains(r.flags, "--full")).add(other)
}

// cost is where the requests of a run are added: those of a form that is read
// from its beginning are apart.
func (w *world) cost(r *run, beginning bool) *cost {
	name := r.pipeline.name
	if beginning {
		name = beginnings
	}
	c := w.figures.costs[name]
	if c == nil {
		c = &cost{}
		w.figures.costs[name] = c
	}
	return c
}

// wholeDatasets reads every dataset again, byte by byte, unless a commit is
// under way there.
func (w *world) wholeDatasets(t *testing.T) {
	t.Helper()
	for _, p := range w.pipelines {
		for _, d := range p.datasets {
			if d.pending != nil {
				continue
			}
			if err := d.whole(); err != nil {
				t.Fatalf("%s=%d: %s of %s: %v", seedVariable, w.seed, d.form.name, p.name, err)
			}
		}
	}
}

// end replaces everything: then all is as the service holds it.
func (w *world) end(t *testing.T, last time.Time) {
	t.Helper()
	for i, p := range w.pipelines {
		w.weather = weather{}
		r := w.next(p, last.Add(time.Duration(2+i)*time.Hour))
		r.flags = []string{"--full"}
		r.told, r.fault, r.killAt, r.meddleAt = r.at, "", 0, 0
		w.hourly(t, r)
		for _, d := range p.datasets {
			if !d.form.listed {
				continue
			}
			if err := d.equal(); err != nil {
				t.Errorf("%s=%d: %s of %s: %v", seedVariable, w.seed, d.form.name, p.name, err)
			}
		}
	}
	w.wholeDatasets(t)
}

// table shows what came of it, and fails where it took too many requests.
func (w *world) table(t *testing.T) {
	t.Helper()
	f := w.figures
	results, states := 0, 0
	for _, form := range w.people.forms {
		results += len(form.results)
		for _, h := range form.results {
			states += len(h)
		}
	}
	t.Logf("%d runs: ended with %v, %d killed, %d resumed from an earlier one", f.runs, f.codes, f.kills, f.continued)
	t.Logf("it took %s, of which formetl ran for %s, with %s of the processor", f.took.Round(time.Second), f.ran.Round(time.Second), f.cpu.Round(time.Second))
	t.Logf("they met %d outages, %d storms, %d poor days' budgets, %d wrong clocks, %d meddlings", f.out, f.stormy, f.poor, f.wrong, f.meddled)
	t.Logf("%d results in %d states, %d of them finished after more than the lookback", results, states, w.people.late)
	for _, how := range slices.Sorted(maps.Keys(f.ways)) {
		t.Logf("%d runs of forms: %s", f.ways[how], how)
	}
	t.Logf("%d parts outside the ranges were read again, %d runs left some to the next", f.stale, f.left)
	var total, goingOn cost
	for _, name := range slices.Sorted(maps.Keys(f.costs)) {
		t.Logf("%-9s %s", name, f.costs[name])
		t.Logf("%-9s %s", name, f.costs[name].each())
		total.add(*f.costs[name])
		if name != beginnings {
			goingOn.add(*f.costs[name])
		}
	}
	t.Logf("%-9s %s", "total", total)
	// The first reading and the last weigh little in a year, and much in a week.
	if w.way.follows() {
		return // see TestYearCostsLess
	}
	if c := goingOn; c.ratio() > most {
		t.Errorf("%d requests were used, more than %v times the %d that were to be expected", c.used, most, c.expected)
	}
	if c := total; f.runs > aQuarter && c.ratio() > most {
		t.Errorf("%d requests were used in all, more than %v times the %d that were to be expected", c.used, most, c.expected)
	}
}

// What the requests of a world are held to.
const (
	most     = 1.10 // times those that were to be expected
	less     = 0.7  // times those of hourly runs that read the lookback
	aQuarter = 2000 // runs
)

// beginnings is the name of what readings from the beginning cost.
const beginnings = "all of it"

// tail is the end of what a process wrote.
func tail(text string) string {
	const enough = 6000
	if len(text) > enough {
		return "…" + text[len(text)-enough:]
	}
	return text
}
