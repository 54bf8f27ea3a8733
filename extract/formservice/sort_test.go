package formservice

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// fullSort is the definition of a sorted page: all results that the request
// allows, sorted, and then cut.
func fullSort(results []Result, q resultsQuery) []int64 {
	var all []Result
	for _, r := range results {
		if q.lack > 0 && r.ID%int64(q.lack) == 0 {
			r = r.Clone()
			r.Metas = slices.DeleteFunc(r.Metas, func(m Meta) bool { return m.ID == metaUpdate })
		}
		if matches(q.selection, newRecord(r)) && q.accepts(r) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Result) int {
		order := cmp.Or(strings.Compare(a.column(q.sort)[0], b.column(q.sort)[0]), cmp.Compare(a.ID, b.ID)) // no column is named result_id
		if q.desc {
			return -order
		}
		return order
	})
	ids := idsOf(all)
	skip := min((q.page-1)*q.limit, len(ids))
	return ids[skip:min(skip+q.limit, len(ids))]
}

// disturbedForm draws a generated form, and changes some of its results so
// that held and generated ones mix.
func disturbedForm(rng *rand.Rand, o GenerateOptions) *Form {
	f := Generate(o)
	from, to := f.span()
	now := from
	f.Clock = func() time.Time { return time.Unix(now, 0).UTC() }
	for range rng.IntN(60) {
		now = from + rng.Int64N(to-from)
		switch rng.IntN(5) {
		case 0:
			f.insertAny(rng.Uint64())
		case 1:
			f.editAny(rng.Uint64())
		case 2:
			f.deleteAny(rng.Uint64())
		case 3:
			if r := f.any(rng.Uint64(), func(r Result) bool { return r.column(metaFinish)[0] == "" }); r != nil {
				_ = f.Finish(r.ID, time.Unix(now, 0).UTC()) // it exists
			}
		case 4: // values that are no dates
			f.SetClock(nil)
			value := []string{"", "soon", "2025-01-01", "9999-12-31 23:59:59"}[rng.IntN(4)]
			_, _ = f.Insert(Result{Metas: []Meta{{metaUpdate, value}}})
			_, _ = f.Insert(Result{})
			f.SetClock(func() time.Time { return time.Unix(now, 0).UTC() })
		}
	}
	return f
}

// TestSortEqualsFullSort sorts random forms by date_update and other columns, in pages,
// within bounds, with and without a search, and in zones whose clocks change.
func TestSortEqualsFullSort(t *testing.T) {
	needs.Slow(t)
	zones := make([]clock, 0, 12)
	for _, name := range []string{"UTC", "America/Chicago", "Australia/Lord_Howe", "Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, shapes := range []Faults{"", "v2-fractions=random", "v2-fractions=random,v2-seconds"} {
			zones = append(zones, newClock(zone, reads(t, shapes)))
		}
	}
	for i, o := range []GenerateOptions{
		{Results: 3000},
		{Results: 3000, NoUpdates: true},
		{Results: 2000, Seed: 3, From: date("2025-03-01"), To: date("2025-03-01").Add(5 * time.Hour)},
		{Results: 1500, Seed: 4, From: date("1969-12-20"), To: date("1970-01-10")},
		{Results: 2000, Seed: 5, NoUnfinished: true, From: date("2025-01-01"), To: date("2025-01-09")},
		{Results: 2000, Seed: 6, NoLate: true, NoUndated: true, Even: true, From: date("2011-10-25"), To: date("2012-04-15")},
		{Results: 65, Seed: 7},
		{Results: 1, Seed: 8},
		{},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(8, uint64(i)))
			o.Items = 2
			f := disturbedForm(rng, o)
			results := collect(f)
			for range 30 {
				checkSorted(t, rng, zones, f, results)
			}
		})
	}
}

func checkSorted(t *testing.T, rng *rand.Rand, zones []clock, f *Form, results []Result) {
	t.Helper()
	q := newResultsQuery()
	q.lack = []int{0, 0, 1, 2, 7}[rng.IntN(5)]
	q.sort = []string{metaUpdate, metaUpdate, metaUpdate, metaFinish, "user_ip", metaStatus, f.Items[0].ID, sortByID}[rng.IntN(8)]
	q.limit, q.page = 1+rng.IntN(100), 1+rng.IntN(4)
	q.selection = everything
	if rng.IntN(3) == 0 {
		q.selection = randomSelection(rng, f)
	}
	if q.dated && rng.IntN(2) == 0 { // as API v2 reads bounds, by instants
		c := zones[rng.IntN(len(zones))]
		q.moment = c.compared
		q.after, q.before = c.compared(0, max(q.after, 0))/1000*1000, c.compared(0, max(q.before, 0))/1000*1000
	}
	q.desc = rng.IntN(2) == 0
	switch rng.IntN(5) {
	case 0:
		q.where = []func(Result) bool{Condition{metaUpdate, Empty, ""}.Holds}
	case 1:
		q.where = []func(Result) bool{Condition{metaStatus, Equals, "Complete"}.Holds}
	}
	whole := q
	whole.page, whole.limit = 1, 1<<30
	if n, want := f.count(&q), len(fullSort(results, whole)); n != want {
		t.Errorf("%+v: counted %d, want %d", q, n, want)
	}
	got := []int64{}
	f.pick(&q, func(r Result) { got = append(got, r.ID) })
	equalIDs(t, fmt.Sprintf("%+v", q), got, fullSort(results, q)...)
}
