package pipelines

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/transform"
)

func TestSpoolIsGoneOnWith(t *testing.T) {
	synctest.Test(t, testGoingOn) // which waits for a lock
}

func testGoingOn(t *testing.T) {
	state := t.TempDir()
	s := begun(t, state, "nightly", "orders")
	old := spoolDay(t, s, 1, 0)
	spoolDay(t, s, 1, 1)
	old.remove() // after the record of the reading that replaces it
	spoolDay(t, s, 2, 0)
	spoolDay(t, s, 3, 0)
	if err := s.forget(3); err != nil {
		t.Fatal(err)
	}
	if err := s.forget(3); err != nil {
		t.Errorf("forgetting what is not there: %v", err)
	}
	empty := windowOf(t, 4, 4, 1)
	empty.Stats = statsRecord{Rejected: 1}
	empty.Rejects = []transform.Reject{{ResultID: 4000, Column: "a", Raw: "x", Reason: "y"}}
	if err := s.record(indexRecord{Index: 4, Window: empty}, nil); err != nil {
		t.Fatal(err)
	}
	dies(t, s)

	l := find(t, state)
	if l == nil || len(l.faults) > 0 || !slices.Equal(indices(l), []int{1, 2, 4}) {
		t.Fatalf("found %+v", l)
	}
	if want := header("nightly", "orders"); !reflect.DeepEqual(l.header, want) {
		t.Errorf("the header is %+v, want %+v", l.header, want)
	}
	if w := l.records[0].windowRecord; !reflect.DeepEqual(w, windowOf(t, 1, 2, 3)) {
		t.Errorf("the record is %+v", w)
	}
	if w := l.records[2]; w.segment != nil || !reflect.DeepEqual(w.windowRecord, empty) {
		t.Errorf("the record is %+v", w)
	}
	if find(t, state) != nil {
		t.Error("a spool that is held was found")
	}
	next, err := l.adopt()
	if err != nil {
		t.Fatal(err)
	}
	if next.folder != s.folder || rowsIn(t, l.records[0].segment) != 3 || rowsIn(t, l.records[1].segment) != 3 {
		t.Errorf("%s does not hold what was spooled", next.folder)
	}
	want := []string{
		"header.json", "index", "index/0000001.json", "index/0000002.json", "index/0000004.json", "lock",
		"w0000001-1-0.spool", "w0000001-1-1.spool", "w0000002-0-0.spool", "w0000002-0-1.spool",
	}
	if got := tree(t, next.folder); !slices.Equal(got, want) {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
	// The next run numbers its attempts anew, and reads the first window again.
	spoolDay(t, next, 1, 0)
	l.records[0].segment.remove()
	if err := next.close(true); err != nil {
		t.Fatal(err)
	}
	last := find(t, state)
	if last == nil || len(last.faults) > 0 || !slices.Equal(indices(last), []int{1, 2, 4}) || rowsIn(t, last.records[0].segment) != 3 {
		t.Fatalf("found %+v", last)
	}
	if err := last.release(); err != nil {
		t.Error(err)
	}
	if last = find(t, state); last == nil {
		t.Fatal("what was released is not found")
	}
	if err := last.discard(); err != nil || exists(spoolsIn(state)) {
		t.Errorf("discarded %t, %v", !exists(spoolsIn(state)), err)
	}
	if find(t, state) != nil {
		t.Error("a discarded spool was found")
	}
}

// TestNewestSpoolIsFound: older ones of the same form are removed, others stay.
func TestNewestSpoolIsFound(t *testing.T) {
	synctest.Test(t, testNewest) // which waits for a lock
}

func testNewest(t *testing.T) {
	state := t.TempDir()
	all := map[string]*spool{}
	for _, name := range []string{"old", "new", "damaged", "held", "leads", "weekly"} {
		form, pipeline := "orders", "nightly"
		switch name {
		case "leads":
			form = name
		case "weekly":
			pipeline = name
		}
		all[name] = begun(t, state, pipeline, form)
		spoolDay(t, all[name], len(all), 0)
	}
	for name, s := range all {
		if name != "held" {
			dies(t, s)
		}
	}
	if err := os.WriteFile(all["damaged"].headerPath(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ago := range map[string]time.Duration{"old": time.Hour, "leads": time.Hour, "damaged": 0} {
		then := time.Now().Add(-ago)
		if err := os.Chtimes(all[name].headerPath(), then, then); err != nil {
			t.Fatal(err)
		}
	}
	l := find(t, state)
	if l == nil || l.spool.folder != all["new"].folder || len(l.faults) != 1 || !strings.Contains(l.faults[0].Error(), all["damaged"].folder) {
		t.Errorf("found %+v", l)
	}
	for name, s := range all {
		if want := name != "old" && name != "damaged"; exists(s.folder) != want {
			t.Errorf("%s is there: %t", name, !want)
		}
	}
}

// TestSpoolsAreKeptForAWhile: personal data must not lie about for ever.
func TestSpoolsAreKeptForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration
		then func(*testing.T, *spool)
		want bool
	}{
		"young":              {spoolAge - time.Hour, nil, true},
		"old":                {spoolAge + time.Hour, nil, false},
		"by a clock ahead":   {-time.Hour, nil, true},
		"by a clock far off": {-spoolAge - time.Hour, nil, false},
		"recorded since":     {spoolAge + time.Hour, func(t *testing.T, s *spool) { spoolDay(t, s, 2, 0) }, true},
		"half removed": {0, func(t *testing.T, s *spool) {
			if err := os.Remove(s.headerPath()); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			s := begun(t, state, "nightly", "orders")
			spoolDay(t, s, 1, 0)
			then := time.Now().Add(-c.age)
			if err := os.Chtimes(s.headerPath(), then, then); err != nil {
				t.Fatal(err)
			}
			if c.then != nil {
				c.then(t, s)
			}
			if swept := sweepSpools(spoolsIn(state)); swept != 0 {
				t.Error("a live run's spool was swept")
			}
			dies(t, s)
			swept, err := cleanSpools(&definition.Definition{Name: "other", State: state}, nil, true)
			if want := map[bool]int{true: 0, false: 1}[c.want]; swept != want || err != nil || !exists(s.folder) {
				t.Errorf("a dry run sweeps %d, want %d: %v", swept, want, err)
			}
			mine, err := openSpool(state, "run") // another pipeline's run
			if err != nil {
				t.Fatal(err)
			}
			if exists(s.folder) != c.want {
				t.Errorf("kept is %t", !c.want)
			}
			if err := mine.close(false); err != nil {
				t.Error(err)
			}
			if l := find(t, state); (l != nil) != c.want {
				t.Errorf("found %+v", l)
			}
		})
	}
}

func TestKeptSpools(t *testing.T) {
	state := t.TempDir()
	if kept := keptSpools(state); len(kept) > 0 {
		t.Errorf("none are %+v", kept)
	}
	dead, live := begun(t, state, "nightly", "orders"), begun(t, state, "nightly", "leads")
	_, damaged := mustOpen(t, state), begun(t, state, "nightly", "orders")
	size := int64(0)
	for day := range 2 {
		for _, f := range spoolDay(t, dead, day+1, 0).files {
			size += f.Size
		}
	}
	dies(t, dead)
	dies(t, damaged)
	if err := os.WriteFile(damaged.headerPath(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, s := range []*spool{dead, live, damaged} {
		then := time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC)
		if err := os.Chtimes(s.headerPath(), then, then); err != nil {
			t.Fatal(err)
		}
	}
	kept := keptSpools(state)
	if len(kept) != 3 {
		t.Fatalf("%+v", kept)
	}
	k := kept[0]
	if k.folder != dead.folder || k.held || k.windows != 2 || k.rows != 6 || k.bytes != size || k.header.Form != "orders" || !k.changed.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the dead one is %+v", k)
	}
	if k := kept[1]; !k.held || k.windows != 0 || k.header.Form != "leads" || k.err != nil {
		t.Errorf("the live one is %+v", k)
	}
	if k := kept[2]; k.held || k.err == nil {
		t.Errorf("the damaged one is %+v", k)
	}
}

// TestSpoolOfManyRuns is taken by one at a time, and no window is lost, while
// others sweep and look on. Who is alone finds it whatever they do.
func TestSpoolOfManyRuns(t *testing.T) {
	const rounds = 10
	for _, finders := range []int{1, 4} {
		t.Run(fmt.Sprint(finders), func(t *testing.T) {
			state := t.TempDir()
			if err := begun(t, state, "nightly", "orders").close(true); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			var finding, looking sync.WaitGroup
			var holders, recorded atomic.Int64
			for range finders {
				finding.Go(func() {
					for taken, tries := 0, 0; taken < rounds && tries < 1000 && !t.Failed(); tries++ {
						if takesTurn(t, state, &holders, &recorded) {
							taken++
						} else if finders == 1 { // or others held it for long
							t.Error("the spool was not found")
						}
					}
				})
			}
			for range 2 {
				looking.Go(func() { looksOn(t, state, done) })
			}
			finding.Wait()
			close(done)
			looking.Wait()
			if l := find(t, state); l == nil || len(l.records) != finders*rounds {
				t.Errorf("found %+v", l)
			}
		})
	}
}

// takesTurn goes on with the spool for one window, false where it is not found.
func takesTurn(t *testing.T, state string, holders, recorded *atomic.Int64) bool {
	l, err := findSpool(state, "nightly", "orders", "/etc/nightly.yaml")
	if err != nil {
		t.Error(err)
	}
	if l == nil {
		return false
	}
	if holders.Add(1) != 1 || int64(len(l.records)) != recorded.Load() || len(l.faults) > 0 {
		t.Errorf("%d windows of %d, %v", len(l.records), recorded.Load(), l.faults)
	}
	s, err := l.adopt()
	if err != nil {
		t.Error(err)
		return true
	}
	w := windowOf(t, len(l.records)+1, 1, 0)
	if err := s.record(indexRecord{Index: len(l.records) + 1, Window: w}, nil); err != nil {
		t.Error(err)
	}
	recorded.Add(1)
	holders.Add(-1)
	if err := s.close(true); err != nil {
		t.Error(err)
	}
	return true
}

// looksOn sweeps, and looks at what is kept, until it is told to stop.
func looksOn(t *testing.T, state string, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		keptSpools(state)
		if _, err := cleanSpools(&definition.Definition{Name: "other", State: state}, nil, false); err != nil {
			t.Error(err)
		}
		s, err := openSpool(state, "other")
		if err != nil {
			t.Error(err)
			return
		}
		if err := s.close(false); err != nil {
			t.Error(err)
		}
	}
}

