package extract

import "context"

// watchedPages is the least pages for which a plan spends a count to check the
// range's beginning. With fewer pages the reader notices about as soon that the
// service ignores it.
const watchedPages = 20

// checkBeginning counts the results before a range that has a beginning. If they
// are as many as in the range, it checks whether the service ignores dates.
func (p *planner) checkBeginning(ctx context.Context, total int64) error {
	w := p.Window
	if total < watchedPages*p.pageSize() || !w.From.After(Epoch) || w.To.IsZero() {
		return nil
	}
	before := Window{From: Epoch, To: w.From}
	n, err := p.count(ctx, before)
	if err != nil || !nearly(n, total) {
		return err
	}
	both, err := p.count(ctx, Window{From: Epoch, To: w.To})
	if err != nil {
		return err
	}
	return bothWhole([2]Window{before, w}, [2]int64{n, total}, both)
}

// checkHalves compares the first two halves of a range without a beginning. The
// lower half, with n results, ends before online forms existed and is usually empty.
func (p *planner) checkHalves(ctx context.Context, c piece, lower, upper Window, n int64) error {
	first := !p.halved
	p.halved = true
	if !first || !nearly(n, c.n) {
		return nil
	}
	rest, err := p.count(ctx, upper)
	if err != nil {
		return err
	}
	return bothWhole([2]Window{lower, upper}, [2]int64{n, rest}, c.n)
}

// bothWhole returns a *DatesError if each of two windows that share no time
// holds about as many results as both together (span).
func bothWhole(windows [2]Window, counts [2]int64, span int64) error {
	if nearly(counts[0], span) && nearly(counts[1], span) {
		return &DatesError{Windows: windows}
	}
	return nil
}

// nearly tells whether two counts above 0 are equal, apart from changes in between.
func nearly(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/10 && min(a, b) > 0 }
