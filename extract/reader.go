package extract

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// paging is the way in which a reader asks for the pages of a window.
type paging int64

const (
	// keysetUp asks for ids above the last one seen. Results that are inserted or
	// deleted meanwhile cannot shift a page.
	keysetUp paging = iota
	// keysetDown asks for ids below the last one seen, if the service ignores the order.
	keysetDown
	// numbered asks by page number (fs_page), if the service ignores the id
	// bounds or keeps no order. Ids that come again are dropped.
	numbered
)

// Reader reads windows of a form page by page. All windows of a run share it,
// because each shows how the service behaves: how long its pages are and
// whether it keeps the order. It is safe for concurrent use.
type Reader struct {
	service  Service
	size     int // of a full page
	form     string
	common   ResultsQuery
	longest  atomic.Int64 // results of the longest page seen; a shorter page ends its window
	way      atomic.Int64 // the paging that new windows begin with; it only rises
	sure     atomic.Bool  // pages came in ascending order, see takeUp
	ordered  atomic.Bool  // see RequireOrder
	trusting atomic.Bool  // see Trust
	stamps   atomic.Bool  // see CountUnstamped
	lacking  atomic.Int64 // results without a date_update
	doubts   dateDoubts
}

// NewReader returns a reader of the form. common holds the parameters that
// all its requests share: search, view and custom labels.
func NewReader(service Service, form string, common ResultsQuery) *Reader {
	return &Reader{service: service, size: service.PageSize(), form: form, common: common, doubts: dateDoubts{left: mostDoubts}}
}

// Trust sets whether a page that is not full ends a window with
// an end and without a count. That saves a request. Some services send shorter
// pages, which only a run that compares its windows with counts afterwards
// notices.
func (r *Reader) Trust(yes bool) { r.trusting.Store(yes) }

// CountUnstamped sets whether results are counted that carry no date_update.
func (r *Reader) CountUnstamped(yes bool) { r.stamps.Store(yes) }

// RequireOrder sets whether a page out of order is a *PagingError. Without the
// order of ids a window is kept in memory until it is complete, so large windows
// need the order.
func (r *Reader) RequireOrder(yes bool) { r.ordered.Store(yes) }

// Unstamped returns how many results were read that carry no date_update, if they
// are counted.
func (r *Reader) Unstamped() int64 { return r.lacking.Load() }

// Window returns a reader of the window w; ids may bound it further. count is
// the planner's count of its results, or Unknown. A count may save a request.
func (r *Reader) Window(w Window, ids IDRange, count int64) *WindowReader {
	return &WindowReader{reader: r, window: w, ids: ids, count: count, way: paging(r.way.Load()), lastID: max(0, ids.Min) - 1}
}

// Ascending tells whether the results are known to come in ascending order of
// id. A later reading can then resume after any of them.
func (w *WindowReader) Ascending() bool { return w.way == keysetUp && w.reader.sure.Load() }

// Downgraded says how pages are read because the service breaks the
// specification. It returns "" if the service keeps to it.
func (r *Reader) Downgraded() string {
	switch paging(r.way.Load()) {
	case keysetDown:
		return "the service ignores fs_sort_direction: pages are read downwards by fs_max_id"
	case numbered:
		return "the service ignores the order or the id bounds: pages are read by fs_page"
	}
	return ""
}

// WindowReader returns the pages of one window. It is not safe for concurrent use.
type WindowReader struct {
	reader *Reader
	window Window
	ids    IDRange
	count  int64

	way      paging
	page     int   // pages asked for in the current way
	rows     int64 // results received in the current way
	lastID   int64 // the last id in the way's direction, -1 before the first
	finished bool
	given    bool               // pages were ready, so the window cannot begin again
	ready    []*page.Page       // pages for Next to return
	held     []*page.Page       // pages whose order is not known yet
	seen     map[int64]struct{} // ids of the pages that were read by number
}

