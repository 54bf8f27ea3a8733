package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// The model checker lets results move, come, go and change before each request of a
// run, in every order. It compares what the run wrote with the history of each
// result. FORMETL_MODEL=all walks all cases; else there are as many as take seconds,
// and a fifth of them unless every test is asked for.
const modelVariable = "FORMETL_MODEL"

// deed is what happens to a result of the small world.
type deed struct {
	name string
	do   func(*smallWorld)
}

// deeds are all that can happen to the results 1 to 6 of three days.
func deeds() []deed {
	moved := func(id int64, to string) deed {
		return deed{fmt.Sprintf("move %d to %s", id, to), func(w *smallWorld) { w.put(id, to) }}
	}
	deleted := func(id int64) deed {
		return deed{fmt.Sprintf("delete %d", id), func(w *smallWorld) { w.form.Delete(id) }}
	}
	inserted := func(day string) deed {
		return deed{"insert " + day, func(w *smallWorld) { w.put(w.next, day); w.next++ }}
	}
	return []deed{
		moved(1, "02"), moved(1, "03"), moved(3, "01"), moved(3, "03"), moved(5, "01"), moved(5, "02"),
		moved(2, "20"), moved(9, "01"), deleted(1), deleted(2), deleted(4), deleted(6), inserted("01"), inserted("02"), inserted("03"),
		{"edit 4", func(w *smallWorld) { w.put(4, "02") }},
		{"edit 1", func(w *smallWorld) { w.put(1, "01") }},
	}
}

// smallWorld is a form of six results on three days, and the history of each.
type smallWorld struct {
	form    *formservice.Form
	clock   time.Time
	next    int64
	answers int
	history []map[int64]string // the date and the answer of each result, after each deed
}

func newSmallWorld() *smallWorld {
	w := &smallWorld{clock: extracttest.Wall("2026-01-03 20:00:00"), next: 100}
	var results []formservice.Result
	for i, day := range []string{"01", "01", "02", "02", "03", "03", "", "", "20"} {
		if day == "" {
			continue
		}
		r := pipelinestest.Result(int64(i+1), "2026-01-"+day+" 10:00:00", "first")
		r.Metas = append(r.Metas, formservice.Meta{ID: "user_ip", Value: address(int64(i + 1))},
			formservice.Meta{ID: "date_update", Value: "2026-01-" + min(day, "03") + " 10:00:00"})
		results = append(results, r)
	}
	w.form = formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	w.form.SetClock(func() time.Time {
		w.clock = w.clock.Add(time.Second)
		return w.clock
	})
	w.remember()
	return w
}

// address varies from result to result, and follows neither ids nor dates.
func address(id int64) string {
	return fmt.Sprint("198.51.100.", []int64{4, 0, 5, 1, 3, 2, 0, 0, 6}[(id-1)%9])
}

// put stores a result with another date and answer.
func (w *smallWorld) put(id int64, day string) {
	w.answers++
	r := pipelinestest.Result(id, "2026-01-"+day+" 11:00:00", fmt.Sprint("answer ", w.answers))
	r.Metas = append(r.Metas, formservice.Meta{ID: "user_ip", Value: address(id)})
	if w.form.Update(r) != nil {
		_, _ = w.form.Insert(r) // one of the two does
	}
}

func (w *smallWorld) remember() {
	now := map[int64]string{}
	w.form.Each(func(r formservice.Result) bool {
		values, _ := r.Values("1")
		now[r.ID] = pipelinestest.Date(r) + " " + values[0]
		return true
	})
	w.history = append(w.history, now)
}

