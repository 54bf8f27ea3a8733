package extract

import "context"

// watchedPages is the fewest pages for which a plan of a range with a beginning
// spends a count on whether the service honours it. With fewer pages the reader
// notices that about as soon, without a further request.
const watchedPages = 20

// checkBeginning counts what lies before a range that has a beginning. What
// is as much as the range itself holds may be all there is.
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

// checkHalves compares the halves of a range without a beginning. The lower
// one ends long before there were online forms, and is usually empty.
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

// bothWhole is a *DatesError where each of two windows that share no time holds
// what the span does that they make up.
func bothWhole(windows [2]Window, counts [2]int64, span int64) error {
	if nearly(counts[0], span) && nearly(counts[1], span) {
		return &DatesError{Windows: windows}
	}
	return nil
}

// nearly tells whether two counts differ by no more than what may come and go
// between them.
func nearly(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/10 && min(a, b) > 0 }
