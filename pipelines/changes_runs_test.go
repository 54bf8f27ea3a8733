package pipelines_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// The model of many runs lets a small world change between hourly runs and during
// them. Runs are killed, the service forgets to sort, and its clock jumps. A seed
// decides what happens, and is the name of a test: -run 'TestModelOfRuns/days/17$'.

// saga is a row of runs over one dataset, and what a seed made of them.
type saga struct {
	*model
	*smallWorld
	random *rand.Rand
	kind   sagaKind
	dir    string
	now    time.Time     // formetl's clock, as wall clock
	off    time.Duration // of the service's clock against it
	begun  int           // the history when the oldest run began whose readings are kept
	log    []string      // what happened
	known  bool          // a run was committed while the service sorted
	killed bool          // the run before was
}

// sagaKind is what may happen in a saga.
type sagaKind struct {
	name      string
	partition definition.Partition
	step      time.Duration // by which the service's clock advances from change to change
	kills     bool
	faults    bool // the service forgets to sort, or lacks stamps, in some runs
	jumps     bool // the service's clock jumps by less than two hours
	apis      bool // each run is by API v1 or by API v2
	stale     int  // bound of stale parts; 0: the usual one
}

func sagaKinds() []sagaKind {
	day, none := definition.PartitionDay, definition.PartitionNone
	return []sagaKind{
		{name: "days", partition: day, step: time.Second},
		{name: "one partition", partition: none, step: time.Second},
		{name: "within one second", partition: day},
		{name: "killed", partition: day, step: time.Second, kills: true},
		{name: "killed, one partition", partition: none, step: time.Second, kills: true},
		{name: "one stale part a run", partition: day, step: time.Second, stale: 1},
		{name: "a clock that jumps", partition: day, step: time.Second, jumps: true},
		{name: "a service that forgets to sort", partition: day, step: time.Second, faults: true},
		{name: "all of it", partition: day, step: time.Second, kills: true, faults: true, jumps: true, stale: 1},
		{name: "by either generation", partition: day, step: time.Second, apis: true},
		{name: "all of it by either generation", partition: day, step: time.Second, apis: true, kills: true, faults: true, jumps: true, stale: 1},
	}
}

func (m *model) newSaga(seed uint64, kind sagaKind) *saga {
	s := &saga{
		model: m, smallWorld: newSmallWorld(), kind: kind, dir: filepath.Join(m.parent, "case"),
		random: rand.New(rand.NewPCG(seed, 13)), now: extracttest.Wall("2026-01-03 20:00:30"),
	}
	if err := os.RemoveAll(s.dir); err != nil {
		m.t.Fatal(err)
	}
	m.service.SetForms(s.form)
	s.form.SetClock(func() time.Time {
		s.clock = s.clock.Add(kind.step)
		return s.clock
	})
	return s
}

// deed changes one result at random and remembers the states.
func (s *saga) deed() {
	var ids []int64
	s.form.Each(func(r formservice.Result) bool {
		ids = append(ids, r.ID)
		return true
	})
	dates := []string{"2026-01-01 09:00:00", "2026-01-02 09:00:00", "2026-01-03 09:00:00", "2026-01-20 09:00:00", s.now.Add(-90 * time.Second).Format(formservice.WallTime)}
	date := dates[s.random.IntN(len(dates))]
	id, kind := int64(0), s.random.IntN(8)
	if len(ids) > 0 {
		id = ids[s.random.IntN(len(ids))]
	}
	switch {
	case kind == 0 || id == 0:
		id, s.next = s.next, s.next+1
		s.write(id, date)
		s.log = append(s.log, fmt.Sprintf("  insert %d at %s", id, date))
	case kind <= 2:
		s.form.Delete(id)
		s.log = append(s.log, fmt.Sprintf("  delete %d", id))
	case kind <= 5:
		s.write(id, date)
		s.log = append(s.log, fmt.Sprintf("  move %d to %s", id, date))
	default:
		r, _ := s.form.Get(id)
		s.write(id, pipelinestest.Date(r))
		s.log = append(s.log, fmt.Sprintf("  edit %d at %s", id, pipelinestest.Date(r)))
	}
	s.log[len(s.log)-1] += fmt.Sprintf(", stamped %s", s.clock.Format(formservice.WallTime))
	s.remember()
}

// write stores a result with this date and a new answer.
func (s *saga) write(id int64, date string) {
	s.answers++
	r := pipelinestest.Result(id, date, fmt.Sprint("answer ", s.answers))
	r.Metas = append(r.Metas, formservice.Meta{ID: "user_ip", Value: address(id)})
	if s.form.Update(r) != nil {
		_, _ = s.form.Insert(r) // one of the two does
	}
}

