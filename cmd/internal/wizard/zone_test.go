package wizard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/formservice"
)

// datedForm has results whose latest date is the last of these.
func datedForm(dates ...string) *formservice.Form {
	results := make([]formservice.Result, len(dates))
	for i, date := range dates {
		results[i].Metas = []formservice.Meta{{ID: "date_start", Value: "2020-01-01 00:00:00"}, {ID: "result_status", Value: "2030"}}
		if date != "" {
			results[i].Metas = append(results[i].Metas, formservice.Meta{ID: "date_finish", Value: date})
		}
	}
	return formservice.NewForm("form1", nil, results)
}

// TestClocks: the newest results are shown by the account's clock and in UTC, in the
// same number of lines for each zone.
func TestClocks(t *testing.T) {
	w := newWorld(t, datedForm("2026-02-28 10:00:00", "2026-03-01 05:00:00", "2026-03-01 05:30:00", "2026-02-28 23:00:00"))
	made, err := w.begin(t, nil, "--base-url", w.url, "--account", "acme", "--timezone", "America/Chicago", "--schema", "none")
	if err != nil {
		t.Fatal(err)
	}
	want := `THE SERVICE SAYS                  THAT IS
2026-03-01 05:30:00  date_finish  2026-03-01T11:30:00Z (30 minutes ago)
2026-03-01 05:00:00  date_finish  2026-03-01T11:00:00Z (60 minutes ago)
2026-02-28 23:00:00  date_finish  2026-03-01T05:00:00Z (7 hours ago)
There it is now 2026-03-01 06:00:00.`
	if got := clocks(made, "America/Chicago"); got != want || !strings.Contains(w.told.String(), want) {
		t.Errorf("got\n%s\ntold\n%s", got, w.told.String())
	}
	for _, zone := range []string{"UTC", "America/Chi", ""} {
		if got := clocks(made, zone); strings.Count(got, "\n") != strings.Count(want, "\n") {
			t.Errorf("%s:\n%s", zone, got)
		}
	}
	if n := w.service.Counts()["results"]; n != 1 {
		t.Errorf("%d requests for the newest results", n)
	}
}

// TestAZoneFromTheFuture is refused where it is proposed or typed. A flag knows better.
func TestAZoneFromTheFuture(t *testing.T) {
	const late = "2026-03-01 12:04:00" // four minutes ahead of the clock of the test, in UTC
	for _, c := range []struct {
		date, zone string
		wrong      bool
	}{
		{late, "UTC", false},
		{late, "America/Chicago", true},
		{late, "Europe/Berlin", false},
		{"2026-03-01 12:06:00", "UTC", true},
		{"", "America/Chicago", false},
	} {
		w := newWorld(t, datedForm(c.date))
		w.env["FORMETL_TIMEZONE"] = c.zone
		_, err := w.begin(t, nil, "--base-url", w.url, "--account", "acme", "--schema", "none", "--force")
		if c.wrong != (exit.Code(err) == exit.Usage) || c.wrong && !strings.Contains(err.Error(), "--timezone: in "+c.zone) || !c.wrong && err != nil {
			t.Errorf("%s in %s: %v", c.date, c.zone, err)
		}
		var asked []string
		_, err = w.begin(t, person(&asked, nil), "--base-url", w.url, "--account", "acme", "--schema", "none", "--force", "--form", "form1")
		if c.wrong != (err != nil) || !slices.Contains(asked, "timezone") {
			t.Errorf("%s typed for %s: %v", c.zone, c.date, err)
		}
		w.told.Reset()
		_, err = w.begin(t, nil, "--base-url", w.url, "--account", "acme", "--schema", "none", "--force", "--timezone", c.zone)
		if err != nil || c.wrong != strings.Contains(w.told.String(), "warning: --timezone: in "+c.zone) {
			t.Errorf("--timezone %s for %s: %v, told %s", c.zone, c.date, err, w.told.String())
		}
	}
}

// TestNoResults: a form without results is taken, and it is said that nothing shows the zone.
func TestNoResults(t *testing.T) {
	w := newWorld(t, formservice.NewForm("empty", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Name"}}, nil))
	w.now = time.Now()
	if _, err := w.begin(t, nil, "--base-url", w.url, "--account", "acme"); err != nil || !strings.Contains(w.told.String(), "No result has a date yet") {
		t.Errorf("%v, %s", err, w.told.String())
	}
	w.load(t, "empty.yaml")
}
