package extract_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// datedForm has n results with dates, and one without for each id of without.
func datedForm(t testing.TB, n int, without ...int64) *formservice.Form {
	t.Helper()
	f := formservice.Generate(formservice.GenerateOptions{Results: n, NoUndated: true, Items: 1, Even: true})
	for _, near := range without {
		id := near
		for {
			if _, err := f.Insert(formservice.Result{ID: id, Metas: []formservice.Meta{{ID: "result_status", Value: "Incomplete"}}}); err == nil {
				break
			}
			id++
		}
	}
	return f
}

// dateOf is the date that bounds compare with, "" for a result without one.
func dateOf(r formservice.Result) string {
	if finish, _ := r.Meta("date_finish"); finish != "" {
		return finish
	}
	start, _ := r.Meta("date_start")
	return start
}

// isDated tells of the form's results whether they have a date, and lists
// those that have none.
func isDated(f *formservice.Form) (dated func(int64) bool, without []int64) {
	known := map[int64]bool{}
	for r := range f.Each {
		if known[r.ID] = dateOf(r) != ""; !known[r.ID] {
			without = append(without, r.ID)
		}
	}
	return func(id int64) bool { return known[id] }, without
}

func TestUndated(t *testing.T) {
	needs.Slow(t)
	const first = 100_001 // the least id of a generated form
	many := make([]int64, 300)
	for i := range many {
		many[i] = first + int64(i)*200
	}
	cluster := make([]int64, 40)
	for i := range cluster {
		cluster[i] = first + 30_000
	}
	for _, tc := range []struct {
		name    string
		n       int
		without []int64
		counts  int // most, the first two included
		pages   int // most
	}{
		{"none", 20_000, nil, 2, 0},
		{"no results at all", 0, nil, 1, 0},
		{"one of twenty thousand", 20_000, []int64{first + 31_111}, 2 + 2 + 2*10, 1 + 2},
		{"five of twenty thousand", 20_000, []int64{first, first + 10_000, first + 20_000, first + 30_000, first + 59_000}, 80, 12},
		{"at the end", 20_000, []int64{1_000_000, 1_000_000, 1_000_000}, 60, 5},
		{"forty in a cluster", 20_000, cluster, 2 + 200, 205},
		{"three hundred", 20_000, many, 2, 205},
		{"all undated", 0, many, 2, 4},
		{"few of few", 50, []int64{1, 2}, 2, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			form := datedForm(t, tc.n, tc.without...)
			dated, want := isDated(form)
			server := &formservice.Server{Forms: []*formservice.Form{form}}
			c := extracttest.Serve(t, server, nil)
			got := readUndated(t, c, "form1", dated)
			if !slices.Equal(got, want) {
				t.Errorf("%d undated results came, want %d", len(got), len(want))
			}
			counts, pages := server.Counts()[formservice.TransactionCount], server.Counts()[formservice.TransactionResults]
			t.Logf("%d counts, %d pages", counts, pages)
			if counts > tc.counts || pages > tc.pages {
				t.Errorf("%d counts and %d pages, want at most %d and %d", counts, pages, tc.counts, tc.pages)
			}
		})
	}
}

// readUndated finds and reads them, as pipelines does.
func readUndated(t testing.TB, c *v1.Client, form string, dated func(int64) bool) []int64 {
	t.Helper()
	got, err := tryUndated(t, c, form, dated)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func tryUndated(t testing.TB, c *v1.Client, form string, dated func(int64) bool) (got []int64, err error) {
	t.Helper()
	ctx := t.Context()
	total, err := c.Count(ctx, form, extract.CountQuery{})
	if err != nil {
		return nil, err
	}
	n, err := extract.CountUndated(ctx, c, form, total)
	if err != nil {
		return nil, err
	}
	ranges, _, err := extract.UndatedRanges(ctx, c, form, total, n)
	if err != nil {
		return nil, err
	}
	r := extract.NewReader(c, form, extract.ResultsQuery{})
	for i, u := range ranges {
		if i > 0 && u.IDs.Min <= ranges[i-1].IDs.Max {
			t.Errorf("range %v follows %v", u.IDs, ranges[i-1].IDs)
		}
		err := r.Each(ctx, extract.Window{}, u.IDs, func(p *page.Page) error {
			p.Filter(func(id int64) bool { return !dated(id) })
			got = append(got, p.IDs()...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return got, nil
}

// TestUndatedOfOtherServices: they are found where pages are short and requests fail. A
// service that ignores what it was asked for is named.
func TestUndatedOfOtherServices(t *testing.T) {
	for _, tc := range []struct {
		faults  formservice.Faults
		ignores string
	}{
		{"page-cap=50", ""},
		{"busy=0.1", ""},
		{"page-504=40", ""},
		{"ignore-direction", "order"},
		{"ignore-min-id", "lower limit"},
		{"ignore-max-id", ""}, // the counts show it, so no upper bound is asked for
		{"ignore-min-id,ignore-max-id", "lower limit"},
	} {
		form := datedForm(t, 3000, 100_500, 105_000)
		dated, want := isDated(form)
		server := &formservice.Server{Forms: []*formservice.Form{form}, Faults: tc.faults}
		c := extracttest.Serve(t, server, func(cfg *transport.Config) { cfg.Retries = 20 })
		got, err := tryUndated(t, c, "form1", dated)
		breach, _ := errors.AsType[*extract.BreachError](err)
		switch {
		case tc.ignores != "":
			if breach == nil || !strings.Contains(breach.Ignores, tc.ignores) {
				t.Errorf("%s: %v", tc.faults, err)
			}
		case err != nil || !slices.Equal(got, want):
			t.Errorf("%s: %v, want %v, %v", tc.faults, got, want, err)
		}
		if asked := len(server.Log()); asked > 150 {
			t.Errorf("%s: %d requests", tc.faults, asked)
		}
	}
}

// TestUndatedWithIDZero: the least id may be 0.
func TestUndatedWithIDZero(t *testing.T) {
	inner := bareService(450)
	c := extracttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/count") {
			inner.ServeHTTP(w, r)
			return
		}
		least, most := 0, 449
		_, _ = fmt.Sscan(r.URL.Query().Get("fs_min_id"), &least)
		_, _ = fmt.Sscan(r.URL.Query().Get("fs_max_id"), &most)
		n := max(0, min(most, 449)-least+1)
		if r.URL.Query().Has("fs_min_date") && least == 0 { // result 0 has no date
			n--
		}
		_, _ = w.Write([]byte(extracttest.Success(fmt.Sprintf("<count>%d</count>", n))))
	}), nil)
	if got := readUndated(t, c, "f", func(id int64) bool { return id != 0 }); !slices.Equal(got, []int64{0}) {
		t.Errorf("%v", got)
	}
}

// TestUndatedRequests: a dry run tells what the results without a date cost: all pages where that
// is less than to find each.
func TestUndatedRequests(t *testing.T) {
	for _, c := range []struct{ total, undated, pages, counts int64 }{{20_000, 0, 0, 0}, {50, 2, 1, 0}, {20_000, 1, 2, 19}} {
		if pages, counts := extract.UndatedRequests(100, c.total, c.undated); pages != c.pages || counts != c.counts {
			t.Errorf("%+v: %d pages and %d counts", c, pages, counts)
		}
	}
}