// hour lets an hour pass with deeds, and runs with deeds. quiet runs see none.
func (s *saga) hour(n int, quiet bool) (report *pipelines.FormReport, err error) {
	s.now = s.now.Add(time.Hour)
	if s.kind.jumps && !quiet && s.random.IntN(2) == 0 {
		s.off = time.Duration(s.random.IntN(110)-55) * time.Minute
	}
	s.clock = s.now.Add(s.off)
	before, during, kill := s.random.IntN(3), s.random.IntN(3), 0
	at := make([]int, 0, during)
	for range during {
		at = append(at, 1+s.random.IntN(10))
	}
	slices.Sort(at)
	stop := 0 // after so many windows
	if s.kind.kills && s.random.IntN(3) == 0 {
		if kill = 2 + s.random.IntN(9); kill%2 == 0 {
			kill, stop = 0, 1+s.random.IntN(3)
		}
	}
	faults := formservice.Faults{}
	if s.kind.faults && s.known && s.random.IntN(4) == 0 {
		faults = []formservice.Faults{{IgnoreSort: true}, {LackUpdate: 3}}[s.random.IntN(2)]
	}
	if quiet {
		before, at, kill, stop, faults = 0, nil, 0, 0, formservice.Faults{}
	}
	s.log = append(s.log, fmt.Sprintf("run %d at %s, faults %q, killed at request %d, after %d windows", n, s.now.Format(formservice.WallTime), faults, kill, stop))
	for range before {
		s.deed()
	}
	if s.kind.step > 0 { // what happens during the run is later than what the feed shows
		s.clock = s.clock.Add(s.kind.step)
	}
	if !s.killed {
		s.begun = len(s.history) - 1
	}
	s.service.SetFaults(faults)
	if s.kind.apis {
		s.source.API = []definition.API{definition.APIv1, definition.APIv2}[s.random.IntN(2)]
		s.log = append(s.log, " by API "+string(s.source.API))
	}
	requests := 0
	var decide func(formservice.Request) formservice.Fault
	def := s.definition(s.dir, "incremental")
	def.Extract.Lookback, def.Outputs[0].Partition = time.Hour, s.kind.partition
	if s.kind.stale > 0 {
		def.Extract.MaxStaleParts = s.kind.stale
	}
	if kill > 0 {
		def.Source.Requests.Retries = 0
		decide = func(formservice.Request) formservice.Fault {
			if requests >= kill {
				return formservice.FaultReset
			}
			return formservice.NoFault
		}
	}
	s.hooks(func(q formservice.Request) {
		requests++
		s.log = append(s.log, fmt.Sprintf(" %d %s %s", requests, q.Transaction, q.Query))
		for ; len(at) > 0 && at[0] <= requests; at = at[1:] {
			s.deed()
		}
	}, decide)
	began := len(s.history) - 1
	o := options()
	now := time.Date(s.now.Year(), s.now.Month(), s.now.Day(), s.now.Hour(), s.now.Minute(), s.now.Second(), 0, s.source.Zone)
	o.Now = func() time.Time { return now }
	if stop > 0 {
		err := stopAfter(s.t, def, o, stop)
		s.hooks(nil, nil)
		if errors.Is(err, errStop) {
			s.killed = true
			return nil, nil
		}
		s.log = append(s.log, fmt.Sprint(" not stopped: ", err)) // it had fewer windows, and is done
		if err != nil && (!pipelines.DataAtFault(err) || len(s.history)-1 == began) {
			return nil, err
		}
		s.killed = false
		s.known = s.known || err == nil
		return nil, nil
	}
	all, err := pipelines.Run(s.t.Context(), def, o)
	s.hooks(nil, nil)
	if err != nil {
		s.log = append(s.log, fmt.Sprint(" ended: ", err))
		switch {
		case kill > 0 && requests >= kill:
			s.killed = true
			return nil, nil
		case pipelines.DataAtFault(err) && len(s.history)-1 > began:
			s.loud++
			s.killed = false
			return nil, nil
		}
		return nil, err
	}
	s.killed = false
	report = all.Forms[0]
	s.known = true
	s.log = append(s.log, fmt.Sprintf(" %+v, verified %+v", *report.ResultChanges, *report.Verified))
	return report, s.judge(report)
}

// judge compares the dataset with the history after a run without an error. A
// service that does not sort may look sorted by chance. Then all results are on
// one page, so the run must be right all the same.
func (s *saga) judge(report *pipelines.FormReport) error {
	if report.ResultChanges.Method != load.MethodChanges {
		return nil
	}
	return s.exact(s.t, s.dir, readManifest(s.t, filepath.Join(s.dir, "days", load.ManifestName)), s.begun)
}

