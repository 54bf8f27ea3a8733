package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/reading"
)

func TestStaleWindowsAreThoseReadFirst(t *testing.T) {
	a := &reading.Window{Number: 1, Reading: reading.Reading{IDs: idset.Of(1, 2, 3)}}
	b := &reading.Window{Number: 3, Reading: reading.Reading{IDs: idset.Of(3, 4)}}
	c := &reading.Window{Number: 2, Reading: reading.Reading{IDs: idset.Of(5, 4)}}
	unread := &reading.Window{}
	stale, twice := staleWindows([]*reading.Window{a, b, c, unread})
	if len(stale) != 2 || stale[0] != c || stale[1] != a || !twice.Equal(idset.Of(3, 4)) {
		t.Errorf("%d stale, %v twice", len(stale), twice)
	}
	if !a.IDs.Equal(idset.Of(1, 2, 3)) || !b.IDs.Equal(idset.Of(3, 4)) {
		t.Error("the windows' sets were changed")
	}
	if stale, twice := staleWindows([]*reading.Window{a, {Number: 4, Reading: reading.Reading{IDs: idset.Of(9)}}}); len(stale) != 0 || !twice.IsEmpty() {
		t.Errorf("%v stale", stale)
	}
}

func TestOwnWindowsOfAWidenedRange(t *testing.T) {
	windows := []*reading.Window{
		{Planned: extract.Planned{Window: extracttest.Window("", "2026-01-01")}},
		{Planned: extract.Planned{Window: extracttest.Window("2026-01-01", "2026-01-05")}},
		{Planned: extract.Planned{Window: extracttest.Window("2026-01-05", "2026-01-09")}},
		{Planned: extract.Planned{Window: extracttest.Window("2026-01-09", "2026-02-01")}},
		{Undated: &reading.Undated{}},
	}
	names := func(ws []*reading.Window) string {
		s := make([]string, 0, len(ws))
		for _, w := range ws {
			s = append(s, fmt.Sprint(slices.Index(windows, w)))
		}
		return strings.Join(s, " ")
	}
	for _, c := range []struct {
		own  extract.Window
		ask  bool // a range was asked for
		want string
	}{
		{extracttest.Window("", "2026-02-01"), true, "0 1 2 3"},
		{extracttest.Window("", "2026-02-01"), false, "0 1 2 3 4"},
		{extracttest.Window("", "2026-01-09"), false, "0 1 2 4"},
		{extracttest.Window("2026-01-01", "2026-01-09"), true, "1 2"},
		{extracttest.Window("2026-01-05", "2026-02-01"), true, "2 3"},
	} {
		s := &Snapshot{Interval: reading.Interval{Asked: c.own, Read: extracttest.Window("", "2026-02-01")}, Windows: windows}
		if c.ask {
			s.Interval.Given.To = c.own.To
		}
		if got := names(s.Own()); got != c.want {
			t.Errorf("%s asked %t: windows %s, want %s", c.own, c.ask, got, c.want)
		}
	}
}

// TestCuts: a stale part is cut into pieces of about as many results as cost two or
// three requests, at whole days or hours.
func TestCuts(t *testing.T) {
	for _, c := range []struct {
		from, to string
		results  int64
		want     string
	}{
		{"2026-01-01", "2026-01-31", 399, ""},
		{"2026-01-01", "2026-01-31", 620, "11 00, 21 00"},
		{"2026-01-01", "2026-01-03", 1000, "01 10, 01 20, 02 06, 02 16"},
		{"2026-01-01 10:30:00", "2026-01-01 12:30:00", 4000, "01 11, 01 12"},
		{"", "2026-01-03", 1000, ""},
	} {
		cuts := cutsOf(extracttest.Window(c.from, c.to), c.results)
		got := make([]string, 0, len(cuts))
		for _, at := range cuts {
			got = append(got, at.Format("02 15"))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s to %s with %d results: %s", c.from, c.to, c.results, s)
		}
	}
}

// TestSuspects: a deleted result is looked for in kept parts first.
func TestSuspects(t *testing.T) {
	window := &reading.Window{}
	line := []span{{gap: true}, {results: 4}, {window: window}, {results: 5}, {window: window}}
	for _, c := range []struct {
		line     []span
		thorough bool
		want     []int
	}{
		{line, false, []int{1, 3}},
		{line, true, []int{0, 1, 2, 3, 4}},
		{line[4:], false, []int{0}},
	} {
		if got := suspects(c.line, c.thorough); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// TestDivide: few counts find a deletion within the lookback, and not many more one
// among the oldest of many parts.
func TestDivide(t *testing.T) {
	end := extracttest.Wall("2026-01-01")
	var line []span
	for at := end.AddDate(0, 0, -365); at.Before(end); at = at.AddDate(0, 0, 1) {
		line = append(line, span{Window: extract.Window{From: at, To: at.AddDate(0, 0, 1)}})
	}
	counts := func(wanted int) (n int) {
		lo, hi := 0, len(line)
		for ; hi-lo > 1; n++ {
			at := lo + divide(line[lo:hi], suspects(line[lo:hi], false), end.AddDate(0, 0, -3))
			if at <= lo || at >= hi {
				t.Fatalf("%d to %d is divided at %d", lo, hi, at)
			}
			if wanted < at {
				hi = at
			} else {
				lo = at
			}
		}
		return n
	}
	for i := range line {
		if n := counts(i); n > 10 || n > 3 && i >= len(line)-3 {
			t.Errorf("part %d takes %d counts", i, n)
		}
	}
	if at := divide(line[:12], suspects(line[:12], false), line[11].From); at != 6 {
		t.Errorf("a short line is divided at %d", at)
	}
}

// TestCountThatMayBeADifference: the first count of a window may be the planner's difference
// of two. So only the third one, equal to the second, shows that counts are right.
func TestCountThatMayBeADifference(t *testing.T) {
	c := &Reconciler{Reader: &reading.Reader{}}
	w := &reading.Window{Counts: []int64{5}}
	w.Stats.Rows = 5
	for i, agreed := range []bool{false, true} {
		if c.differs(w, 5) || c.Reader.CountsAgreed() != agreed {
			t.Errorf("after %d counts of the verification the counts agreed: %t", i+1, !agreed)
		}
	}
}

// TestJudgeAll: the count of all datasets moves, and what is held must lie between the last two.
func TestJudgeAll(t *testing.T) {
	for _, c := range []struct {
		of    proven
		held  int64
		tries int // how often it is read again before it is wrong; 0 if it is plausible
	}{{ofAll, 4, 0}, {ofAll, 11, reading.Rereads}, {ofOlder, 11, 1}, {ofRange, 11, 0}, {ofRange, 4, 1}} {
		p := &proof{of: c.of, counts: &[]int64{9, 5, 7}, held: c.held, rounds: reading.Rereads}
		if p.plausible() != (c.tries == 0) {
			t.Errorf("%+v: plausible %t", c, c.tries > 0)
		}
		for try := 0; p.of == ofAll && try <= c.tries; try++ {
			again, wrong := p.judge(make([]span, 2))
			if (len(again) == 2) != (try < c.tries) || (len(wrong) == 2) != (c.tries > 0 && try == c.tries) {
				t.Errorf("%+v: at try %d %d again and %d wrong", c, try, len(again), len(wrong))
			}
		}
	}
}