// Next returns the window's next page, or nil at the end. Its results are in
// ascending order of id and follow those of earlier pages. The caller releases
// the page.
func (w *WindowReader) Next(ctx context.Context) (*page.Page, error) {
	for len(w.ready) == 0 && !w.finished {
		if err := w.request(ctx); err != nil {
			return nil, err
		}
	}
	if len(w.ready) == 0 {
		return nil, nil
	}
	next := w.ready[0]
	w.ready = w.ready[1:]
	return next, nil
}

// Until bounds the results that further requests ask for to ids up to id. Another
// reader reads those above.
func (w *WindowReader) Until(id int64) {
	if w.way == keysetUp && (w.ids.Max == 0 || id < w.ids.Max) {
		w.ids.Max, w.count = id, Unknown
	}
}

// Ended tells whether Next has returned all pages. It then sends no more requests.
func (w *WindowReader) Ended() bool { return w.finished && len(w.ready) == 0 }

// Close releases the pages that Next has not returned.
func (w *WindowReader) Close() {
	w.finished = true
	release(w.ready)
	release(w.held)
	w.ready, w.held = nil, nil
}

// request asks for one page and adds it to the pages of the window.
func (w *WindowReader) request(ctx context.Context) error {
	w.page++
	q := w.reader.common
	q.IDs, q.Headings = w.ids, w.page == 1
	if !w.reader.doubts.leftOut {
		q.Window = w.window
	}
	if w.way == numbered {
		q.Page = w.page
	} else if w.rows > 0 && !w.beyond(&q.IDs) {
		return w.finish()
	}
	p, err := w.reader.service.Results(ctx, w.reader.form, q)
	if err != nil {
		return fmt.Errorf("%spage %d: %w", w.window.place(), w.page, err)
	}
	n := p.Len()
	if w.reader.stamps.Load() {
		w.reader.lacking.Add(int64(unstamped(p)))
	}
	if w.way == keysetDown && w.rows > 0 && w.lastID == 1 {
		p.Filter(func(id int64) bool { return id < 1 }) // id 1 was asked for again, see beyond
	}
	if p.Len() == 0 {
		p.Release()
		return w.finish()
	}
	if err := w.checkDates(ctx, p); err != nil {
		p.Release()
		return fmt.Errorf("%spage %d: %w", w.window.place(), w.page, err)
	}
	taken, err := w.accept(ctx, p)
	if err != nil {
		return fmt.Errorf("form %s, %spage %d: %w", w.reader.form, w.window.place(), w.page, err)
	}
	if taken && !w.finished && w.isLast(n) {
		return w.finish()
	}
	return nil
}

// beyond bounds ids to those that come next in the direction of the way. It
// returns false if no id can come next.
func (w *WindowReader) beyond(ids *IDRange) bool {
	if w.way == keysetUp {
		if w.lastID == math.MaxInt64 {
			return false
		}
		ids.Min = w.lastID + 1
		return ids.Max == 0 || ids.Min <= ids.Max
	}
	// Below id 1 only id 0 is left. A bound of 0 would mean no bound, so id 1 is asked for again.
	ids.Max = max(1, w.lastID-1)
	return w.lastID > 0 && ids.Max >= ids.Min
}

// isLast tells whether a page of n results that was just accepted ends the window.
// A page ends it if another page was longer, if it completes the count, or if
// Trust allows it. A full page never does, because a count may agree by chance.
func (w *WindowReader) isLast(n int) bool {
	raise(&w.reader.longest, int64(n))
	if n >= w.reader.size {
		return false
	}
	trusted := w.count == Unknown && !w.window.To.IsZero() && w.reader.trusting.Load()
	return int64(n) < w.reader.longest.Load() || w.rows == w.count || trusted
}

