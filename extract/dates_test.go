package extract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// TestPlanHasABound: no more is counted than may be asked for.
func TestPlanHasABound(t *testing.T) {
	d := newDates(random(300, extracttest.Window("2025-01-01", "2026-01-01"), 1))
	for most := int64(1); most < 15; most++ {
		var asked atomic.Int64
		_, err := extract.NewPlan(t.Context(), extract.Range{Window: extracttest.Window("2020-01-01", "2026-01-01"), Partition: extract.UnitDay, Most: most}, func(_ context.Context, w extract.Window) (int64, error) {
			asked.Add(1)
			return d.in(w), nil
		})
		if _ = extracttest.MustAs[*transport.Error](t, err); asked.Load() > most || !strings.Contains(err.Error(), fmt.Sprintf("more than the %d requests", most)) {
			t.Errorf("most %d: %d counts, %v", most, asked.Load(), err)
		}
	}
}

// TestReaderProvesIgnoredDates: a result that comes in two windows which share no time, each
// bounded on both sides, and comes there again, is the proof. Nothing less is one.
func TestReaderProvesIgnoredDates(t *testing.T) {
	form := formservice.Generate(formservice.GenerateOptions{Results: 300, Seed: 3, NoUndated: true})
	form.Views = []formservice.View{{ID: "7", Columns: []string{"1"}}}
	march := extracttest.Window("2025-03-01", "2025-04-01")
	const breach, other = "the range of dates", "the lower limit of ids"
	for _, tc := range []struct {
		name    string
		faults  formservice.Faults
		w       extract.Window
		view    string
		doubts  int // requests for one result
		ignores string
	}{
		{"a month", "ignore-dates", march, "", 3, breach},
		{"no lower bound", "ignore-min-date", march, "", 3, breach},
		{"no upper bound", "ignore-max-date", march, "", 3, breach},
		{"from March", "ignore-dates", extract.Window{From: march.From}, "", 3, breach},
		{"up to March", "ignore-dates", extract.Window{To: march.From}, "", 3, breach},
		{"no dates shown", "ignore-dates", march, "7", 3, breach},
		{"all of it", "ignore-dates", extracttest.Window("2024-01-01", "2027-01-01"), "", 0, ""},
		{"no bounds", "ignore-dates", extract.Window{}, "", 0, ""},
		{"kept", "", march, "", 0, ""},
		{"kept, no dates shown", "", march, "7", 1, ""},
		{"kept, up to March, no dates shown", "", extract.Window{To: march.From}, "7", 1, ""},
		{"ids too", "ignore-dates,ignore-min-id", extract.Window{}, "", 0, other},
	} {
		for _, generation := range generations {
			t.Run(tc.name+" "+generation, func(t *testing.T) {
				server, c := serve(t, generation, tc.faults, form)
				r := extract.NewReader(c, form.Directory, extract.ResultsQuery{View: tc.view})
				err := r.Each(t.Context(), tc.w, extract.IDRange{}, func(*page.Page) error { return nil })
				found, _ := errors.AsType[*extract.BreachError](err)
				switch {
				case tc.ignores == "" || generation == formservice.V2 && tc.ignores == other: // one page holds all
					if err != nil {
						t.Fatal(err)
					}
				case found == nil || found.Ignores != tc.ignores:
					t.Fatalf("err = %v", err)
				}
				doubts := 0
				for _, asked := range server.Log() {
					if !strings.Contains(asked.Query, "fs_max_id=") && !strings.Contains(asked.Query, "before_id=") {
						continue
					}
					doubts++
					for _, bounds := range [][2]string{{"fs_min_date=", "after_date="}, {"fs_max_date=", "before_date="}} {
						if !strings.Contains(asked.Query, bounds[0]) && !strings.Contains(asked.Query, bounds[1]) {
							t.Errorf("no %s in %s", bounds[0], asked.Query)
						}
					}
				}
				if doubts != tc.doubts {
					t.Errorf("%d requests for one result, want %d: %v", doubts, tc.doubts, server.Log())
				}
			})
		}
	}
}

// TestProofsOfDates: a result that moves from one window to the other between two requests
// proves nothing, and neither does one that a window does not hold.
func TestProofsOfDates(t *testing.T) {
	jan, feb := extracttest.Window("2026-01-01", "2026-02-01"), extracttest.Window("2026-02-01", "2026-03-01")
	for moved := 0; moved <= 3; moved++ {
		for _, generation := range generations {
			form := numberedForm(1, 10)
			server, c := serve(t, generation, "", form)
			server.Before = func(r formservice.Request) {
				if r.Number == moved {
					if err := form.Finish(5, feb.From.Add(time.Hour)); err != nil {
						t.Error(err)
					}
				}
			}
			r := extract.NewReader(c, "f", extract.ResultsQuery{})
			if err := r.ProveDates(t.Context(), 5, jan, feb); err != nil {
				t.Errorf("%s, moved before request %d: %v", generation, moved, err)
			}
			if err := r.ProveDates(t.Context(), 77, jan, feb); err != nil {
				t.Errorf("no such result: %v", err)
			}
		}
	}
	// Bounds without fractions of seconds let adjacent windows share a second of API v2.
	form := numberedForm(1, 10)
	for id := int64(1); id <= 10; id++ {
		if err := form.Finish(id, feb.From.Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	_, c := serve(t, formservice.V2, "v2-fractions=random,v2-coarse-bounds", form)
	for id := int64(1); id <= 10; id++ {
		for _, windows := range [][2]extract.Window{{jan, feb}, {feb, jan}, {{To: feb.From}, {From: feb.From}}} {
			if err := extract.NewReader(c, "f", extract.ResultsQuery{}).ProveDates(t.Context(), id, windows[0], windows[1]); err != nil {
				t.Errorf("a result of the last second: %v", err)
			}
		}
	}
	_, c = serve(t, formservice.V1, "ignore-dates", numberedForm(1, 10))
	err := extract.NewReader(c, "f", extract.ResultsQuery{}).ProveDates(t.Context(), 5, jan, extract.Window{From: feb.From})
	const want = "the service does not do what its specification says: it ignores the range of dates, also when asked a second time (result 5 came for each of two ranges of dates that do not overlap: " +
		"2026-01-01 00:00:00 to 2026-02-01 00:00:00 and from 2026-02-01 00:00:00 on); nothing was written"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestDoubtsEnd: a service that filters by a date that it does not show costs
// two requests, however many windows there are.
func TestDoubtsEnd(t *testing.T) {
	form := formservice.Generate(formservice.GenerateOptions{Results: 300, Seed: 3})
	form.Views = []formservice.View{{ID: "7", Columns: []string{"1"}}}
	server, c := serve(t, formservice.V2, "", form)
	r := extract.NewReader(c, form.Directory, extract.ResultsQuery{View: "7"})
	for month := 1; month <= 9; month++ {
		w := extracttest.Window(fmt.Sprintf("2025-%02d-01", month), fmt.Sprintf("2025-%02d-01", month+1))
		if err := r.Each(t.Context(), w, extract.IDRange{}, func(*page.Page) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := pagesAsked(server); n != 9+extract.MostDateChecks {
		t.Errorf("%d requests for nine windows", n)
	}
}
