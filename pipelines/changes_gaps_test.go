package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// gapHour is a run over the small world, and what happens before and during it.
type gapHour struct {
	before []deed
	// when picks the request before whose answer during happens; the first one.
	when   func(formservice.Request) bool
	during []deed
	loud   bool // the run may say that it could not
}

// gap is a row of deeds that sums and the feed of changes may miss.
type gap struct {
	name  string
	kind  string // of the definition: full or incremental
	stand bool   // the service's clock stands still within an hour
	hours []gapHour
}

func edit(id int64, day string) deed {
	return deed{fmt.Sprintf("write %d to %s", id, day), func(w *smallWorld) { w.put(id, day) }}
}

func removed(ids ...int64) deed {
	return deed{fmt.Sprint("delete ", ids), func(w *smallWorld) {
		for _, id := range ids {
			w.form.Delete(id)
		}
	}}
}

func asksFeed(r formservice.Request) bool { return strings.Contains(r.Query, "fs_sort=date_update") }

// after picks the first request that b picks once a has picked one.
func after(a, b func(formservice.Request) bool) func(formservice.Request) bool {
	met := false
	return func(r formservice.Request) bool {
		was := met
		met = met || a(r)
		return was && b(r)
	}
}

func countsDay(day string) func(formservice.Request) bool {
	return func(r formservice.Request) bool {
		return r.Transaction == formservice.TransactionCount && strings.Contains(r.Query, "fs_max_date="+day) && !strings.Contains(r.Query, "fs_min_id")
	}
}

// TestGapsOfSums plays the worlds in which sums agree, or the feed names a change
// already, while a result is lost, stays behind or is there twice. After a run
// without an error the dataset must hold each result that did not change during it.
func TestGapsOfSums(t *testing.T) {
	needs.Slow(t)
	quiet := gapHour{}
	for _, c := range []gap{
		{
			name: "a count of ids agrees because a read result was deleted", kind: "full",
			hours: []gapHour{{
				before: []deed{edit(8, "01")}, when: reads("2026-01-02"),
				during: []deed{edit(6, "01"), removed(8), edit(9, "20")}, loud: true,
			}},
		},
		{
			name: "a move out of the range hides an earlier deletion", kind: "incremental",
			hours: []gapHour{quiet, {before: []deed{removed(4)}, when: asksFeed, during: []deed{edit(5, "20")}}},
		},
		{
			name: "a deletion while counts are halved hides an earlier one", kind: "incremental",
			hours: []gapHour{quiet, {
				before: []deed{removed(3)}, when: countsDay("2026-01-01"), during: []deed{removed(2)},
			}, quiet},
		},
		{
			name: "a new result that is deleted before it is read hides an earlier deletion", kind: "incremental",
			hours: []gapHour{quiet, {before: []deed{removed(4), edit(100, "03")}, when: reads("2026-01-03"), during: []deed{removed(100)}}, quiet},
		},
		{
			name: "a new result in another part than an edited one", kind: "incremental",
			hours: []gapHour{quiet, {before: []deed{edit(1, "01"), edit(100, "02")}}, quiet, quiet},
		},
		{
			name: "a result that moves after others of its part did", kind: "incremental",
			hours: []gapHour{quiet, {before: []deed{edit(1, "01"), edit(3, "01")}}, {before: []deed{edit(2, "01")}}, quiet, quiet},
		},
		{
			name: "two results are all that is left", kind: "incremental",
			hours: []gapHour{quiet, {before: []deed{removed(1, 3, 4, 5, 6, 9)}}, {before: []deed{edit(100, "03"), edit(2, "01")}}, {before: []deed{edit(2, "01")}}},
		},
		{
			name: "two changes within one second, one of them read", kind: "incremental", stand: true,
			hours: []gapHour{quiet, {
				before: []deed{edit(1, "01"), edit(3, "02")}, when: reads("2026-01-02"), during: []deed{edit(1, "01")},
			}, quiet},
		},
		{
			name: "two moves within one second around the feed at the end", kind: "incremental", stand: true,
			hours: []gapHour{{before: []deed{edit(6, "02")}, when: after(reads("2026-01-03"), asksFeed), during: []deed{edit(6, "03")}}, quiet},
		},
	} {
		t.Run(c.name, func(t *testing.T) { newModel(t, "").playGap(t, c) })
	}
}

