package pipelines_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// ignoring are the ways in which a service may not keep to dates.
func ignoring() map[string]formservice.Faults {
	return map[string]formservice.Faults{
		"both":  "ignore-dates",
		"lower": "ignore-min-date",
		"upper": "ignore-max-date",
	}
}

// sent is how many requests the service was sent.
func (w *world) sent() int { return len(w.service.Log()) }

// TestAllResultsWithoutDates: a form that is read without range and partition gets no
// dates, so that it does not matter whether the service keeps to them.
func TestAllResultsWithoutDates(t *testing.T) {
	for name, faults := range ignoring() {
		for _, verify := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, verify %v", name, verify), func(t *testing.T) {
				t.Parallel()
				form := generated(300)
				w := newWorld(t, form)
				w.service.SetFaults(faults)
				def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
				def.Extract.Verify = verify
				report := w.run(def)
				w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
				if f := report.Forms[0]; f.Verified.Match != verify || (f.Verified.Unproven == "") != verify {
					t.Errorf("verified %+v", f.Verified)
				}
				for _, r := range w.service.Log() {
					if strings.Contains(r.Query, "_date=") {
						t.Errorf("a date was sent: %s", r.Query)
					}
				}
			})
		}
	}
}

// TestRangeWithoutDates: a range that was asked for, a partition or windows of the calendar
// cannot be had from a service that ignores dates. It is said after a few requests.
func TestRangeWithoutDates(t *testing.T) {
	for _, tc := range []struct {
		name, from, to string
		out            definition.Output
		step           extract.Period
	}{
		{"from and to", "2025-06-01", "2025-07-01", file(), extract.Period{}},
		{"from and to of a dataset", "2025-06-01", "2025-07-01", wholeDataset(), extract.Period{Days: 7}},
		{"from and to by months", "2025-06-01", "2025-08-01", months(), extract.Period{Seconds: 900}},
		{"only from", "2025-06-01", "", file(), extract.Period{Days: 7}},
		{"only to", "", "2025-02-01", file(), extract.Period{}},
		{"by days", "", "", days(), extract.Period{}},
	} {
		for _, verify := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, verify %v", tc.name, verify), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, generated(300))
				w.service.SetFaults("ignore-dates")
				def := w.definition(tc.out)
				def.Extract.Window, def.Extract.Verify = tc.step, verify
				def.Source.Requests.Concurrency = 1
				if tc.from != "" {
					def.Extract.From = extracttest.Wall(tc.from)
				}
				if tc.to != "" {
					def.Extract.To = extracttest.Wall(tc.to)
				}
				_, err := pipelines.Run(t.Context(), def, options())
				if !ignoresDates(err) {
					t.Fatalf("err = %v", err)
				}
				if w.sent() > 60 {
					t.Errorf("%d requests before it was noticed", w.sent())
				}
				if left := dataOnly(tree(t, w.dir)); len(left) > 0 {
					t.Errorf("it left %v", left)
				}
			})
		}
	}
}

// ignoresDates tells whether an error says that the service ignores dates.
func ignoresDates(err error) bool {
	e, ok := errors.AsType[*extract.BreachError](err)
	return ok && strings.Contains(e.Error(), "it ignores the range of dates")
}

// TestDatesIgnoredFromNowOn: parts that an honest service filled stay.
func TestDatesIgnoredFromNowOn(t *testing.T) {
	l := newLiving(t)
	l.runBy(l.definition(), l.o)
	before := tree(t, l.path("days"))
	l.service.SetFaults("ignore-dates")
	l.now("2026-01-22 00:00:30")
	l.service.Reset()
	if _, err := pipelines.Run(t.Context(), l.definition(), l.o); !ignoresDates(err) || l.sent() > 12 {
		t.Errorf("after %d requests: %v", l.sent(), err)
	}
	sameTree(t, before, tree(t, l.path("days")))
}
