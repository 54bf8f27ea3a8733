package formservice

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// TestSortByUpdate reads a generated form, some of whose results were changed since, page by
// page, sorted by date_update. Generated results are sorted without being made.
func TestSortByUpdate(t *testing.T) {
	f := Generate(GenerateOptions{Results: 350})
	f.Clock = fixedClock("2025-06-01 12:00:00")
	for h := range uint64(20) {
		f.insertAny(h)
		f.editAny(h)
		f.deleteAny(h)
	}
	all := collect(f)
	for _, lack := range []int64{0, 7} {
		slices.SortStableFunc(all, func(a, b Result) int {
			return cmp.Or(cmp.Compare(updateOf(a, lack), updateOf(b, lack)), cmp.Compare(a.ID, b.ID))
		})
		want := idsOf(all)
		s := startService(t, &Server{Forms: []*Form{f}, Faults: Faults("").With("lack-update", lack)})
		for _, direction := range []string{"asc", "desc"} {
			var got []int64
			for page := 1; len(got) < len(want); page++ {
				got = append(got, s.ids(t, fmt.Sprintf("fs_sort=date_update&fs_limit=100&fs_sort_direction=%s&fs_page=%d", direction, page))...)
			}
			equalIDs(t, direction, got, want...)
			slices.Reverse(want)
		}
	}
}

// updateOf is the date_update of a result, which every so many results are shown without.
func updateOf(r Result, lack int64) string {
	if lack > 0 && r.ID%lack == 0 {
		return ""
	}
	return r.column(metaUpdate)[0]
}
