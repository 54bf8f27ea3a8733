package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// life is a random form, a random definition and a few runs of it, after each
// of which everything is judged.
type life struct {
	site    site
	lawful  bool // its service keeps the specification, and nobody disturbs a run but those who change results
	program string
	random  *rand.Rand // of what happens on the way
	now     time.Time  // what processes take it to be
	key     apiKey
	clock   *clock // the service's
	people  *people
	service *service
	def     *definition
	export  *definition // of formetl export, see newExport
	damages []*damage   // that are not healed yet
	few     bool        // the form had too few results to show that the service sorts, or it did not sort once
	both    bool        // its definition asks now by the one generation, now by the other
	hourly  bool        // it lives hour by hour, through a change of the clocks
	sent    []sent      // requests of its definition's processes
	told    []string
	figures figures
}

// sent is how many requests were sent when.
type sent struct {
	at       time.Time
	requests int
}

// figures count what lives come to, by what is counted.
type figures map[string]int

func (f figures) add(o figures) {
	for what, n := range o {
		f[what] += n
	}
}

// String has a line for each figure.
func (f figures) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&b, "%8d %s\n", f[what], what)
	}
	return b.String()
}

// site is where a life takes place.
type site struct {
	seed     uint64
	dir      string
	bucket   *bucket   // nil where all outputs lie on disk
	database *database // nil where none is a table
}

// count adds what a process did. lawful tells whether its service keeps the specification.
func (f figures) count(o *outcome, lawful bool) {
	f["steps"]++
	f["requests"] += o.requests
	kind := "a service that breaks the specification"
	if lawful {
		kind = "a lawful service"
	}
	switch {
	case o.killed:
		f["killed"]++
	case o.stopped:
		f["stopped"]++
		fallthrough
	default:
		f[fmt.Sprintf("ended with %d at %s", o.code, kind)]++
	}
	if o.report != nil {
		for _, r := range o.report.Forms {
			f["rows"] += int(r.Rows)
			if r.Continued != "" || r.Kept > 0 {
				f["resumed from an earlier run"]++
			}
			if r.Verified != nil && r.Error == "" {
				f["verified by "+cmp.Or(r.Verified.Method, "nothing")]++
			}
			if r.Changes != nil && r.Error == "" {
				f["changes found by "+r.Changes.Method]++
			}
		}
	}
}

