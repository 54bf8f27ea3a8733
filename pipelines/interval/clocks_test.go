package interval_test

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
)

// TestLater: the service's clock decides where it is known, and results that came meanwhile
// are nothing to tell of.
func TestLater(t *testing.T) {
	sydney, err := time.LoadLocation("Australia/Sydney")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 15, 17, 0, 0, 0, time.UTC) // 03:00 of the next day in Sydney
	for _, c := range []struct {
		name   string
		zone   *time.Location
		newest time.Duration // after now, by the clock of the zone
		ours   time.Duration // after the service's clock
		known  bool          // whether that is known
		what   string
		cure   string
	}{
		{"an account in Sydney that is read as UTC", time.UTC, 9 * time.Hour, 0, true, "is 9 hours from now in UTC", interval.ZoneCure},
		{"the same without a Date", time.UTC, 9 * time.Hour, 0, false, "is 9 hours from now in UTC", interval.ZoneCure},
		{"our clock is an hour slow", sydney, -time.Minute, -time.Hour, true, "60 minutes behind the service's: 2026-06-15T16:00:00Z here", interval.ClockCure},
		{"it is, and the zone is wrong", time.UTC, 9 * time.Hour, -time.Hour, true, "is 9 hours from now in UTC", interval.ZoneCure},
		{"it came meanwhile", sydney, 10 * time.Second, 0, true, "", ""},
		{"imported", sydney, 400 * time.Hour, 0, true, "they were imported", interval.ImportedCure},
	} {
		theirs := now
		if !c.known {
			theirs = time.Time{}
		}
		what, cure := interval.Later("form1", c.zone, load.Wall(now.In(c.zone)).Add(c.newest), now.Add(c.ours), theirs)
		if !strings.Contains(what, c.what) || (what == "") != (c.what == "") || cure != c.cure {
			t.Errorf("%s: %q, %q", c.name, what, cure)
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
		is := interval.Interval{Complete: complete}.Behind(c.by, c.now)
		if lower := complete.Sub(is.Complete); lower != c.lower {
			t.Errorf("%s: lowered by %s, and should be by %s", c.name, lower, c.lower)
		}
	}
}
