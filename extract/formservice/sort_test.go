package formservice

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
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
		order := cmp.Or(strings.Compare(firstValue(a, q.sort), firstValue(b, q.sort)), cmp.Compare(a.ID, b.ID))
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
			f.finishAny(rng.Uint64())
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

// TestSortEqualsFullSort sorts random forms over HTTP by date_update and other
// columns, in pages, within bounds, with and without a search.
func TestSortEqualsFullSort(t *testing.T) {
	for i, o := range []GenerateOptions{
		{Results: 3000},
		{Results: 3000, NoUpdates: true},
		{Results: 2000, Seed: 3, From: date("2025-03-01"), To: date("2025-03-01").Add(5 * time.Hour)},
		{Results: 1500, Seed: 4, From: date("1969-12-20"), To: date("1970-01-10")},
		{Results: 2000, Seed: 5, NoUnfinished: true, From: date("2025-01-01"), To: date("2025-01-09")},
		{Results: 2000, Seed: 6, NoLate: true, NoUndated: true, Even: true},
		{Results: 65, Seed: 7},
		{Results: 1, Seed: 8},
		{},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(8, uint64(i)))
			o.Items = 2
			f := disturbedForm(rng, o)
			s := startService(t, &Server{Forms: []*Form{f}})
			results := collect(f)
			for range 10 {
				checkSorted(t, rng, s, f, results)
			}
		})
	}
}

func checkSorted(t *testing.T, rng *rand.Rand, s service, f *Form, results []Result) {
	t.Helper()
	q := newResultsQuery()
	q.lack = []int{0, 0, 1, 2, 7}[rng.IntN(5)]
	s.SetFaults(Faults("").With("lack-update", q.lack))
	q.sort = []string{metaUpdate, metaUpdate, metaUpdate, metaFinish, "user_ip", metaStatus, f.Items[0].ID}[rng.IntN(7)]
	q.desc = rng.IntN(2) == 0
	q.limit = 1 + rng.IntN(100)
	q.page = 1 + rng.IntN(4)
	query := fmt.Sprintf("fs_sort=%s&fs_limit=%d&fs_page=%d", q.sort, q.limit, q.page)
	if !q.desc {
		query += "&fs_sort_direction=asc"
	}
	if rng.IntN(3) == 0 {
		sel := randomSelection(rng, f)
		sel.desc = q.desc
		q.minID, q.maxID = max(sel.minID, 0), max(sel.maxID, 0)
		query += fmt.Sprintf("&fs_min_id=%d&fs_max_id=%d", q.minID, q.maxID)
		if sel.dated {
			from, to := f.span()
			q.dated, q.after, q.before = true, max(sel.after, from-1), min(sel.before, to+1)
			query += "&fs_min_date=" + encode(wallText(q.after+1)) + "&fs_max_date=" + encode(wallText(q.before-1))
		}
	}
	switch rng.IntN(5) {
	case 0:
		q.where = []func(Result) bool{Condition{metaUpdate, Empty, ""}.Holds}
		query += "&fs_search_empty_date_update"
	case 1:
		q.where = []func(Result) bool{Condition{metaStatus, Equals, "Complete"}.Holds}
		query += "&fs_search_equals_result_status=Complete"
	}
	equalIDs(t, fmt.Sprintf("lack %d: %s", q.lack, query), s.ids(t, query), fullSort(results, q)...)
}