// judge compares the rows of an output with the history since a moment. Results
// that did not change since the moment `fixed` must be in their present state.
func (w *smallWorld) judge(rows []map[string]any, since, fixed int, inRange func(string) bool) error {
	got := map[int64]string{}
	for _, row := range rows {
		id := int64(row["result_id"].(float64)) //nolint:errcheck // NDJSON of ours
		if _, twice := got[id]; twice {
			return fmt.Errorf("result %d is there twice", id)
		}
		date, _ := row["date_finish"].(string)
		got[id] = strings.Replace(date[:19], "T", " ", 1) + " " + row["item_1"].(string)
	}
	last := w.history[len(w.history)-1]
	constant := func(id int64) bool {
		return !slices.ContainsFunc(w.history[fixed:], func(h map[int64]string) bool { return h[id] != last[id] })
	}
	hides := leftSince(w.history[since:], inRange) // a result that leaves may hide for one run that others are gone
	for id, is := range got {
		if hides && last[id] == "" {
			continue
		}
		from := 0 // a part that the run did not touch is as it was read before
		if constant(id) {
			from = since
		}
		if !slices.ContainsFunc(w.history[from:], func(h map[int64]string) bool { return h[id] == is }) {
			return fmt.Errorf("result %d is %q, which it was at no moment of the run", id, is)
		}
	}
	for id := range w.next {
		throughout := !slices.ContainsFunc(w.history[since:], func(h map[int64]string) bool { return h[id] == "" || !inRange(h[id]) })
		if throughout && got[id] == "" {
			return fmt.Errorf("result %d was in the range throughout, and is lost", id)
		}
		if hides && last[id] == "" {
			continue
		}
		if want := last[id]; constant(id) && got[id] != want && (want == "" || inRange(want) || got[id] != "") {
			return fmt.Errorf("result %d is %q, and was %q all the time", id, got[id], want)
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

// model runs cases against one service.
type model struct {
	t       *testing.T
	service *formservice.Server
	source  definition.Source
	parent  string
	cases   int

	answering sync.Mutex // held while a request is answered, perhaps of a run that was killed
	loud      int        // runs that said that they could not
}

func newModel(t *testing.T, faults formservice.Faults) *model {
	t.Helper()
	service := &formservice.Server{Key: pipelinestest.Key, Forms: []*formservice.Form{formservice.NewForm("form1", nil, nil)}, API: formservice.Both}
	service.SetFaults(faults)
	m := &model{t: t, service: service, parent: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.answering.Lock()
		defer m.answering.Unlock()
		service.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	_, source := pipelinestest.Serve(t)
	service.Zone = source.Zone
	source.BaseURL, source.Requests.Concurrency = server.URL, 1
	m.source = source
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		if m.parent, err = os.MkdirTemp("/dev/shm", "formetl-model-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(m.parent) })
	}
	return m
}

// before sets what happens before each request is answered, nil for nothing.
func (m *model) before(do func(formservice.Request)) {
	m.answering.Lock()
	defer m.answering.Unlock()
	m.service.Before = do
}

// scene is one case: deeds, and before which request each happens.
type scene struct {
	kind  string
	stop  int // after so many windows the first run of "resumed" ends
	deeds []deed
	at    []int // not falling; beyond the last request: after the run
}

func (s scene) String() string {
	text := s.kind
	if s.stop > 0 {
		text += fmt.Sprintf(", stopped after %d windows", s.stop)
	}
	for i, d := range s.deeds {
		text += fmt.Sprintf("; %s before request %d", d.name, s.at[i])
	}
	return text
}

// definition reads three days, as a file and a dataset, or hour by hour.
func (m *model) definition(dir, kind string) *definition.Definition {
	outputs := fileAndDays()
	if kind == "incremental" {
		outputs = outputs[1:]
	}
	def := pipelinestest.Definition(dir, m.source, outputs...)
	def.Extract.From, def.Extract.Window = extracttest.Wall("2026-01-01"), extract.Period{Days: 1}
	if def.Extract.To = extracttest.Wall("2026-01-04"); kind == "incremental" {
		def.Extract.To, def.Extract.Incremental, def.Extract.Lookback = time.Time{}, true, 24*time.Hour
	}
	return def
}

// play performs a scene and judges what came of it. It returns how many requests
// the judged run sent.
func (m *model) play(s scene, sorts bool) (requests int, err error) {
	w := newSmallWorld()
	m.service.SetForms(w.form)
	dir := filepath.Join(m.parent, "case")
	if err := os.RemoveAll(dir); err != nil {
		return 0, err
	}
	o := options()
	now := func(wall string) {
		at := extracttest.Wall(wall)
		o.Now = func() time.Time {
			return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, m.source.Zone)
		}
	}
	inRange := func(is string) bool { return is < "2026-01-04" }
	now("2026-01-03 20:00:30")
	if s.kind == "incremental" {
		if err := m.firstRun(dir, o); err != nil {
			return 0, fmt.Errorf("the first run: %w", err)
		}
		now("2026-01-03 21:00:30")
		inRange = func(is string) bool { return is < "2026-01-03 21" }
	}
	if s.stop > 0 {
		if err := stopAfter(m.t, m.definition(dir, s.kind), o, s.stop); !errors.Is(err, errStop) {
			return 0, fmt.Errorf("the run that is stopped: %w", err)
		}
	}
	since, next := 0, 0
	happen := func(until int) {
		for ; next < len(s.deeds) && s.at[next] <= until; next++ {
			s.deeds[next].do(w)
			w.remember()
		}
	}
	m.before(func(formservice.Request) {
		requests++
		happen(requests)
	})
	happen(0)
	if s.kind == "incremental" {
		since = len(w.history) - 1 // what happened before is known from the first request on
	}
	begun := len(w.history) - 1
	fixed := begun
	if s.kind == "resumed" {
		fixed = 0 // what the first run read is kept
	}
	report, err := pipelines.Run(m.t.Context(), m.definition(dir, s.kind), o)
	m.before(nil)
	during := len(w.history) - 1 - begun
	m.cases++
	if err != nil {
		if during == 0 || !pipelines.DataAtFault(err) {
			return requests, err
		}
		m.loud++
		return requests, nil
	}
	if s.stop > 0 && report.Forms[0].WindowsKept == 0 && during == 0 {
		return requests, errors.New("nothing was kept of the run that was stopped")
	}
	v := report.Forms[0].Verified
	proven := v.Method == load.MethodChanges
	counts := load.MethodCounts
	if m.source.API == definition.APIv2 {
		counts = load.MethodPagination
	}
	if proven && !sorts || !proven && v.Method != counts || sorts && during == 0 && (!proven || !v.Match) {
		return requests, fmt.Errorf("verified %+v", v)
	}
	if !sorts {
		return requests, nil
	}
	var rows []map[string]any
	for _, p := range readManifest(m.t, filepath.Join(dir, "days", load.ManifestName)).Parts {
		rows = append(rows, readNDJSON(m.t, filepath.Join(dir, "days", p.Path))...)
	}
	if err := w.judge(rows, since, fixed, inRange); err != nil {
		return requests, fmt.Errorf("dataset: %w", err)
	}
	if s.kind == "incremental" {
		return requests, nil
	}
	if err := w.judge(readNDJSON(m.t, filepath.Join(dir, "form1.ndjson")), since, fixed, inRange); err != nil {
		return requests, fmt.Errorf("file: %w", err)
	}
	return requests, nil
}

// firstRun leaves in a folder what the first incremental run writes of a new world. It is
// the same each time, so that one run is enough.
func (m *model) firstRun(dir string, o pipelines.Options) error {
	kept := filepath.Join(m.parent, "first")
	if _, err := os.Stat(kept); err == nil {
		return os.CopyFS(dir, os.DirFS(kept))
	}
	if _, err := pipelines.Run(m.t.Context(), m.definition(dir, "incremental"), o); err != nil {
		return err
	}
	return os.CopyFS(kept, os.DirFS(dir))
}

// stopAfter ends a run as soon as so many windows are read and durable. A service that
// is gone would end it before, with nothing kept.
func stopAfter(t *testing.T, def *definition.Definition, o pipelines.Options, windows int) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var read atomic.Int64
	o.At = func(point string) {
		if point == "read" && read.Add(1) == int64(windows) {
			cancel(errStop)
		}
	}
	_, err := pipelines.Run(ctx, def, o)
	return err
}

// try plays a scene and tells of a failure.
func (m *model) try(s scene, sorts bool) int {
	n, err := m.play(s, sorts)
	if err != nil {
		m.t.Errorf("%s: %v", s, err)
	}
	return n
}

// TestModel walks the interleavings of two deeds and a run, and tries some of three.
func TestModel(t *testing.T) {
	all := os.Getenv(modelVariable) == "all"
	for i, c := range []struct {
		kind   string
		faults formservice.Faults
		sorts  bool
		share  int // of so many cases of two deeds one is played
		threes int // cases of three deeds
		api    definition.API
	}{
		{"full", "", true, 80, 100, definition.APIv1},
		{"incremental", "", true, 30, 200, definition.APIv1},
		{"resumed", "", true, 200, 100, definition.APIv1},
		{"full", "ignore-sort", false, 300, 50, definition.APIv1},
		{"incremental", "ignore-sort", false, 300, 50, definition.APIv1},
		{"full", "lack-update=3", false, 300, 50, definition.APIv1},
		{"resumed", "lack-update=1", false, 1000, 50, definition.APIv1},
		{"full", "", true, 300, 50, definition.APIv2},
		{"incremental", "", true, 200, 50, definition.APIv2},
		{"resumed", "", true, 1000, 50, definition.APIv2},
		{"full", "ignore-sort", false, 1000, 20, definition.APIv2},
		{"incremental", "lack-update=3", false, 1000, 20, definition.APIv2},
	} {
		t.Run(fmt.Sprintf("%s by %s, faults %q", c.kind, c.api, c.faults), func(t *testing.T) {
			if i > 0 {
				needs.Slow(t)
			}
			m := newModel(t, c.faults)
			m.source.API = c.api
			if threes := needs.Count(c.threes, c.threes/30); threes < c.threes && !all {
				c.threes, c.share = threes, 15*c.share
			}
			random := rand.New(rand.NewPCG(1, 2))
			usual := m.try(scene{kind: c.kind}, c.sorts)
			stops := []int{0}
			if c.kind == "resumed" {
				stops = stops[:0]
				for n := range 3 {
					stops = append(stops, n+1)
				}
			}
			list := deeds()
			for _, stop := range stops {
				for _, a := range list {
					for _, b := range list {
						for i := range usual + 3 {
							for j := i; j < usual+3; j++ {
								if all || random.IntN(c.share) == 0 {
									m.try(scene{c.kind, stop, []deed{a, b}, []int{i, j}}, c.sorts)
								}
								if t.Failed() && !all {
									t.Fatalf("after %d cases", m.cases)
								}
							}
						}
					}
				}
			}
			for range c.threes { // three deeds are too many to walk
				three := scene{kind: c.kind, stop: stops[random.IntN(len(stops))]}
				for range 3 {
					three.deeds, three.at = append(three.deeds, list[random.IntN(len(list))]), append(three.at, random.IntN(usual+3))
				}
				slices.Sort(three.at)
				m.try(three, c.sorts)
			}
			t.Logf("%d cases of %d requests, %d runs said that they could not", m.cases, usual, m.loud)
			if m.loud*10 > m.cases {
				t.Errorf("%d of %d runs ended with an error", m.loud, m.cases)
			}
		})
	}
}
