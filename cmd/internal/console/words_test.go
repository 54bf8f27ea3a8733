package console

import (
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

func TestThousandsAndSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := plain.Thousands(n); got != want {
			t.Errorf("plain.Thousands(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1500000: "1.5 MB", 2500000000: "2.5 GB"} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %s, want %s", n, got, want)
		}
	}
	if one, two := plain.Plural(1, "form"), plain.Plural(2000, "form"); one != "1 form" || two != "2,000 forms" {
		t.Errorf("Plural: %q, %q", one, two)
	}
}

func TestFirstInstant(t *testing.T) {
	for _, c := range []struct{ zone, wall, want string }{
		{"America/Chicago", "2026-07-01 12:00:00", "2026-07-01T17:00:00Z"},
		{"America/Chicago", "2026-11-01 01:30:00", "2026-11-01T06:30:00Z"}, // twice
		{"Europe/Berlin", "2026-10-25 02:30:00", "2026-10-25T00:30:00Z"},   // twice
		{"Europe/Berlin", "2026-10-25 03:00:00", "2026-10-25T02:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-05 01:45:00", "2026-04-04T14:45:00Z"}, // twice, half an hour apart
		{"UTC", "2026-10-25 02:30:00", "2026-10-25T02:30:00Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, _ := definition.ParseWallTime(c.wall)
		if got := FirstInstant(load.Wall(wall), zone).UTC().Format(time.RFC3339); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.wall, c.zone, got, c.want)
		}
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 seconds ago", time.Second: "1 second ago", 59 * time.Second: "59 seconds ago", time.Minute: "1 minute ago", 119 * time.Minute: "119 minutes ago",
		2 * time.Hour: "2 hours ago", 47*time.Hour + 29*time.Minute: "47 hours ago", 48 * time.Hour: "2 days ago", -time.Minute: "1 minute from now",
	} {
		if got := Ago(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
