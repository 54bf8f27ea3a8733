package extract

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/extract/page"
)

// A service may ignore fs_min_date or fs_max_date, and answer each window with
// results from outside it. No column proves that, because the specification
// does not say by which date the service filters. The proof is a result that
// comes in two windows which have no time in common.

// DatesError says that the service ignores fs_min_date and fs_max_date.
type DatesError struct {
	Windows [2]Window // they have no time in common
	ID      int64     // a result that came in both windows; 0 if their counts are the proof
}

// Error names the two windows and what came in both.
func (e *DatesError) Error() string {
	what := "the service counts all results in both"
	if e.ID != 0 {
		what = fmt.Sprintf("result %d came in both", e.ID)
	}
	return fmt.Sprintf("the service ignores fs_min_date and fs_max_date: %s of two windows that share no time, %s and %s", what, e.Windows[0], e.Windows[1])
}

// DataFault is true, because the answers hold results that were not asked for.
func (e *DatesError) DataFault() bool { return true }

// mostDoubts is how often a reader checks a result whose dates lie outside its
// window. A service may filter by a date that it does not show.
const mostDoubts = 2

// dateDoubts is what a reader knows about whether the service honours dates.
type dateDoubts struct {
	mu      sync.Mutex
	left    int         // checks that may still be made
	ignored *DatesError // the proof that the service ignores dates; nil without one
	leftOut bool        // requests carry no dates
}

// LeaveDatesOut makes all requests omit dates, so that each window holds all
// results. Call it before any window is read.
func (r *Reader) LeaveDatesOut() { r.doubts.leftOut = true }

// checkDates looks for a result whose dates all lie outside the window. It asks
// for it in the window of its dates, and again in its own window. If it comes in
// both, the service ignores dates. A page without such a result costs no request.
func (w *WindowReader) checkDates(ctx context.Context, p *page.Page) error {
	d := &w.reader.doubts
	if d.leftOut || w.window == (Window{}) {
		return nil
	}
	i, elsewhere := w.stray(p)
	if i < 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ignored != nil {
		return d.ignored
	}
	if d.left == 0 {
		return nil
	}
	d.left--
	there, err := w.asked(ctx, elsewhere, p.ID(i))
	if err != nil {
		return err
	}
	both := slices.IndexFunc(there, func(id int64) bool { return slices.Contains(p.IDs(), id) })
	if both < 0 {
		return nil
	}
	// The result may have moved between the two requests, but not twice.
	here, err := w.asked(ctx, w.window, there[both])
	if err != nil || !slices.Contains(here, there[both]) {
		return err
	}
	d.ignored = &DatesError{Windows: [2]Window{w.window, elsewhere}, ID: there[both]}
	return d.ignored
}

// asked asks for one id in a window and returns the ids that came. A service
// that ignores the bounds of ids gives others too.
func (w *WindowReader) asked(ctx context.Context, in Window, id int64) ([]int64, error) {
	q := w.reader.common
	q.Window, q.IDs = in, IDRange{id, id}
	p, err := w.reader.service.Results(ctx, w.reader.form, q)
	if err != nil {
		return nil, fmt.Errorf("result %d, window %s: %w", id, in, err)
	}
	defer p.Release()
	return p.IDs(), nil
}

// stray finds a result that has no date in the window. elsewhere is the time before
// or after the window that holds its dates. i is -1 if there is no such result.
func (w *WindowReader) stray(p *page.Page) (i int, elsewhere Window) {
	dated := make([]bool, len(p.Fields)) // metas that are dates
	for i, f := range p.Fields {
		dated[i] = f.Kind == page.KindMeta && strings.HasPrefix(f.ID, "date_") && f.ID != UpdateMeta // an edit of today moves no result
	}
	from, to := "", onWire(w.window.To, "9999") // dates are compared as text
	if !w.window.From.IsZero() {
		from = onWire(w.window.From.Add(-time.Second), "") // bounds may be coarser than dates (API v2)
	}
	for i := range p.Len() {
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

// beside returns all time after the window, or all time from Epoch to the
// window. Epoch keeps out undated results, which may match an upper bound alone.
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