// TestLeftSpools: those of the definition, of runs that are gone.
func TestLeftSpools(t *testing.T) {
	state := t.TempDir()
	def := &definition.Definition{Name: "nightly", File: "/etc/nightly.yaml", State: state, Forms: []string{"*"}, Exclude: []string{"secret"}, Source: definition.Source{Zone: time.UTC}}
	dead := begun(t, state, "nightly", "orders")
	spoolDay(t, dead, 1, 0)
	spoolDay(t, dead, 2, 0)
	dies(t, dead)
	for _, name := range [][2]string{{"nightly", "secret"}, {"other", "orders"}} {
		dies(t, begun(t, state, name[0], name[1]))
	}
	live := begun(t, state, "nightly", "forms")
	left := ofForms(leftSpools(def), []string{"orders", "forms"})
	if len(left) != 1 || left[0].Form != "orders" || left[0].RunID != "run1" || left[0].Windows != 2 || left[0].Rows != 6 || left[0].Bytes == 0 {
		t.Errorf("left %+v", left)
	}
	report, err := State(t.Context(), def, Options{})
	if err != nil || len(report.Forms) != 1 || report.Forms[0].Form != "orders" || len(report.Spools) != 1 {
		t.Errorf("report %+v, %v", report, err)
	}
	reset, err := ResetState(t.Context(), def, Options{}, time.Time{})
	if err != nil || len(reset.Spools) != 1 || reset.Spools[0].Windows != 2 {
		t.Errorf("discarded %+v, %v", reset.Spools, err)
	}
	if exists(dead.folder) || !exists(live.folder) || len(spools(spoolsIn(state))) != 3 {
		t.Errorf("left %v", spools(spoolsIn(state)))
	}
	if again, err := ResetState(t.Context(), def, Options{}, time.Time{}); err != nil || len(again.Spools) > 0 {
		t.Errorf("again %+v, %v", again, err)
	}
	if err := live.close(false); err != nil {
		t.Error(err)
	}
}