// exact compares a dataset with the history since a run began. Each result that did
// not change since must be in its present state, and none may be lost or be there
// twice. Only spans that are known to be stale may hold older states. A deleted result
// may stay for one run during which another one left.
func (w *smallWorld) exact(t *testing.T, dir string, m *load.Manifest, begun int) error {
	t.Helper()
	got := map[int64]string{}
	for _, p := range m.Parts {
		for _, row := range readNDJSON(t, filepath.Join(dir, "days", p.Path)) {
			id := int64(row["result_id"].(float64)) //nolint:errcheck // NDJSON of ours
			if _, twice := got[id]; twice {
				return fmt.Errorf("result %d is there twice", id)
			}
			date, _ := row["date_finish"].(string)
			got[id] = strings.Replace(date[:19], "T", " ", 1) + " " + row["item_1"].(string)
		}
	}
	if m.Changes == nil {
		m.Changes = &load.Changes{}
	}
	stale := func(is string) bool {
		return is != "" && slices.ContainsFunc(m.Changes.Stale, func(r load.Range) bool {
			at := extracttest.Wall(is[:19])
			return !at.Before(r.From.Time) && (r.To.IsZero() || at.Before(r.To.Time))
		})
	}
	end := m.Range.To.Format(formservice.WallTime)
	since, last := w.history[begun:], w.history[len(w.history)-1]
	for id := range max(w.next, 101) {
		want, is := last[id], got[id]
		if want >= end {
			want = ""
		}
		constant := !slices.ContainsFunc(since, func(h map[int64]string) bool { return h[id] != last[id] })
		throughout := !slices.ContainsFunc(since, func(h map[int64]string) bool { return h[id] == "" || h[id] >= end })
		was := slices.ContainsFunc(since, func(h map[int64]string) bool { return h[id] == is })
		switch {
		case constant && want == "" && leftSince(since, func(is string) bool { return is < end }):
		case stale(want) || stale(is), constant && want == "" && len(m.Changes.Stale) > 0 && !m.Verified.Match:
		case throughout && is == "":
			return fmt.Errorf("result %d was in the range throughout, and is lost", id)
		case constant && is != want:
			return fmt.Errorf("result %d is %q, and was %q all the time", id, is, want)
		case is != "" && want != "" && !was:
			return fmt.Errorf("result %d is %q, which it was at no moment of the run", id, is)
		}
	}
	return nil
}

// leftSince tells whether a result left the range in the course of a history.
func leftSince(history []map[int64]string, inRange func(string) bool) bool {
	for id, is := range history[0] {
		now := history[len(history)-1][id]
		if is != "" && inRange(is) && (now == "" || !inRange(now)) {
			return true
		}
	}
	return false
}

// tell plays the whole saga. In the end the world is quiet, and the dataset must
// become what the service holds.
func (s *saga) tell() error {
	n := 0
	for range 2 + s.random.IntN(4) {
		if _, err := s.hour(n, false); err != nil {
			return err
		}
		n++
	}
	s.now = s.now.Add(25 * time.Hour) // a proof is looked for once a day
	for range 6 {
		report, err := s.hour(n, true)
		if err != nil {
			return err
		}
		n++
		c := *report.ResultChanges
		switch {
		case strings.Contains(c.Reason, "nothing shows that the service sorts"):
			return nil // too few results are left for a proof
		case c.StaleLeft == 0 && c.Method == load.MethodChanges:
			if v := *report.Verified; v.Method != load.MethodChanges || !v.Match {
				return fmt.Errorf("in the end: %+v, verified %+v", c, v)
			}
			return nil
		}
	}
	return errors.New("after six quiet runs it is still not known what changed, or parts are stale")
}

// TestModelOfRuns tells sagas of each kind.
func TestModelOfRuns(t *testing.T) {
	most := uint64(needs.Count(25, 5)) //nolint:gosec // it is not negative
	if v := os.Getenv(modelVariable); v == "all" {
		most = 3000
	} else if n, err := strconv.ParseUint(v, 10, 64); err == nil {
		most = n
	}
	for _, kind := range sagaKinds() {
		t.Run(kind.name, func(t *testing.T) {
			m := newModel(t, formservice.Faults{})
			for seed := range most {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					m.t = t
					s := m.newSaga(seed, kind)
					if err := s.tell(); err != nil {
						t.Errorf("%v\n%s", err, strings.Join(s.log, "\n"))
					}
				})
			}
		})
	}
}