// newLife makes everything that a life needs. Each matter has chance of its
// own, so that one does not depend on how much another one asked.
func newLife(seed uint64, program string, lawful bool, bucket *bucket, db *database) (*life, error) {
	dir, err := newFolder(seed)
	if err != nil {
		return nil, err
	}
	l := &life{site: site{seed: seed, dir: dir, database: db}, lawful: lawful, program: program, random: source(seed, 1), figures: figures{}}
	random := source(seed, 2)
	zones := []string{"UTC", "America/Chicago", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"}
	if l.hourly = chance(source(seed, 14), 25); l.hourly {
		zones = slices.DeleteFunc(zones, func(name string) bool { return name == "UTC" || name == "Asia/Kolkata" })
	}
	zone, err := time.LoadLocation(pick(random, zones...))
	if err != nil {
		return nil, err
	}
	l.now = pick(random, time.Date(2026, 3, 12, 9, 30, 0, 0, time.UTC), time.Date(2026, 4, 6, 20, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 3, 3, 0, 0, 0, time.UTC), time.Date(2026, 7, 1, 0, 30, 0, 0, time.UTC))
	if l.hourly {
		l.now = beforeChange(source(seed, 15), zone)
	}
	l.key = apiKey(fmt.Sprintf("k/%x+=%d%%z", random.Uint64(), seed%1000))
	l.clock = newClock(source(seed, 8), zone, l.now)
	faults := newQuirks(source(seed, 4), seed, lawful)
	follows := chance(source(seed, 13), 33)
	if !follows {
		addUnsorted(source(seed, 9), &faults, lawful)
	}
	if random := source(seed, 12); chance(random, 15) { // its answers are dated up to three months ago
		faults.DateHeaderOff = -time.Duration(random.IntN(90*24*60)) * time.Minute
	} else {
		faults.NoDateHeader = chance(random, 15)
	}
	api := addV2(source(seed, 11), &faults, lawful)
	l.both = api == formservice.V2 && faults.V2.Pagination == "" && chance(source(seed, 16), 30)
	l.people = newPeople(source(seed, 3), l.clock, api, faults.LackUpdate, l.now)
	if bucket != nil && chance(random, 35) {
		l.site.bucket = bucket
	}
	l.service = startService(string(l.key), l.people.form.Served, zone, faults)
	l.service.passes = l.clock.pass
	l.def = l.site.newDefinition(source(seed, 5), l.people, l.now, follows, l.hourly)
	l.def.Uncounted = faults.V2.Pagination != ""
	l.def.follow(source(seed, 10), follows)
	l.obey(source(seed, 6))
	l.export = l.newExport(source(seed, 7))
	return l, nil
}

// newFolder is one in memory where the machine has that: what is synced to a
// disk takes most of the time.
func newFolder(seed uint64) (string, error) {
	name := fmt.Sprintf("formetl-life-%d-", seed)
	if dir, err := os.MkdirTemp("/dev/shm", name); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", name)
}

// newQuirks chooses how the service is made.
func newQuirks(random *rand.Rand, seed uint64, lawful bool) formservice.Faults {
	f := formservice.Faults{
		Seed: seed, BusyStatus: pick(random, 0, 200, 429, 503), OldRoot: chance(random, 15), Errors200: chance(random, 20), Latin1: chance(random, 15),
		Control: pick(random, "", "raw", "ref"), Headings: pick(random, "", "id", "nested"), NoGzip: chance(random, 50),
		BareMaxMidnight: chance(random, 30), StrictLimit: chance(random, 30), SlowDelay: time.Millisecond,
	}
	if chance(random, 20) {
		f.PageCap = pick(random, 2, 5, 10, 37)
	}
	if chance(random, 20) {
		f.Latency = time.Duration(random.IntN(4000)) * time.Microsecond
	}
	if lawful || !chance(random, 25) {
		return f
	}
	switch random.IntN(4) {
	case 0:
		f.IgnoreMinID = true
	case 1:
		f.IgnoreMaxID = true
	case 2:
		f.IgnoreDirection = true
	case 3:
		f.IgnoreSearch = true
	}
	return f
}

// addV2 chooses the generation that the definition asks for, and the shapes of the JSON
// one. What it never does, or formetl refuses, is taken back.
func addV2(random *rand.Rand, f *formservice.Faults, lawful bool) (api string) {
	if chance(random, 50) {
		return formservice.V1
	}
	f.OldRoot, f.Latin1, f.Control, f.StrictLimit = false, false, "", false
	f.V2 = formservice.V2Shapes{
		NumberIDs: chance(random, 30), NumberMetas: chance(random, 30), Fractions: pick(random, "", "none", "random"), Seconds: chance(random, 20),
		CoarseBounds: chance(random, 15), StrictDates: chance(random, 30), ClampLimit: chance(random, 30), OwnPositions: chance(random, 30),
		MixValues: chance(random, 30), BareForm: chance(random, 30), SnakeStats: chance(random, 30),
	}
	if chance(random, 20) {
		f.V2.Pagination = pick(random, "missing", "zero", "more", "less")
		if lawful {
			f.V2.Pagination = "missing" // wrong headers that agree once, by chance, are believed
		}
		if f.V2.Pagination == "less" {
			f.PageCap = 0 // a short page that says that none follows is believed
		}
	}
	return formservice.V2
}

// addUnsorted chooses whether the service lets itself be asked what changed. In
// a third of the lives it does not. It may lack the stamps and be lawful.
func addUnsorted(random *rand.Rand, f *formservice.Faults, lawful bool) {
	switch n := random.IntN(100); {
	case n < 20:
		f.IgnoreSort = !lawful
	case n < 33:
		f.LackUpdate = pick(random, 1, 2, 3, 7, 40)
	}
}

// enough is how many results show that a service sorts: their order by user_ip is
// hardly that of their ids or dates.
const enough = 12

// tells tells whether the service tells for sure what changed of the results that
// a definition reads, and counts them.
func (l *life) tells(d *definition) bool { return l.sorts(d) && d.counted() && !l.fewNow() }

// sorts tells whether a definition may ask the service for what changed. Short pages may
// show no order.
func (l *life) sorts(d *definition) bool {
	f := l.service.form.Faults
	return f.PageCap == 0 && !f.IgnoreSort && f.LackUpdate == 0 && !l.breaks() && !d.byLookback
}

// asks tells whether the service tells for sure what changed of results that it does not
// count: enough of them show that it sorts, by columns that the view does not hide.
func (l *life) asks(d *definition) bool {
	if !l.sorts(d) || d.Uncounted || d.View != nil && !slices.Contains(d.View.Columns, "date_update") {
		return false
	}
	n := 0
	for _, id := range l.people.form.IDs() {
		if r, there := l.people.form.Served.Get(id); there && d.Matches(r) {
			n++
		}
	}
	d.few = d.few || n < enough
	return !d.few
}

// breaks tells whether the service breaks its specification in what a run needs.
func (l *life) breaks() bool {
	f := l.service.form.Faults
	return f.IgnoreDirection || f.IgnoreDates || f.IgnoreMinID || f.IgnoreMaxID
}

// miscounts tells whether headers that tell a wrong number of results lead a run astray
// once results change under it.
func (l *life) miscounts() bool {
	wrong := l.service.form.Faults.V2.Pagination
	return wrong != "" && wrong != "missing"
}

// copes tells whether runs end well all the same: a definition of single files without a
// range needs no dates.
func (l *life) copes() bool {
	f := l.service.form.Faults
	files := !slices.ContainsFunc(l.def.outputs, func(o *output) bool { return o.Dataset() })
	return !f.IgnoreDirection && !f.IgnoreMinID && !f.IgnoreMaxID && (!f.IgnoreDates || l.def.DatesIgnored && files)
}

// fewNow tells whether the form has too few results to show that the service
// sorts, or had at a time: what a run did not see is remembered for a day.
func (l *life) fewNow() bool {
	l.few = l.few || len(l.people.form.IDs()) < enough
	return l.few
}

// obey fits definition and service to each other. From a service that ignores
// dates, half of the definitions ask for all results and do not divide them.
func (l *life) obey(random *rand.Rand) {
	f := &l.service.form.Faults // they are read at the first request
	l.def.SearchIgnored = f.IgnoreSearch
	if l.miscounts() {
		l.def.verify = true // else nothing shows that what was taken over is not all
	}
	if l.lawful || !chance(random, 8) {
		return
	}
	if f.IgnoreDates = true; chance(random, 50) {
		l.def.DatesIgnored, l.def.incremental, l.def.window = true, false, "auto"
		l.def.from, l.def.to = time.Time{}, time.Time{}
		for _, o := range l.def.outputs {
			o.Partition = "none"
		}
	}
}

// close ends the life. Its folder stays where something was wrong.
func (l *life) close(keep bool) {
	l.service.http.CloseClientConnections()
	l.service.http.Close()
	if !keep {
		_ = os.RemoveAll(l.site.dir) // it is a temporary folder
	}
}

// live lets everything happen and tells what was wrong.
func (l *life) live() error {
	steps := 3 + l.random.IntN(6)
	if l.hourly {
		steps += 8
	}
	for range steps {
		if err := l.harm(); err != nil {
			return err
		}
		s := l.newStep(l.random)
		l.passTime(s.wait)
		if err := l.take(s); err != nil {
			return err
		}
		if len(l.damages) > 0 {
			if err := l.heal(); err != nil {
				return err
			}
		}
	}
	return l.end()
}

// write writes the definition.
func (l *life) write() error {
	return os.WriteFile(l.def.file, []byte(l.def.text(l.service, l.site.bucket)), 0o600)
}

// passTime lets people change results before the next step, while nothing reads them or
// while there are readings that are not finished.
func (l *life) passTime(wait time.Duration) {
	now := l.now.Add(time.Duration(l.random.Int64N(int64(wait))))
	l.clock.set(now)
	m := freely()
	if l.def.unfinished != none {
		m = m.and(l.manners(l.def))
	}
	if l.export.unfinished != none {
		m = m.and(l.manners(l.export))
	}
	changes := l.random.IntN(12)
	if chance(l.random, 4) { // a mailing went out, or somebody goes through all answers
		changes += 100 + l.random.IntN(200)
	}
	for range changes {
		l.people.change(now, m)
	}
	if l.def.unfinished == none && l.export.unfinished == none {
		l.people.moving = chance(l.random, 50)
	}
}

// manners are what people may do while a definition reads results, or has a
// reading that is not finished.
//
// Results may not move while others of the same reading go: then the sums of the counts
// agree although the moved one is lost. Two windows of a day: after day 1 is read, a result
// of day 2 moves to day 1 and one of day 1 is deleted. A run says
// `verified.method: counts` there and promises no more. One that asks the service what
// changed finds it all the same, so that people are free where it can be asked.
func (l *life) manners(d *definition) manners {
	m := manners{come: true, move: l.people.moving, leave: !l.people.moving, edit: true}
	// A result that moves out of what is read is one that leaves.
	m.within = append(slices.Clone(d.narrowed), d.reads(l.now))
	asks := !d.counted() && l.asks(d)
	if asks || l.tells(d) {
		m = freely()
	}
	if !d.counted() && !asks {
		m.move = false
	}
	if l.breaks() { // a run may end with 65, and writes nothing that is wrong
		m = freely()
		m.move = d.counted() // else a run says that a result that moved may be missing
	}
	return m
}

// take performs a step, judges it and remembers what follows from it.
func (l *life) take(s *step) error {
	l.now = l.now.Add(s.wait)
	l.clock.set(l.now)
	l.few = l.few || s.forgets
	l.told = append(l.told, fmt.Sprintf("%d. at %s, moment %d, by API %s: %+v", len(l.told)+1, l.now.Format(time.DateTime), l.people.form.At(), l.def.api, *s))
	outcomes, err := l.perform(s)
	for _, o := range outcomes {
		last := &l.told[len(l.told)-1]
		*last += fmt.Sprintf("; ended with %d (killed: %t) after %d requests", o.code, o.killed, o.requests)
		l.figures.count(o, !l.breaks() && !l.miscounts())
	}
	if err != nil {
		return l.wrong(s, outcomes, err)
	}
	if err := l.judge(s, outcomes); err != nil {
		return l.wrong(s, outcomes, err)
	}
	return nil
}

// wrong tells of a step after which something was wrong.
func (l *life) wrong(s *step, outcomes []*outcome, err error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "after step %d, %s:\n%v\n", len(l.told), s.kind, err)
	for _, o := range outcomes {
		fmt.Fprintf(&b, "--- it wrote\n%s", tail(o.stderr, 25))
	}
	fmt.Fprintf(&b, "--- the service answered\n%s", tail(l.service.log(), 60))
	return errors.New(b.String())
}

// tail is the last lines of a text, each cut where it is long.
func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	all = all[max(0, len(all)-lines-1):]
	for i, line := range all {
		if len(line) > 600 {
			all[i] = line[:600] + "…\n"
		}
	}
	return strings.Join(all, "")
}

// scenario tells of the whole life, for people.
func (l *life) scenario() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the folder is %s\nthe service: %s; its clock is off by %s, jumps: %t\nthe definition:\n%s\n", l.site.dir, l.service.form.Faults, l.clock.off, l.clock.jumps, l.def.text(l.service, l.site.bucket))
	fmt.Fprintf(&b, "export: %s\nthe steps:\n%s\n", strings.Join(l.export.exportArguments(l.service.URL), " "), strings.Join(l.told, "\n"))
	return b.String()
}
