package extract

import "context"

// watchedPages is from how many pages on a plan spends a count on whether the
// service honours the beginning of the range. With fewer pages the reader
// notices that about as soon.
const watchedPages = 20

// checkBeginning counts what lies before a range that has a beginning. Where
// that is as much as the range holds, both may be all results.
func (p *planner) checkBeginning(ctx context.Context, total int64) error {
	w := p.Window
	if total < watchedPages*PageSize || !w.From.After(Epoch) || w.To.IsZero() {
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
// lower one ends long before there were online forms, and is usually empty.
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

// bothWhole returns a *DatesError where each of two windows that share no time
// holds as much as the span that they make up.
func bothWhole(windows [2]Window, counts [2]int64, span int64) error {
	if nearly(counts[0], span) && nearly(counts[1], span) {
		return &DatesError{Windows: windows}
	}
	return nil
}

// nearly tells whether two counts are equal but for what may change in between.
func nearly(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/10 && min(a, b) > 0 }
