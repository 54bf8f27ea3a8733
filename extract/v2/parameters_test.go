package v2

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

// zones differ in when and by how much they change their clocks: by half an hour, never,
// at midnight, and by a whole day.
var zones = []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Havana", "Asia/Beirut", "Pacific/Apia", "UTC"}

func wall(s string) time.Time {
	t, err := time.Parse(extract.WireTime, s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestWindowBounds(t *testing.T) {
	for name, c := range map[string]struct{ zone, wall, want string }{
		"winter":             {"Europe/Berlin", "2026-01-01 00:00:00", "2025-12-31T23:00:00Z"},
		"summer":             {"Europe/Berlin", "2026-07-01 00:00:00", "2026-06-30T22:00:00Z"},
		"hour left out":      {"Europe/Berlin", "2026-03-29 02:30:00", "2026-03-29T01:00:00Z"},
		"end of it":          {"Europe/Berlin", "2026-03-29 03:00:00", "2026-03-29T01:00:00Z"},
		"hour twice":         {"Europe/Berlin", "2026-10-25 02:30:00", "2026-10-25T00:30:00Z"},
		"end of the second":  {"Europe/Berlin", "2026-10-25 03:00:00", "2026-10-25T02:00:00Z"},
		"west, twice":        {"America/New_York", "2026-11-01 01:00:00", "2026-11-01T05:00:00Z"},
		"west, after":        {"America/New_York", "2026-11-01 02:00:00", "2026-11-01T07:00:00Z"},
		"half an hour twice": {"Australia/Lord_Howe", "2026-04-05 01:45:00", "2026-04-04T14:45:00Z"},
		"quarter of an hour": {"Asia/Kathmandu", "2026-04-05 00:00:00", "2026-04-04T18:15:00Z"},
		"day left out":       {"Pacific/Apia", "2011-12-30 12:00:00", "2011-12-30T10:00:00Z"},
		"midnight left out":  {"Asia/Beirut", "2026-03-29 00:00:00", "2026-03-28T22:00:00Z"},
		"midnight twice":     {"America/Havana", "2026-11-01 00:00:00", "2026-11-01T04:00:00Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := instant(wall(c.wall), zone).Format(time.RFC3339); got != c.want {
			t.Errorf("%s: %s in %s is %s, want %s", name, c.wall, c.zone, got, c.want)
		}
	}
}

// TestAdjacentWindows: each instant, to the millisecond, is asked for by exactly one of
// windows without a gap between them, apart from the second before a window, which the
// page marks. Outside the hours that the clocks show twice, that is the window of its
// wall-clock time.
func TestAdjacentWindows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			step := []time.Duration{time.Minute, 15 * time.Minute, time.Hour, 24 * time.Hour}[random.IntN(4)]
			from := time.Date(2026, 1, 1+random.IntN(365), 0, 0, 0, 0, time.UTC)
			if name == "Pacific/Apia" {
				from = time.Date(2011, 12, 28+random.IntN(4), 0, 0, 0, 0, time.UTC)
			}
			const n = 100
			windows := make([]extract.Window, 0, n)
			for range n {
				windows = append(windows, extract.Window{From: from, To: from.Add(step)})
				from = from.Add(step)
			}
			checkTiles(t, zone, windows, random)
		}
	}
}

func checkTiles(t *testing.T, zone *time.Location, windows []extract.Window, random *rand.Rand) {
	t.Helper()
	bounds := make([][2]time.Time, len(windows)) // exclusive, as they are sent
	for i, w := range windows {
		ps := constrain(w, extract.IDRange{}, zone)
		for j, p := range ps {
			at, err := time.Parse(wireInstant, p.Value)
			if err != nil {
				t.Fatal(err)
			}
			bounds[i][j] = at
		}
		if i > 0 && !bounds[i][0].Equal(bounds[i-1][1].Add(-time.Second)) {
			t.Fatalf("%s: %s begins after %s, the one before ends before %s", zone, w, bounds[i][0], bounds[i-1][1])
		}
	}
	first, last := bounds[0][0].Add(time.Second), bounds[len(bounds)-1][1]
	for range 50 {
		if !first.Before(last) {
			break // the clocks leave all of them out
		}
		at := first.Add(time.Duration(random.Int64N(int64(last.Sub(first)))).Truncate(time.Millisecond))
		held := -1
		for i, b := range bounds {
			if at.After(b[0]) && at.Before(b[1]) && at.Unix() != secondBefore(windows[i], zone) {
				if held >= 0 {
					t.Fatalf("%s: %s is in two windows", zone, at)
				}
				held = i
			}
		}
		if held < 0 {
			t.Fatalf("%s: %s is in no window", zone, at)
		}
		shown := wall(at.In(zone).Format(extract.WireTime))
		if inside := !shown.Before(windows[held].From) && shown.Before(windows[held].To); !inside && instant(shown, zone).Equal(at.Truncate(time.Second)) {
			t.Fatalf("%s: %s shows %s, which is not in %s", zone, at, shown, windows[held])
		}
	}
}

