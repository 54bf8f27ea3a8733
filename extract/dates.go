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

// A service may ignore fs_min_date or fs_max_date. Then every window holds
// results from outside it too. No column proves that, because the specification
// does not say which date the service filters by. No count proves it, because
// all results may lie in one window. The proof is a result that comes in two
// windows which have no time in common.

// DatesError is a service that does not keep to fs_min_date and fs_max_date.
type DatesError struct {
	// Windows have no time in common.
	Windows [2]Window
	ID      int64 // a result that came in both; 0 where their counts tell
}

// Error says what showed it.
func (e *DatesError) Error() string {
	what := "the service counts all results in both"
	if e.ID != 0 {
		what = fmt.Sprintf("result %d came in both", e.ID)
	}
	return fmt.Sprintf("the service ignores fs_min_date and fs_max_date: %s of two windows that share no time, %s and %s", what, e.Windows[0], e.Windows[1])
}

// DataFault is true: what was read holds what was not asked for.
func (e *DatesError) DataFault() bool { return true }

// mostDoubts is how often results whose dates lie outside their window are
// looked for elsewhere: a service may filter by a date that it does not show.
const mostDoubts = 2

// dateDoubts is what a reader knows of how the service keeps to dates.
type dateDoubts struct {
	mu      sync.Mutex
	left    int         // that may still be looked into
	ignored *DatesError // once that is proven
	leftOut bool        // no request has dates any more
}

// LeaveDatesOut lets all windows be asked for without dates, where the service
// ignores them: each holds all results then. It is called before any window is
// read.
func (r *Reader) LeaveDatesOut() { r.doubts.leftOut = true }

// checkDates looks for a result of a page whose dates all lie outside the
// window that it came in. It asks for that result where its dates are: if it
// comes there too, and still in its window, the service ignores dates. A page
// whose results have their dates in the window costs nothing.
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
	// It may have moved between the two requests, once.
	here, err := w.asked(ctx, w.window, there[both])
	if err != nil || !slices.Contains(here, there[both]) {
		return err
	}
	d.ignored = &DatesError{Windows: [2]Window{w.window, elsewhere}, ID: there[both]}
	return d.ignored
}

// asked gives the ids that come where one is asked for in a window. A service
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

// stray finds a result that has no date in the window, and a window beside this
// one that should hold it: on the side of its dates. -1 is none.
func (w *WindowReader) stray(p *page.Page) (i int, elsewhere Window) {
	dated := make([]bool, len(p.Fields)) // metas that are dates
	for i, f := range p.Fields {
		dated[i] = f.Kind == page.KindMeta && strings.HasPrefix(f.ID, "date_")
	}
	from, to := onWire(w.window.From, ""), onWire(w.window.To, "9999") // to be compared with dates as they come
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
			// Of a day alone it is enough that the window holds some of it.
			before, after := string(v) < from[:min(len(v), len(from))], string(v) >= to
			inside = inside || !before && !after
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

// beside is all time after the window, or before it. A lower bound keeps
// results without a date out, which may match an upper one by itself.
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
