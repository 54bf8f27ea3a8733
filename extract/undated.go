package extract

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Results without a date match no bound of date, so no bounded window contains
// them. A run over all results of a form reads them separately.

// CountUndated counts the results without a date: all results minus the results
// since Epoch. total is the service's count of all results.
func CountUndated(ctx context.Context, s Service, form string, total int64) (int64, error) {
	if total == 0 {
		return 0, nil
	}
	dated, err := s.Count(ctx, form, CountQuery{Window: Window{From: Epoch}})
	return max(0, total-dated), err
}

// UndatedRange is a range of ids that holds results without a date.
type UndatedRange struct {
	IDs   IDRange
	Mixed bool // dated results lie in it too
}

// UndatedRanges finds the undated results by halving ranges of ids. It returns the ranges in
// ascending order, and how many undated results there are. If finding them costs more requests than
// reading all results once, it returns one range for all ids. total and undated are the form's
// counts. undated is Unknown if the form changed while it was counted. Then undated results are
// counted among the ids that exist now: a new result, which would hide one without a date, has a
// higher id. Their number stays Unknown if the service's counts ignore bounds of ids.
func UndatedRanges(ctx context.Context, s Service, form string, total, undated int64) (found []UndatedRange, n int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("look for results without a date: %w", err)
		}
	}()
	if undated == 0 {
		return nil, 0, nil
	}
	anywhere := []UndatedRange{{Mixed: undated < total}}
	pages, finding := undatedCost(s.PageSize(), total, undated)
	if undated != Unknown && finding >= pages {
		return anywhere, undated, nil
	}
	highest, ok, err := highestID(ctx, s, form, total, undated != Unknown)
	if err != nil || !ok {
		return anywhere, undated, err
	}
	countIn := func(ctx context.Context, r IDRange) (all, undated int64, err error) {
		if all, err = s.Count(ctx, form, CountQuery{IDs: r}); err != nil {
			return 0, 0, err
		}
		dated, err := s.Count(ctx, form, CountQuery{IDs: r, Window: Window{From: Epoch}})
		return all, max(0, all-dated), err
	}
	if undated == Unknown {
		if total, undated, err = countIn(ctx, IDRange{0, highest}); err != nil {
			return nil, 0, err
		}
		if undated == 0 {
			return nil, 0, nil
		}
		if pages, finding = undatedCost(s.PageSize(), total, undated); finding >= pages {
			return []UndatedRange{{Mixed: undated < total}}, undated, nil
		}
	}
	type ids struct {
		IDRange
		all int64 // results in this range of ids, also those with a date
	}
	budget, size := int(pages), int64(s.PageSize()) // budget is how many counts may still be spent
	err = Halving[ids]{
		Visit: func(_ context.Context, r ids, n int64, _ bool) (bool, error) {
			deeper := n > 0 && r.all > max(n, size) && r.Max-r.Min >= size && budget >= 2
			if n > 0 && !deeper {
				found = append(found, UndatedRange{IDs: r.IDRange, Mixed: r.all > n})
			}
			return deeper, nil
		},
		Divide: func(ctx context.Context, r ids) (lower, upper ids, inLower int64, err error) {
			budget -= 2
			middle := r.Min + (r.Max-r.Min)/2
			lower.IDRange, upper.IDRange = IDRange{r.Min, middle}, IDRange{middle + 1, r.Max}
			lower.all, inLower, err = countIn(ctx, lower.IDRange)
			upper.all = max(0, r.all-lower.all)
			return lower, upper, inLower, err
		},
	}.Halve(ctx, ids{IDRange{0, highest}, total}, undated, true)
	return found, undated, err
}

// undatedCost returns how many requests it takes to read all results, and to find and read the
// undated ones. Each undated result takes two counts until it is alone in its range, two more for
// each halving down to a page, and a request to read it.
func undatedCost(size int, total, undated int64) (pages, finding float64) {
	pages = float64(total)/float64(size) + 1
	return pages, float64(undated) * (3 + 2*max(0, math.Log2(pages/float64(undated))))
}

// UndatedRequests estimates how many requests for pages and for counts a run takes to find and
// read the undated results, besides the counts that tell how many there are. size is how
// many results a full page holds.
func UndatedRequests(size int, total, undated int64) (pages, counts int64) {
	if undated <= 0 {
		return 0, 0
	}
	all, finding := undatedCost(size, total, undated)
	if finding >= all {
		return int64(all), 0
	}
	pages = undated + 1 // one more page, because the highest id is asked for
	return pages, int64(finding) - undated + 2
}

// highestID finds an id that no result exceeds. Without confirm it is the id that the service
// calls the highest, though new results may have come meanwhile. highestID returns false if the
// service's counts ignore bounds of ids.
func highestID(ctx context.Context, s Service, form string, total int64, confirm bool) (highest int64, ok bool, err error) {
	last, err := s.Results(ctx, form, ResultsQuery{Limit: 1, Descending: true})
	if err != nil {
		return 0, false, err
	}
	defer last.Release()
	highest = slices.Max(append(last.IDs(), 1))
	// At most two results can have an id up to 1.
	if least, err := s.Count(ctx, form, CountQuery{IDs: IDRange{Max: 1}}); err != nil || least > 2 {
		return 0, false, err
	}
	for confirm && highest < math.MaxInt64/2 { // last may hold any id if the order is ignored
		beyond, err := s.Count(ctx, form, CountQuery{IDs: IDRange{Min: highest + 1}})
		switch {
		case err != nil || beyond >= total:
			return 0, false, err
		case beyond == 0:
			return highest, true, nil
		}
		highest *= 2
	}
	return highest, true, nil
}
