package extract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/page"
)

// TestPlanNoticesIgnoredDates by counts, and how many that takes; 0 where it is
// left to the reader. Where dates are kept no plan is taken in.
func TestPlanNoticesIgnoredDates(t *testing.T) {
	to := extracttest.Wall("2026-01-01")
	year := extracttest.Window("2025-01-01", "2026-01-01")
	for _, tc := range []struct {
		name    string
		r       extract.Range
		n       int
		counts  int
		uncover bool
	}{
		{"weeks", extract.Range{Window: extract.Window{To: to}, Step: extract.Step{Days: 7}}, 300, 3, true},
		{"quarters of an hour", extract.Range{Window: extract.Window{To: to}, Step: extract.Step{Seconds: 900}}, 300, 3, true},
		{"one result", extract.Range{Window: extract.Window{To: to}, Step: extract.Step{Months: 1}}, 1, 3, true},
		{"auto by days", extract.Range{Window: extract.Window{To: to}, Partition: extract.UnitDay}, 300, 3, true},
		{"auto, large", extract.Range{Window: extract.Window{To: to}}, 100_000, 3, true},
		{"auto, small", extract.Range{Window: extract.Window{To: to}}, 300, 1, false},
		{"a large range", extract.Range{Window: year}, 2000, 3, true},
		{"a large range in weeks", extract.Range{Window: year, Step: extract.Step{Days: 7}}, 2000, 3, true},
		{"a small range", extract.Range{Window: year}, 1999, 1, false},
		{"a range that may not be counted", extract.Range{Window: year, Step: extract.Step{Days: 7}, Uncounted: true}, 5000, 0, false},
		{"nothing", extract.Range{Window: extract.Window{To: to}, Step: extract.Step{Days: 7}}, 0, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked := 0
			p, err := extract.NewPlan(t.Context(), tc.r, func(context.Context, extract.Window) (int64, error) { asked++; return int64(tc.n), nil })
			ignored, ok := errors.AsType[*extract.DatesError](err)
			if ok != tc.uncover || !ok && err != nil || asked != tc.counts {
				t.Fatalf("after %d counts: %+v, %v; want %d", asked, p, err, tc.counts)
			}
			if ok {
				if a, b := ignored.Windows[0], ignored.Windows[1]; !a.To.Equal(b.From) {
					t.Errorf("windows %v share time or leave some out", ignored.Windows)
				}
			}
			mustPlan(t, tc.r, newDates(random(tc.n, year, 3)))
		})
	}
	// As much before the range as in it, and all of a form in its first half.
	before := append(random(3000, extracttest.Window("2020-01-01", "2024-01-01"), 1), random(3000, year, 2)...)
	if p := mustPlan(t, extract.Range{Window: year}, newDates(before)); p.Total != 3000 {
		t.Errorf("total %d", p.Total)
	}
	mustPlan(t, extract.Range{Window: extract.Window{To: to}, Step: extract.Step{Months: 1}}, newDates(random(300, extracttest.Window("1975-01-01", "1980-01-01"), 1)))
}

// TestPlanHasABound: no more is counted than may be asked for.
func TestPlanHasABound(t *testing.T) {
	d := newDates(random(300, extracttest.Window("2025-01-01", "2026-01-01"), 1))
	for most := int64(1); most < 15; most++ {
		var asked atomic.Int64
		_, err := extract.NewPlan(t.Context(), extract.Range{Window: extracttest.Window("2020-01-01", "2026-01-01"), Partition: extract.UnitDay, Most: most}, func(_ context.Context, w extract.Window) (int64, error) {
			asked.Add(1)
			return d.in(w), nil
		})
		if e := extracttest.MustAs[*extract.CostError](t, err); asked.Load() > most || e.Most != most || !strings.Contains(err.Error(), fmt.Sprintf("more than the %d requests", most)) {
			t.Errorf("most %d: %d counts, %v", most, asked.Load(), err)
		}
	}
}

