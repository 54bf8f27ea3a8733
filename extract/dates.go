package extract

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/formetl/formetl/extract/page"
)

// A service may ignore fs_min_date or fs_max_date, and answer each window with
// results from outside it. No column proves that, because the specification
// does not say by which date the service filters. The proof is a result that comes in two
// windows which have no time in common, also when formetl asks for it in both once more.

// mostDateChecks is how often a reader checks a result whose dates lie outside its
// window. A service may filter by a date that it does not show.
const mostDateChecks = 2

// checkDates looks for a result whose dates all lie outside the window, and asks for that result
// in the window of its dates. A page without such a result costs no request. Windows that are
// read side by side make this check one after the other: a check that fails ends the run, and
// the other windows then need no requests.
func (w *WindowReader) checkDates(ctx context.Context, p *page.Page) error {
	r := w.reader
	if w.window == (Window{}) {
		return nil
	}
	i, elsewhere := w.stray(p)
	if i < 0 {
		return nil
	}
	r.checking.Lock()
	defer r.checking.Unlock()
	if r.dateChecks == mostDateChecks {
		return nil
	}
	r.dateChecks++
	return r.ProveDates(ctx, p.ID(i), elsewhere, w.window)
}

// ProveDates asks for a result in two windows that share no time. It returns a
// *BreachError if both windows hold the result: the service ignores dates. The first window is
// asked for twice, because a result may have moved between the requests, but does not move back.
func (r *Reader) ProveDates(ctx context.Context, id int64, one, other Window) error {
	// Bounds may be coarser than dates, so that adjacent windows share a second (API v2).
	first, second := one.bounded(), other.bounded()
	if first.From.Before(second.From) {
		second.From = second.From.Add(time.Second)
	} else {
		first.From = first.From.Add(time.Second)
	}
	for _, w := range []Window{first, second, first} {
		there, err := r.holds(ctx, w, id)
		if err != nil || !there {
			return err
		}
	}
	return &BreachError{
		Ignores: "the range of dates",
		Proof:   fmt.Sprintf("result %d came for each of two ranges of dates that do not overlap: %s and %s", id, one.Dates(), other.Dates()),
	}
}

// holds tells whether the service returns the result with this id in a window.
func (r *Reader) holds(ctx context.Context, w Window, id int64) (there bool, err error) {
	q := r.common
	q.Window, q.IDs = w, IDRange{id, id}
	p, err := r.service.Results(ctx, r.form, q)
	if err != nil {
		return false, fmt.Errorf("result %d, window %s: %w", id, w, err)
	}
	defer p.Release()
	return slices.Contains(p.IDs(), id), nil
}

// farthest is later than the date of any result.
var farthest = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// bounded returns the window with bounds at both ends. A result without a date may match
// a single bound, but not two.
func (w Window) bounded() Window {
	if w.From.IsZero() {
		w.From = Epoch
	}
	if w.To.IsZero() {
		w.To = farthest
	}
	return w
}

// stray finds a result that has no date in the window. elsewhere is the time before
// or after the window that holds its dates. i is -1 if there is no such result.
func (w *WindowReader) stray(p *page.Page) (i int, elsewhere Window) {
	dated := make([]bool, len(p.Fields)) // metas that are dates
	for i, f := range p.Fields {
		dated[i] = f.Kind == page.KindMeta && page.IsDate(f.ID) && f.ID != page.MetaUpdate // an edit changes this date alone
	}
	from, to := onWire(w.window.From, ""), onWire(w.window.To, "9999") // dates are compared as text
	for i := range p.Len() {
		if p.Early(i) {
			continue
		}
		inside, later := false, false
		for _, c := range p.Cells(i) {
			if !dated[c.Field] || c.Values == 0 {
				continue
			}
			v := p.Value(c, 0)
			if len(v) != len(WireTime) && len(v) != len(time.DateOnly) {
				continue
			}
			// A date without a time counts as inside if the window holds a part of its day.
			before, after := string(v) < from[:min(len(v), len(from))], string(v) >= to
			if inside = !before && !after; inside {
				break
			}
			later = later || after
		}
		if inside {
			continue
		}
		if elsewhere, ok := w.beside(later); ok {
			return i, elsewhere
		}
	}
	return -1, Window{}
}

// beside returns all time after the window, or all time from Epoch to the window's beginning;
// false if there is neither. Epoch keeps out undated results, which may match an upper bound alone.
func (w *WindowReader) beside(later bool) (beside Window, ok bool) {
	before, after := w.window.From.After(Epoch), !w.window.To.IsZero()
	switch {
	case after && (later || !before):
		return Window{From: w.window.To}, true
	case before:
		return Window{From: Epoch, To: w.window.From}, true
	}
	return Window{}, false
}
