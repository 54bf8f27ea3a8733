package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
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
		{"an account in Sydney that is read as UTC", time.UTC, 9 * time.Hour, 0, true, "is 9 hours in the future in UTC", "set source.timezone"},
		{"the same without a Date", time.UTC, 9 * time.Hour, 0, false, "is 9 hours in the future in UTC", "set source.timezone"},
		{"our clock is an hour slow", sydney, -time.Minute, -time.Hour, true, "60 minutes behind the service's: 2026-06-15T16:00:00Z here", "(NTP)"},
		{"it is, and the zone is wrong", time.UTC, 9 * time.Hour, -time.Hour, true, "is 9 hours in the future in UTC", "set source.timezone"},
		{"it came meanwhile", sydney, 10 * time.Second, 0, true, "", ""},
		{"imported", sydney, 400 * time.Hour, 0, true, "they were imported", "formetl preview"},
	} {
		theirs := now
		if !c.known {
			theirs = time.Time{}
		}
		var what, cure string
		if wrong := Later("form1", c.zone, load.Wall(now.In(c.zone)).Add(c.newest), now.Add(c.ours), theirs); wrong != nil {
			what, cure = wrong.Text, wrong.Cure
		}
		if !strings.Contains(what, c.what) || (what == "") != (c.what == "") || !strings.Contains(cure, c.cure) {
			t.Errorf("%s: %q, %q", c.name, what, cure)
		}
	}
}
