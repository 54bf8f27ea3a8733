package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// life is a random form, a random definition and a few runs of it, after each
// of which everything is judged.
type life struct {
	dir      string
	bucket   *bucket   // nil where all outputs lie on disk
	database *database // nil where none is a table
	program  string
	random   *rand.Rand // of what happens on the way
	now      time.Time  // what processes take it to be
	key      string
	service  *service
	people   *people
	def      *definition
	few      bool     // the form had too few results to show that the service sorts
	both     bool     // its definition asks now by the one generation, now by the other
	told     []string // the steps, for people
}

// newLife makes everything that a life needs. Each matter has chance of its
// own, so that one does not depend on how much another one asked.
func newLife(c *campaign, seed uint64) (*life, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("formetl-life-%d-", seed))
	if err != nil {
		return nil, err
	}
	l := &life{dir: dir, program: c.program, random: source(seed, 1)}
	random := source(seed, 2)
	zone, err := time.LoadLocation(pick(random, "UTC", "America/Chicago", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"))
	if err != nil {
		return nil, err
	}
	// Clocks are changed in Chicago, Berlin and on Lord Howe in the hours after these, or in the weeks before.
	l.now, err = time.Parse(formservice.WallTime, pick(random, "2026-03-07 22:00:00", "2026-03-28 20:00:00", "2026-04-04 08:00:00",
		"2026-10-24 20:00:00", "2026-11-01 03:00:00", "2026-07-01 00:30:00"))
	if err != nil {
		return nil, err
	}
	l.key = fmt.Sprintf("k/%x+=%d%%z", random.Uint64(), seed%1000)
	if c.server != nil && chance(random, 35) {
		l.bucket = newBucket(c.server)
	}
	if c.postgres != nil {
		name, err := c.postgres.Create()
		if err != nil {
			return nil, err
		}
		l.database = &database{c.postgres, name}
	}
	api, faults := newService(source(seed, 3), seed)
	follows := chance(random, 33)
	if follows {
		faults = faults.With("ignore-sort", false)
	}
	l.both = api == formservice.V2 && faults.Value("v2-pagination") == "" && chance(random, 30)
	clock := newClock(source(seed, 4), zone, l.now)
	l.people = newPeople(source(seed, 5), clock, api == formservice.V2, l.now)
	l.service = startService(l.key, l.people.form, clock, faults)
	l.def = l.newDefinition(source(seed, 6), api, follows)
	l.people.links = l.service.URL + "/acme/files/f-1-1-" // what is answered from now on may be a link
	l.def.uncounted = faults.Value("v2-pagination") != ""
	return l, nil
}

// newService chooses the generation that the definition asks for, and how the service is made.
func newService(random *rand.Rand, seed uint64) (api string, f formservice.Faults) {
	f = formservice.Faults("slow-delay=1ms").With("seed", seed)
	f = f.With("busy-status", pick(random, "", "200", "429", "503")).With("headings", pick(random, "", "id", "nested"))
	may := func(percent int, names ...string) {
		for _, name := range names {
			f = f.With(name, chance(random, percent))
		}
	}
	may(50, "no-gzip")
	may(30, "bare-max-midnight")
	may(20, "errors-200", "ignore-sort")
	if chance(random, 20) {
		f = f.With("page-cap", pick(random, 2, 5, 10, 37))
	}
	if chance(random, 20) {
		f = f.With(pick(random, "ignore-min-id", "ignore-max-id", "ignore-direction"), true)
	}
	if chance(random, 50) {
		may(30, "strict-limit")
		may(15, "old-root", "latin1")
		return formservice.V1, f.With("control", pick(random, "", "raw", "ref"))
	}
	may(30, "v2-number-ids", "v2-number-metas", "v2-strict-dates", "v2-clamp-limit")
	may(30, "v2-own-positions", "v2-mix-values", "v2-bare-form", "v2-snake-stats")
	may(20, "v2-seconds")
	may(15, "v2-coarse-bounds")
	f = f.With("v2-fractions", pick(random, "", "none", "random"))
	return formservice.V2, f.With("v2-pagination", pick(random, "", "", "", "", "", "missing"))
}

// breaks tells whether the service breaks its specification in what every run needs.
func (l *life) breaks() bool {
	f := l.service.form.Faults
	return slices.ContainsFunc([]string{"ignore-direction", "ignore-min-id", "ignore-max-id"}, func(name string) bool { return f.Value(name) == "true" })
}

// enough is how many results show that a service sorts: their order by user_ip is
// hardly that of their ids or dates.
const enough = 12

// tells tells whether the service tells for sure what changed of the results that
// the definition reads, and counts them. Short pages may show no order.
func (l *life) tells() bool {
	l.few = l.few || len(l.people.ids()) < enough // what a run did not see is remembered for a day
	f := l.service.form.Faults
	return f.Value("page-cap") == "" && f.Value("ignore-sort") != "true" && !l.breaks() && !l.def.byLookback && l.def.counted() && !l.few
}

// manners are what people may do while the definition reads results, or has a
// reading that is not finished.
//
// Results may not move while others of the same reading go: then the sums of the counts
// agree although the moved one is lost. Two windows of a day: after day 1 is read, a result
// of day 2 moves to day 1 and one of day 1 is deleted. A run says
// `verified.method: counts` there and promises no more. One that asks the service what
// changed finds it all the same, so that people are free where it can be asked.
func (l *life) manners() manners {
	d := l.def
	switch {
	case l.breaks(): // a run ends with 65, and writes nothing that is wrong
		return manners{leave: true, move: d.counted()}
	case l.tells():
		return freely()
	}
	// A result that moves out of what is read is one that leaves.
	return manners{move: l.people.moving && d.counted(), leave: !l.people.moving, within: append(slices.Clone(d.narrowed), d.reads(l.now))}
}

// live lets everything happen and tells what was wrong.
func (l *life) live() error {
	for range 3 + l.random.IntN(7) {
		s := l.newStep(l.random)
		l.passTime(s.wait)
		if err := l.take(s); err != nil {
			return err
		}
	}
	return l.end()
}

// passTime lets people change results before the next step, while nothing reads them or
// while there are readings that are not finished.
func (l *life) passTime(wait time.Duration) {
	now := l.now.Add(time.Duration(l.random.Int64N(int64(wait))))
	l.service.clock.set(now)
	m, unfinished := freely(), l.def.unfinished != never
	if unfinished {
		m = l.manners()
	}
	changes := l.random.IntN(12)
	if chance(l.random, 4) { // a mailing went out, or somebody goes through all answers
		changes += 100 + l.random.IntN(200)
	}
	for range changes {
		l.people.change(now, m)
	}
	if !unfinished {
		l.people.moving = chance(l.random, 50)
	}
}

// take performs a step, and judges it.
func (l *life) take(s *step) error {
	l.now = l.now.Add(s.wait)
	l.service.clock.set(l.now)
	l.told = append(l.told, fmt.Sprintf("%d. at %s, moment %d, by API %s: %+v", len(l.told)+1, l.now.Format(time.DateTime), l.people.at, l.def.api, *s))
	p, err := l.perform(s)
	if err == nil {
		l.told[len(l.told)-1] += fmt.Sprintf("; ended with %d after %d requests", p.code, l.service.arrived)
		err = l.judge(s, p)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("after step %d, %s:\n%w\n--- it wrote\n%s--- the service answered\n%s", len(l.told), s.kind, err, tail(p.stderr.String(), 25), tail(l.service.log(), 60))
}

// end makes everything well, and makes sure that nothing is left where formetl works, and no
// secret anywhere.
func (l *life) end() error {
	for _, kind := range []string{stepRun, stepFull, stepClean} {
		if err := l.take(&step{kind: kind, wait: time.Hour}); err != nil {
			return err
		}
		if last := l.told[len(l.told)-1]; !strings.Contains(last, "ended with 0 ") && !l.breaks() {
			return fmt.Errorf("nobody disturbed it:\n%s", last)
		}
	}
	problems := []error{l.unwritten(l.dir), l.uploaded()}
	for _, o := range l.def.outputs {
		problems = append(problems, l.unwritten(o.dir))
		if names := o.last.needless(o); len(names) > 0 {
			problems = append(problems, fmt.Errorf("after clean there is left %v of %s", names, o))
		}
	}
	if db := l.database; db != nil {
		dump, err := db.Command("pg_dump", "-h", db.Dir, "-p", fmt.Sprint(db.Port), "-U", "postgres", db.name).Output()
		problems = append(problems, err, l.unsaid("the database", dump))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("in the end:\n%w", err)
	}
	return nil
}

// uploaded checks that each uploaded file is as the service gives it, and, where the definition reads
// all results, that those of all results are there and no others.
func (l *life) uploaded() error {
	files, err := readFiles(filepath.Join(l.dir, "files"))
	problems, found, want := []error{err}, map[string]bool{}, map[string]bool{}
	for name, data := range files {
		if strings.HasPrefix(name, ".formetl/") {
			continue
		}
		found[name] = true
		sum := sha256.Sum256(data)
		is := formservice.File{Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
		if _, linked, _ := strings.Cut(name, "-1-f-"); !slices.Contains(l.service.form.FileOf("f-"+linked), is) {
			problems = append(problems, fmt.Errorf("the file %s is another one than the service's", name))
		}
	}
	l.people.form.Each(func(r formservice.Result) bool {
		for _, a := range r.Items {
			if len(a.Values) == 1 && strings.HasPrefix(a.Values[0], l.people.links) {
				want[fmt.Sprintf("%d/%s-1-%s", r.ID, a.ID, path.Base(a.Values[0]))] = true
			}
		}
		return true
	})
	if l.def.uncounted { // no run is proven, so files of deleted results stay
		maps.DeleteFunc(found, func(name string, _ bool) bool { return !want[name] })
	}
	if d := l.def; d.files && d.columns == nil && !d.complete && d.from.IsZero() && d.to.IsZero() && !l.breaks() && !maps.Equal(found, want) {
		problems = append(problems, fmt.Errorf("%d files are stored, and %d are linked to", len(found), len(want)))
	}
	return errors.Join(problems...)
}

// close ends the life. Its folder and its database stay where something was wrong.
func (l *life) close(keep bool) {
	l.service.Close()
	if l.bucket != nil {
		l.bucket.Close()
	}
	if keep {
		return
	}
	_ = os.RemoveAll(l.dir) // it is a temporary folder
	if l.database != nil {
		_ = l.database.Run("postgres", "DROP DATABASE "+l.database.name+" WITH (FORCE)") // it goes with the server
	}
}

// file is where the definition lies.
func (l *life) file() string { return filepath.Join(l.dir, "campaign.yaml") }

// scenario tells of the whole life, for people.
func (l *life) scenario() string {
	c := l.service.clock
	return fmt.Sprintf("the folder is %s\nthe service: %s; its clock is off by %s, jumps: %t\nthe definition:\n%s\nthe steps:\n%s\n", l.dir, l.service.form.Faults,
		c.off, c.jumps, l.def.text(l.service.URL, l.bucket), strings.Join(l.told, "\n"))
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], "")
}