func TestParameters(t *testing.T) {
	for name, c := range map[string]struct {
		q    extract.ResultsQuery
		want string
	}{
		"nothing": {extract.ResultsQuery{}, "limit=500&sort_direction=asc"},
		"window": {
			extract.ResultsQuery{Window: extract.Window{From: wall("2026-01-01 00:00:00"), To: wall("2026-07-01 00:00:00")}},
			"after_date=2025-12-31T22%3A59%3A59Z&before_date=2026-06-30T22%3A00%3A00Z&limit=500&sort_direction=asc",
		},
		"from":  {extract.ResultsQuery{Window: extract.Window{From: wall("2026-01-01 00:00:01")}}, "after_date=2025-12-31T23%3A00%3A00Z&limit=500&sort_direction=asc"},
		"to":    {extract.ResultsQuery{Window: extract.Window{To: wall("2026-01-01 00:00:00")}}, "before_date=2025-12-31T23%3A00%3A00Z&limit=500&sort_direction=asc"},
		"epoch": {extract.ResultsQuery{Window: extract.Window{From: extract.Epoch}}, "after_date=1970-01-01T00%3A00%3A00Z&limit=500&sort_direction=asc"},
		"before the epoch": {
			extract.ResultsQuery{Window: extract.Window{From: wall("1900-01-01 00:00:00"), To: wall("1960-01-01 00:00:00")}},
			"after_date=1970-01-01T00%3A00%3A00Z&before_date=1970-01-01T00%3A00%3A00Z&limit=500&sort_direction=asc",
		},
		"ids":      {extract.ResultsQuery{IDs: extract.IDRange{Min: 5, Max: 9}, Limit: 7}, "after_id=4&before_id=10&limit=7&sort_direction=asc"},
		"least id": {extract.ResultsQuery{IDs: extract.IDRange{Min: 1, Max: math.MaxInt64}, Limit: 501}, "limit=500&sort_direction=asc"},
		"order":    {extract.ResultsQuery{Sort: "date_update", Descending: true, Page: 3}, "limit=500&page=3&sort_id=date_update&sort_direction=desc"},
		"view":     {extract.ResultsQuery{View: "101", CustomLabels: "3", Headings: true}, "limit=500&sort_direction=asc&results_view=101"},
		"search": {
			extract.ResultsQuery{Search: extract.Search{Any: true, Where: []extract.Criterion{{Column: "100", Operator: extract.OpContains, Term: "a b"}, {Column: "user_ip", Operator: extract.OpEquals, Term: "1"}}}},
			"limit=500&sort_direction=asc&search_contains%5B100%5D=a%20b&search_equals%5Buser_ip%5D=1&search_method=or",
		},
	} {
		zone := benchZone(t)
		if got := resultsParameters(c.q, zone); got.Query() != c.want {
			t.Errorf("%s: %s\nwant %s", name, got.Query(), c.want)
		}
	}
}

func TestSearchesThatCannotBeExpressed(t *testing.T) {
	for _, c := range []extract.Criterion{
		{Column: "100", Operator: extract.OpEmpty},
		{Column: "100", Operator: extract.OpNotEmpty},
		{Column: "user_ip", Operator: extract.OpContains, Term: "x"},
		{Column: "login_email", Operator: extract.OpEnds, Term: "x"},
	} {
		err := searchable(c)
		if _, ok := errors.AsType[*transport.Error](err); !ok || !strings.Contains(err.Error(), c.Column) {
			t.Errorf("%v: err = %v", c, err)
		}
	}
}
