package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
)

func bitmap(ids ...uint64) *roaring64.Bitmap { return roaring64.BitmapOf(ids...) }

func TestStaleWindowsAreThoseReadFirst(t *testing.T) {
	a := &reading.Window{Number: 1, Reading: reading.Reading{IDs: bitmap(1, 2, 3)}}
	b := &reading.Window{Number: 3, Reading: reading.Reading{IDs: bitmap(3, 4)}}
	c := &reading.Window{Number: 2, Reading: reading.Reading{IDs: bitmap(5, 4)}}
	unread := &reading.Window{}
	stale, twice := staleWindows([]*reading.Window{a, b, c, unread})
	if len(stale) != 2 || stale[0] != c || stale[1] != a || !twice.Equals(bitmap(3, 4)) {
		t.Errorf("%d stale, %v twice", len(stale), twice)
	}
	if !a.IDs.Equals(bitmap(1, 2, 3)) || !b.IDs.Equals(bitmap(3, 4)) {
		t.Error("the windows' sets were changed")
	}
	if stale, twice := staleWindows([]*reading.Window{a, {Number: 4, Reading: reading.Reading{IDs: bitmap(9)}}}); len(stale) != 0 || !twice.IsEmpty() {
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
		s := &Snapshot{Interval: interval.Interval{Asked: c.own, Read: extracttest.Window("", "2026-02-01")}, Windows: windows}
		if c.ask {
			s.Interval.Given.To = c.own.To
		}
		if got := names(s.Own()); got != c.want {
			t.Errorf("%s asked %t: windows %s, want %s", c.own, c.ask, got, c.want)
		}
	}
}