// TestReaderNoticesIgnoredDates by results that come in two windows: after so
// many requests, those included that brought pages.
func TestReaderNoticesIgnoredDates(t *testing.T) {
	form := formservice.Generate(formservice.GenerateOptions{Results: 300, Seed: 3, NoUndated: true})
	form.Views = []formservice.View{{ID: "7", Columns: []string{"1"}}}
	march := extracttest.Window("2025-03-01", "2025-04-01")
	for _, tc := range []struct {
		name   string
		faults formservice.Faults
		w      extract.Window
		view   string
		sent   int
		proven bool
	}{
		{"a month", formservice.Faults{IgnoreDates: true}, march, "", 3, true},
		{"a month, no ids", formservice.Faults{IgnoreDates: true, IgnoreMinID: true, IgnoreMaxID: true}, march, "", 3, true},
		{"a month, no order", formservice.Faults{IgnoreDates: true, IgnoreDirection: true}, march, "", 3, true},
		{"no lower bound", formservice.Faults{IgnoreMinDate: true}, march, "", 3, true},
		{"no upper bound", formservice.Faults{IgnoreMaxDate: true}, march, "", 3, true},
		{"from March", formservice.Faults{IgnoreDates: true}, extract.Window{From: march.From}, "", 3, true},
		{"up to March", formservice.Faults{IgnoreDates: true}, extract.Window{To: march.From}, "", 3, true},
		{"no dates shown", formservice.Faults{IgnoreDates: true}, march, "7", 3, true},
		{"all of it", formservice.Faults{IgnoreDates: true}, extracttest.Window("2024-01-01", "2027-01-01"), "", 4, false},
		{"no bounds", formservice.Faults{IgnoreDates: true}, extract.Window{}, "", 4, false},
		{"kept", formservice.Faults{}, march, "", 1, false},
		{"kept, no dates shown", formservice.Faults{}, march, "7", 2, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := &formservice.Server{Forms: []*formservice.Form{form}, Faults: tc.faults}
			r := extract.NewReader(extracttest.Serve(t, server, nil), form.Directory, extract.ResultsQuery{View: tc.view})
			r.Trust(true)
			read := func() error {
				return r.Each(t.Context(), tc.w, extract.IDRange{}, func(*page.Page) error { return nil })
			}
			err := read()
			if _, ok := errors.AsType[*extract.DatesError](err); ok != tc.proven || !ok && err != nil {
				t.Fatalf("err = %v", err)
			}
			if n := len(server.Log()); n != tc.sent {
				t.Errorf("%d requests, want %d: %v", n, tc.sent, server.Log())
			}
			server.Reset()
			if err := read(); tc.proven && (err == nil || len(server.Log()) != 1) {
				t.Errorf("once more: %d requests, %v", len(server.Log()), err)
			}
			r.LeaveDatesOut()
			rows := 0
			if err := r.Each(t.Context(), tc.w, extract.IDRange{}, func(p *page.Page) error { rows += p.Len(); return nil }); err != nil || rows != 300 {
				t.Errorf("without dates %d results, %v", rows, err)
			}
		})
	}
}

// TestDoubtsEnd: a service that filters by a date that it does not show costs
// two requests, however many windows there are.
func TestDoubtsEnd(t *testing.T) {
	form := formservice.Generate(formservice.GenerateOptions{Results: 300, Seed: 3})
	form.Views = []formservice.View{{ID: "7", Columns: []string{"1"}}}
	server := &formservice.Server{Forms: []*formservice.Form{form}}
	r := extract.NewReader(extracttest.Serve(t, server, nil), form.Directory, extract.ResultsQuery{View: "7"})
	r.Trust(true)
	for month := 1; month <= 9; month++ {
		w := extracttest.Window(fmt.Sprintf("2025-%02d-01", month), fmt.Sprintf("2025-%02d-01", month+1))
		if err := r.Each(t.Context(), w, extract.IDRange{}, func(*page.Page) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(server.Log()); n != 9+extract.MostDoubts {
		t.Errorf("%d requests for nine windows", n)
	}
}
