package reading_test

import (
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

func TestWidenToWholeParts(t *testing.T) {
	part := func(from, to string) load.Part {
		return load.Part{From: load.Wall(extracttest.Wall(from)), To: load.Wall(extracttest.Wall(to))}
	}
	parts := []load.Part{part("", "2026-01-01"), part("2026-01-01", "2026-02-01"), part("2026-03-01", "2026-04-01"), {Undated: true}}
	for _, c := range []struct {
		parts []load.Part
		w     extract.Window
		full  bool
		want  extract.Window
	}{
		{parts, extracttest.Window("2026-01-10", "2026-01-12"), false, extracttest.Window("2026-01-01", "2026-02-01")},
		{parts, extracttest.Window("2026-02-10", "2026-02-12"), false, extracttest.Window("2026-02-10", "2026-02-12")},
		{parts, extracttest.Window("2026-02-10", "2026-02-12"), true, extracttest.Window("", "2026-04-01")},
		{parts[1:], extracttest.Window("2026-02-10", "2026-05-12"), true, extracttest.Window("2026-01-01", "2026-05-12")},
		{parts[1:3], extracttest.Window("", "2026-01-12"), true, extracttest.Window("", "2026-04-01")},
	} {
		if got := reading.Widen(c.w, []*load.Manifest{{Parts: c.parts}, nil}, c.full); got != c.want {
			t.Errorf("%s full %t: %s, want %s", c.w, c.full, got, c.want)
		}
	}
}

// TestDecide follows an incremental run from its watermark: its beginning, its
// end, and where the next one begins.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 2, 15, 18, 0, 0, 0, time.UTC)
	def := &definition.Definition{
		Source:  definition.Source{Zone: time.UTC},
		Extract: definition.Extract{Incremental: true, Lookback: 72 * time.Hour, Settle: time.Minute},
	}
	committed := &load.Manifest{Watermark: load.Wall(extracttest.Wall("2026-02-10"))}
	for _, c := range []struct {
		name       string
		flags      reading.RangeFlags
		committed  []*load.Manifest
		oldest     time.Time
		read, next string
	}{
		{name: "from a watermark", committed: []*load.Manifest{committed}, read: "2026-02-07 00:00:00/2026-02-15 17:59:00", next: "2026-02-12"},
		{name: "a dataset has none", committed: []*load.Manifest{committed, nil}, read: "../2026-02-15 17:59:00", next: "2026-02-12"},
		{name: "full", flags: reading.RangeFlags{Full: true}, committed: []*load.Manifest{committed}, read: "../2026-02-15 17:59:00", next: "2026-02-12"},
		{name: "from a flag", flags: reading.RangeFlags{From: extracttest.Wall("2026-01-01")}, committed: []*load.Manifest{committed}, read: "2026-01-01 00:00:00/2026-02-15 17:59:00", next: "2026-02-12"},
		{name: "an older range", flags: reading.RangeFlags{From: extracttest.Wall("2026-01-01"), To: extracttest.Wall("2026-02-01")}, committed: []*load.Manifest{committed}, read: "2026-01-01 00:00:00/2026-02-01 00:00:00"},
		{name: "pieces of another run", committed: []*load.Manifest{committed}, oldest: now.Add(-48 * time.Hour), read: "2026-02-07 00:00:00/2026-02-15 17:59:00", next: "2026-02-10"},
	} {
		asked, err := reading.NewInterval(def, c.flags, now)
		if err != nil {
			t.Fatal(err)
		}
		i := asked.Decide(def, c.flags, c.committed, c.oldest)
		if i.Read.String() != c.read || !i.Next.Equal(extracttest.Wall(c.next)) {
			t.Errorf("%s: reads %s, and the next run begins at %s", c.name, i.Read, i.Next)
		}
		if w := i.Watermark(def.Extract, load.WallTime{}); !w.IsZero() && w.After(i.Complete) {
			t.Errorf("%s: the watermark %s lies after %s", c.name, w, i.Complete)
		}
	}
	if _, err := reading.NewInterval(def, reading.RangeFlags{From: extracttest.Wall("2027-01-01")}, now); err == nil {
		t.Error("a range that begins in the future is taken")
	}
}

