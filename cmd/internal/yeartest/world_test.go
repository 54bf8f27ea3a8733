package yeartest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// What the definitions say.
const (
	zoneName    = "America/Chicago"
	lookback    = 3 * 24 * time.Hour
	settle      = time.Minute // the default
	usualPerDay = 100_000
)

// world is a service, the people who use it, and the pipelines that read it.
type world struct {
	seed      uint64
	way       way
	dir       string
	service   *service
	people    *people
	pipelines []*pipeline
	random    *rand.Rand // of the runs
	weather   weather
	runs      int
	ledger    []sent // of the last two days
	figures   figures
}

// pipeline is a definition.
type pipeline struct {
	name      string
	forms     string // as the definition has it
	format    string
	partition string
	every     int // hours
	datasets  []*dataset
	recent    []*run
}

const definition = `version: 1
name: %s
source: {base_url: "http://%s", account: acme, timezone: %s, requests: {concurrency: 3, per_day: %d}}
forms: %s
state: state
extract: {mode: %s, lookback: 3d, changes: %s, max_stale_parts: %d}
load:
  - {path: "%s/{form}/", format: %s, partition: %s}
`

// What the definitions say of changes besides.
const (
	mode      = "incremental"
	mostStale = 8 // parts that one run reads again, see way
)

// way is how results that changed are found in a world.
type way struct {
	sorts   bool   // the service sorts by what it is asked for
	changes string // auto or lookback, as the definitions say
}

// follows tells whether the runs of a world can ask the service what changed.
func (y way) follows() bool { return y.sorts && y.changes == auto }

const (
	auto         = "auto"
	lookbackOnly = "lookback"
)

// asAsked is the way that the variables ask for.
func asAsked(t *testing.T) way {
	t.Helper()
	y := way{sorts: os.Getenv(sortVariable) != "off", changes: auto}
	if given := os.Getenv(waysVariable); given != "" {
		y.changes = given
	}
	return y
}

// write writes a definition and gives its file.
func (w *world) write(t *testing.T, p *pipeline, perDay int) string {
	t.Helper()
	file := filepath.Join(w.dir, p.name+".yaml")
	text := fmt.Sprintf(definition, p.name, w.service.address, zoneName, perDay, p.forms, mode, w.way.changes, mostStale, p.name, p.format, p.partition)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// newWorld makes a world at an instant, with a past.
func newWorld(t *testing.T, seed uint64, y way, from, to time.Time) *world {
	t.Helper()
	zone, err := time.LoadLocation(zoneName)
	if err != nil {
		t.Fatal(err)
	}
	source := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed+n<<32, uint64(from.Unix()))) } //nolint:gosec // not negative
	w := &world{seed: seed, way: y, dir: folder(t), random: source(1)}
	w.weather = newWeather(w.random, int(to.Sub(from)/time.Hour))
	w.service = startService(t)
	w.people = &people{truth: &truth{zone: zone, seed: seed}, random: source(2)}
	w.pipelines = []*pipeline{
		{name: "hourly", forms: `["*"]`, format: "ndjson", partition: "day", every: 1},
		{name: "whole", forms: "[orders]", format: "ndjson", partition: "none", every: 12},
		{name: "monthly", forms: `["surv*", orders]`, format: "parquet", partition: "month", every: 36},
	}
	w.people.mu.Lock()
	defer w.people.mu.Unlock()
	orders, survey := newForm(w.people.truth, "orders", 4), newForm(w.people.truth, "survey", 1)
	gone, later := newForm(w.people.truth, "gone", 1), newForm(w.people.truth, "later", 0)
	for _, f := range w.people.forms {
		f.listed = f != later
	}
	w.people.past(orders, 80, from)
	w.people.past(survey, 35, from)
	w.people.past(gone, 3, from)
	span := to.Sub(from)
	w.people.plan(from.Add(span/3), func(time.Time) { w.list(later, true) }) // empty at first
	w.people.plan(from.Add(span/3+30*time.Hour), func(time.Time) { later.rate = 2 })
	w.people.plan(from.Add(2*span/3), func(time.Time) { w.list(gone, false) })
	if change := clockChange(zone, from, to); !change.IsZero() {
		w.people.atClockChange(orders, change)
		w.people.atClockChange(survey, change)
	}
	w.list(orders, true)
	w.people.live(from.Add(-time.Hour), from)
	return w
}

// list puts a form on the service's list, or takes it off.
func (w *world) list(f *form, listed bool) {
	f.listed = listed
	var served []*formservice.Form
	for _, f := range w.people.forms {
		if f.listed {
			served = append(served, f.served)
		}
	}
	w.service.SetForms(served...)
}

// folder is one in memory where the machine has that: what is synced to a disk
// takes most of the time.
func folder(t *testing.T) string {
	t.Helper()
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "formetl-year-")
	if err != nil {
		dir, err = os.MkdirTemp("", "formetl-year-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what was written is in %s", dir)
			return
		}
		_ = os.RemoveAll(dir) // it is a temporary folder
	})
	return dir
}

// at is the moment that has come.
func (w *world) at() moment {
	w.people.mu.Lock()
	defer w.people.mu.Unlock()
	return w.people.at
}

// meddle changes one of the forms that a run reads.
func (w *world) meddle(r *run) {
	w.people.mu.Lock()
	defer w.people.mu.Unlock()
	random := r.random()
	forms := w.people.forms
	f := forms[random.IntN(len(forms))]
	if !f.listed {
		f = forms[0]
	}
	w.people.meddle(f, r.at, random)
}