func (m *model) playGap(t *testing.T, c gap) {
	t.Helper()
	w := newSmallWorld()
	m.service.SetForms(w.form)
	if c.stand {
		w.form.SetClock(func() time.Time { return w.clock })
	}
	dir := filepath.Join(m.parent, "gap")
	for n, h := range c.hours {
		now := extracttest.Wall("2026-01-03 21:00:30").Add(time.Duration(n) * time.Hour)
		w.clock = now
		do := func(list []deed) {
			for _, d := range list {
				d.do(w)
				w.remember()
			}
		}
		do(h.before)
		begun := len(w.history) - 1
		asked, done := []string{}, h.when == nil
		m.before(func(r formservice.Request) {
			if asked = append(asked, r.Transaction+" "+r.Query); !done && h.when(r) {
				done = true
				do(h.during)
			}
		})
		def := m.definition(dir, c.kind)
		def.Extract.Lookback = time.Hour
		o := options()
		o.Now = func() time.Time {
			return time.Date(now.Year(), now.Month(), now.Day(), now.Hour(), now.Minute(), now.Second(), 0, m.source.Zone)
		}
		o.Wait = func(_ context.Context, d time.Duration) error {
			w.clock = w.clock.Add(d)
			return nil
		}
		report, err := pipelines.Run(t.Context(), def, o)
		m.before(nil)
		if !done {
			t.Fatalf("run %d never asked what the test waits for:\n%s", n, strings.Join(asked, "\n"))
		}
		if _, verify := errors.AsType[*reconcile.VerifyError](err); err != nil && h.loud && (verify || pipelines.DataAtFault(err)) {
			return
		}
		if err != nil {
			t.Fatalf("run %d: %v; %d requests, the first:\n%s", n, err, len(asked), strings.Join(asked[:min(12, len(asked))], "\n"))
		}
		manifest := readManifest(t, filepath.Join(dir, "days", load.ManifestName))
		var rows []map[string]any
		for _, p := range manifest.Parts {
			rows = append(rows, readNDJSON(t, filepath.Join(dir, "days", p.Path))...)
		}
		end := manifest.Range.To.Format(formservice.WallTime)
		if err := w.judge(rows, begun, begun, func(is string) bool { return is < end }); err != nil {
			t.Errorf("run %d: %v; changes %+v, verified %+v\n%s", n, err, manifest.Changes, report.Forms[0].Verified, strings.Join(asked, "\n"))
		}
		if r := report.Forms[0].ResultChanges; r != nil && strings.Contains(r.Reason, "one second") {
			t.Errorf("run %d: %+v", n, *r)
		}
	}
}

// TestCountOfBeforeAResultCame: a result comes between the count and the list of changes, so that
// one too few is counted. A page holds ten. The span that is suspected then has eleven results, or
// the day that the result comes to has ten, and one of them has a higher id: what a page cuts off
// must not make all agree with that count.
func TestCountOfBeforeAResultCame(t *testing.T) {
	needs.Slow(t)
	days := definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay}
	for _, c := range []struct {
		outs  []definition.Output
		more  int64  // results that were added
		on    string // their day
		id    int64  // of the one that comes
		comes string // its date
	}{
		{nil, 8, "2025-12-28", 5000, "2025-03-10 10:00:00"},
		{nil, 8, "2025-12-28", 5000, "2025-11-10 10:00:00"},
		{[]definition.Output{days}, 7, "2025-03-10", 3000, "2025-03-10 10:00:00"},
	} {
		s := newStamped(t, c.outs...)
		for i := range c.more {
			s.insert(4000+i, fmt.Sprintf("%s 12:00:%02d", c.on, i))
		}
		s.hour()
		s.later(func() {})
		s.service.SetFaults("page-cap=10")
		n := 0
		s.service.Before = func(formservice.Request) {
			if n++; n == 2 {
				s.insert(c.id, c.comes)
			}
		}
		s.hour()
	}
}