// TestSettledAtChangesOfClocks: what came in the last minute is not complete, whatever clocks did.
func TestSettledAtChangesOfClocks(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	def := &definition.Definition{Source: definition.Source{Zone: zone}, Extract: definition.Extract{Settle: time.Minute}}
	for at, want := range map[string]string{
		"2026-03-29T01:00:30Z": "2026-03-29 01:59:30", // it was 02:00 thirty seconds ago, and is 03:00:30
		"2026-03-29T01:01:30Z": "2026-03-29 03:00:30",
		"2026-10-25T01:00:30Z": "2026-10-25 01:59:30", // it was 03:00 thirty seconds ago, and is 02:00:30
		"2026-10-25T01:01:30Z": "2026-10-25 02:00:30",
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := reading.Settled(def, now).Format(extract.WireTime); got != want {
			t.Errorf("at %s: %s, want %s", at, got, want)
		}
	}
}

// TestClockSetBack: where the watermark lies after now, a run reads the time before now, and
// leaves the watermark.
func TestClockSetBack(t *testing.T) {
	now := time.Date(2026, 2, 15, 18, 0, 0, 0, time.UTC)
	before := load.Wall(extracttest.Wall("2026-02-20"))
	committed := []*load.Manifest{{Watermark: before}}
	for lookback, want := range map[time.Duration]string{
		0:              "2026-02-15 00:00:00/2026-02-15 17:59:00",
		72 * time.Hour: "2026-02-12 00:00:00/2026-02-15 17:59:00",
	} {
		def := &definition.Definition{
			Source:  definition.Source{Zone: time.UTC},
			Extract: definition.Extract{Incremental: true, Lookback: lookback, Settle: time.Minute},
		}
		asked, err := reading.NewInterval(def, reading.RangeFlags{}, now)
		if err != nil {
			t.Fatal(err)
		}
		i := asked.Decide(def, reading.RangeFlags{}, committed, time.Time{})
		tail := i.SinceWatermark(def, committed, false)
		if i.Read.String() != want || tail.Read.String() != "2026-02-15 17:58:59/2026-02-15 17:59:00" {
			t.Errorf("lookback %s: reads %s, or the tail %s", lookback, i.Read, tail.Read)
		}
		if w := i.Watermark(def.Extract, before); w != before {
			t.Errorf("lookback %s: the watermark falls to %s", lookback, w)
		}
	}
}

// TestTailBehindAnOlderRange: a run to a range that ends before the definition's leaves a
// small part. The tail does not join it: the datasets need not hold the time between them.
func TestTailBehindAnOlderRange(t *testing.T) {
	now := time.Date(2026, 2, 15, 18, 0, 0, 0, time.UTC)
	for last, want := range map[string]string{
		"2026-02-06": "2026-02-10 00:00:00/2026-02-15 17:59:00",
		"2026-02-11": "2026-02-03 00:00:00/2026-02-15 17:59:00",
	} {
		def := &definition.Definition{
			Source:  definition.Source{Zone: time.UTC},
			Extract: definition.Extract{Incremental: true, From: extracttest.Wall("2026-02-10"), Settle: time.Minute},
		}
		committed := []*load.Manifest{{
			Watermark: load.Wall(extracttest.Wall(last)),
			Parts:     []load.Part{{From: load.Wall(extracttest.Wall("2026-02-03")), To: load.Wall(extracttest.Wall(last)), Rows: 5}},
		}}
		asked, err := reading.NewInterval(def, reading.RangeFlags{}, now)
		if err != nil {
			t.Fatal(err)
		}
		tail := asked.Decide(def, reading.RangeFlags{}, committed, time.Time{}).SinceWatermark(def, committed, true)
		if tail.Read.String() != want {
			t.Errorf("behind a part up to %s: reads %s, want %s", last, tail.Read, want)
		}
	}
}

// TestBehind: a watermark does not pass the service's clock, which may show an hour less
// because the zone's clocks were put forward in between.
func TestBehind(t *testing.T) {
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		now   time.Time
		by    time.Duration
		lower time.Duration
	}{
		{"on a day like others", time.Date(2026, 6, 15, 12, 0, 0, 0, chicago), 40 * time.Minute, 40 * time.Minute},
		{"clocks that agree", time.Date(2026, 6, 15, 12, 0, 0, 0, chicago), time.Minute, 0},
		{"clocks were put forward", time.Date(2026, 3, 8, 3, 30, 0, 0, chicago), 40 * time.Minute, 100 * time.Minute},
		{"clocks were put back", time.Date(2026, 11, 1, 7, 30, 0, 0, time.UTC).In(chicago), 40 * time.Minute, 40 * time.Minute},
	} {
		complete := load.Wall(c.now).Time
		is := reading.Interval{Complete: complete}.Behind(c.by, c.now)
		if lower := complete.Sub(is.Complete); lower != c.lower {
			t.Errorf("%s: lowered by %s, and should be by %s", c.name, lower, c.lower)
		}
	}
}