// accept adds a page if its ids are in the order of the window's way. After any
// other page the window begins again in the next way. If pages of the window
// were ready for Next before, the error is an *OrderError instead. If the order is
// required, it is a *PagingError.
func (w *WindowReader) accept(ctx context.Context, p *page.Page) (taken bool, err error) {
	first, last := p.ID(0), p.ID(p.Len()-1)
	rises, falls := p.Order()
	switch w.way {
	case keysetUp:
		if rises && first > w.lastID {
			return true, w.takeUp(p, last)
		}
		if w.reader.ordered.Load() {
			p.Release()
			return false, &PagingError{}
		}
		if w.given {
			p.Release()
			raise(&w.reader.way, int64(numbered))
			return false, &OrderError{After: w.lastID}
		}
		if falls && w.page == 1 {
			w.restart(keysetDown)
			w.page = 1
			w.takeDown(p, last)
			return true, nil
		}
	case keysetDown:
		if falls && (w.rows == 0 || first < w.lastID) {
			w.takeDown(p, last)
			return true, nil
		}
	case numbered:
		return true, w.takeNumbered(ctx, p)
	}
	p.Release()
	w.restart(numbered)
	return false, nil
}

// takeUp adds a page in ascending order. Next may return it as soon as the
// service is known to keep the order, which the page after it shows. If the order
// is required, the page itself suffices, because any page out of order ends the run.
func (w *WindowReader) takeUp(p *page.Page, last int64) error {
	if w.rows > 0 || w.reader.ordered.Load() && p.Len() > 1 {
		w.reader.sure.Store(true)
	}
	w.rows += int64(p.Len())
	w.lastID = last
	w.held = append(w.held, p)
	if !w.reader.sure.Load() {
		return nil
	}
	return w.give()
}

func (w *WindowReader) takeDown(p *page.Page, last int64) {
	w.rows += int64(p.Len())
	p.Filter(w.ids.holds)
	w.lastID = last
	w.held = append(w.held, p)
}

// takeNumbered adds a page without results that came before, because an
// insertion shifts results to the next page.
func (w *WindowReader) takeNumbered(ctx context.Context, p *page.Page) error {
	if w.seen == nil {
		w.seen = map[int64]struct{}{}
	}
	all := int64(p.Len())
	p.Filter(func(id int64) bool {
		_, again := w.seen[id]
		w.seen[id] = struct{}{}
		return !again
	})
	fresh := int64(p.Len())
	p.Filter(w.ids.holds)
	w.rows += fresh
	w.held = append(w.held, p)
	if fresh > 0 {
		return nil
	}
	if w.page == 2 && all == w.rows {
		if err := w.repeated(ctx); err != nil {
			return err
		}
	}
	return w.finish()
}

// repeated handles a second page that equals the first. Some services repeat the last
// page for ever, others ignore fs_page, which is an error. A count tells them apart.
func (w *WindowReader) repeated(ctx context.Context) error {
	q := CountQuery{Window: w.window, IDs: w.ids}
	if w.reader.doubts.leftOut {
		q.Window = Window{}
	}
	n, err := w.reader.service.Count(ctx, w.reader.form, q)
	if err != nil || n <= w.rows {
		return err
	}
	return &transport.AnswerError{Offset: -1, Problem: fmt.Sprintf(
		"it repeats the page before, though the service counts %d results where %d came: it ignores fs_min_id, fs_max_id and fs_page alike, so that the others cannot be reached; choose smaller windows", n, w.rows)}
}

func (w *WindowReader) restart(way paging) {
	release(w.held)
	w.way, w.page, w.rows, w.lastID, w.held, w.seen = way, 0, 0, -1, nil, nil
	raise(&w.reader.way, int64(way))
}

// raise sets a to n if a is lower.
func raise(a *atomic.Int64, n int64) {
	for now := a.Load(); now < n && !a.CompareAndSwap(now, n); now = a.Load() {
	}
}

// give sorts the held pages and makes them ready for Next.
func (w *WindowReader) give() error {
	pages, err := inOrder(w.held)
	w.held = nil
	w.ready = append(w.ready, pages...)
	w.given = w.given || len(w.ready) > 0
	return err
}

func (w *WindowReader) finish() error {
	w.finished = true
	return w.give()
}
