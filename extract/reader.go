package extract

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// Reader reads windows of a form page by page, in ascending order of ids. All windows of
// a run share one Reader, because each window shows how the service behaves. A Reader is safe
// for concurrent use.
type Reader struct {
	service Service
	form    string
	common  ResultsQuery
	// Notice is called once if the service cannot serve full pages. It may be nil.
	Notice func(what string)

	limit      atomic.Int64 // most results that a request asks for now
	good       atomic.Int64 // pages since limit changed, while limit is below a full page
	noticed    atomic.Bool
	endless    atomic.Bool  // see DoubtEnds
	stamps     atomic.Bool  // see CountUnstamped
	lacking    atomic.Int64 // results without a date_update
	newestDate atomic.Pointer[string]
	dated      atomic.Bool // a result showed when it was finished
	finished   atomic.Bool // a result did not show that it is not finished

	checking   sync.Mutex // held while checkDates checks a result
	dateChecks int        // checks of dates so far, at most mostDateChecks
}

// NewReader returns a reader of the form. common holds the parameters that
// all its requests share: search, view and custom labels.
func NewReader(service Service, form string, common ResultsQuery) *Reader {
	r := &Reader{service: service, form: form, common: common}
	r.limit.Store(int64(service.PageSize()))
	return r
}

// DoubtEnds sets whether to read on where an answer says that no page follows.
func (r *Reader) DoubtEnds(yes bool) { r.endless.Store(yes) }

// CountUnstamped sets whether the reader counts the results that carry no date_update.
func (r *Reader) CountUnstamped(yes bool) { r.stamps.Store(yes) }

// Unstamped returns how many results without a date_update were read since CountUnstamped(true).
func (r *Reader) Unstamped() int64 { return r.lacking.Load() }

// Window returns a reader of the window w; ids may bound its results further. count is how many
// results the service counts there, or Unknown. A known count may save a request.
func (r *Reader) Window(w Window, ids IDRange, count int64) *WindowReader {
	return &WindowReader{reader: r, window: w, ids: ids, count: count, lastID: max(0, ids.Min) - 1}
}

// WindowReader returns the pages of one window. Each request asks for the ids above the last id
// that was read, so that results which come or go meanwhile cannot shift a page. A WindowReader is
// not safe for concurrent use.
type WindowReader struct {
	reader     *Reader
	window     Window
	ids        IDRange
	count      int64
	together   bool // see CountedTogether
	doubt      bool // see DoubtEnd
	uncompared bool // see Uncompared

	page   int // requests so far
	most   int // results of the longest page so far
	rows   int64
	lastID int64 // the last id that was read; one less than the lowest before the first page
	ended  bool
	open   bool
	tail   bool // the next request asks for the highest id, see askHighest
}

// CountedTogether tells the reader that its window shares one count with windows of other readers.
// A page that is not full then ends the window, see Open.
func (w *WindowReader) CountedTogether() { w.together = true }

// DoubtEnd tells the reader that a count says that more results follow. Then an answer that says
// that no page follows does not end the window; only an empty page does.
func (w *WindowReader) DoubtEnd() { w.doubt = true }

// Uncompared tells the reader that nothing but the window's own count checks the window, and that
// this count may be older than the pages. So the window ends where the count is reached, and is
// Open if the service may have cut the last page short.
func (w *WindowReader) Uncompared() { w.uncompared = true }

// Until bounds the results that further requests ask for to ids up to id. Another
// reader reads the results with higher ids.
func (w *WindowReader) Until(id int64) {
	if w.ids.Max == 0 || id < w.ids.Max {
		w.ids.Max = id
		w.together, w.count = w.together || w.count != Unknown, Unknown
	}
}

// Ended tells whether Next sends no more requests.
func (w *WindowReader) Ended() bool { return w.ended }

// Open tells whether the reader ended at a page that was not full, without asking for higher ids,
// so that more results may follow. Whether any do shows when the results of all windows that
// were counted together are compared with their count.
func (w *WindowReader) Open() bool { return w.open }

// Next returns the window's next page, or nil at the end. The caller releases the page.
//
// A page that is not full may have been cut short by the service. So such a page ends the window
// only if all counted results have come, or if nothing is counted and the answer says that no
// page follows. Otherwise only an empty page ends the window.
func (w *WindowReader) Next(ctx context.Context) (*page.Page, error) {
	if w.tail && w.ids.Max == 0 {
		if err := w.askHighest(ctx); err != nil {
			return nil, fmt.Errorf("%safter page %d: %w", w.window.place(), w.page, err)
		}
	}
	if !w.ended && w.ids.Max != 0 && w.lastID >= w.ids.Max {
		w.ended = true
	}
	if w.ended {
		return nil, nil
	}
	w.page++
	p, limit, err := w.ask(ctx)
	if err == nil && p.Len() > 0 {
		err = w.checkDates(ctx, p)
	}
	if refused, ok := errors.AsType[*transport.Error](err); ok && refused.Err == nil { // not sent, whatever the page
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("%spage %d: %w", w.window.place(), w.page, err)
	}
	r, n := w.reader, p.Len()
	if n == 0 {
		p.Release()
		w.ended = true
		return nil, nil
	}
	r.noteDates(p)
	for i := range n {
		if !p.Early(i) { // the service's count leaves early results out
			w.rows++
		}
	}
	w.lastID, w.most = p.ID(n-1), max(n, w.most)
	switch {
	case w.lastID == math.MaxInt64 || w.ids.Max != 0 && w.lastID >= w.ids.Max:
		w.ended = true
	case n >= limit: // after a full page more may follow, though the count is reached by chance
	case w.rows == w.count:
		w.ended, w.open = true, w.uncompared && n == w.most
	case w.together:
		w.ended, w.open = true, true
	case w.count != Unknown: // so results that come meanwhile do not let it read on and on
		w.ended = w.rows > w.count && n < w.most
	default:
		w.ended = p.Ends && !w.doubt && !r.endless.Load()
		w.tail = !w.ended && n < w.most
	}
	return p, nil
}

// askHighest asks for the highest id of a window that was not counted, and reads up to that id,
// in place of an empty page at the window's end. Without the bound, results that come with each
// request would let the reader go on for ever. The request asks for two results, which show whether
// the service honours the descending order. If it does not, the window gets no bound.
func (w *WindowReader) askHighest(ctx context.Context) error {
	w.tail = false
	q := w.reader.common
	q.Window, q.IDs, q.Descending, q.Limit, q.Halved = w.window, IDRange{Min: w.lastID}, true, 2, true
	p, err := w.reader.service.Results(ctx, w.reader.form, q)
	if transport.TooHeavy(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Release()
	switch n := p.Len(); {
	case n > 2 || n > 0 && p.ID(n-1) < w.lastID || n == 2 && p.ID(0) <= p.ID(1):
	case n == 0 || p.ID(0) == w.lastID:
		w.ended = true
	default:
		w.ids.Max = p.ID(0)
	}
	return nil
}

// ask asks for the next page. It asks once more if the ids of the page do not ascend strictly, or
// lie outside the bounds that were asked for. limit is how many results the request asked for.
func (w *WindowReader) ask(ctx context.Context) (p *page.Page, limit int, err error) {
	q := w.reader.common
	q.Window, q.IDs, q.Headings = w.window, IDRange{Min: w.lastID + 1, Max: w.ids.Max}, w.page == 1
	for try := 1; ; try++ {
		if p, limit, err = w.reader.serve(ctx, q); err != nil {
			return nil, limit, err
		}
		breach := breachOf(p, q.IDs)
		if breach == nil {
			return p, limit, nil
		}
		p.Release()
		if try == 2 {
			return nil, limit, breach
		}
	}
}

// breachOf returns a *BreachError that names what a page ignores of the request; nil if nothing.
func breachOf(p *page.Page, asked IDRange) error {
	last := int64(-1)
	for i := range p.Len() {
		id := p.ID(i)
		switch {
		case id < asked.Min:
			return &BreachError{Ignores: "the lower limit of ids", Proof: fmt.Sprintf("result %d came, but ids from %d on were requested", id, asked.Min)}
		case asked.Max != 0 && id > asked.Max:
			return &BreachError{Ignores: "the upper limit of ids", Proof: fmt.Sprintf("result %d came, but ids up to %d were requested", id, asked.Max)}
		case id == last:
			return &BreachError{Ignores: "that a page has each result once", Proof: fmt.Sprintf("result %d came twice on a page", id)}
		case id < last:
			return &BreachError{Ignores: "the ascending order of ids", Proof: fmt.Sprintf("result %d came after result %d", id, last)}
		}
		last = id
	}
	return nil
}

// growsAfter is how many pages must come before a request asks for twice as many results again.
const growsAfter = 10

// serve asks for a page. If the service cannot serve so many results at once, though it answers
// other requests, serve asks for half as many. After growsAfter pages it asks for more again.
func (r *Reader) serve(ctx context.Context, q ResultsQuery) (p *page.Page, limit int, err error) {
	probed := false
	for {
		limit = int(r.limit.Load())
		q.Limit, q.Halved = limit, limit > 1
		p, err = r.service.Results(ctx, r.form, q)
		if err == nil {
			if full := int64(r.service.PageSize()); int64(limit) < full && r.good.Add(1) >= growsAfter {
				r.good.Store(0)
				r.limit.CompareAndSwap(int64(limit), min(full, 2*int64(limit)))
			}
			return p, limit, nil
		}
		if !transport.TooHeavy(err) {
			return nil, limit, err
		}
		if !probed || limit == 1 {
			if err := servesOne(ctx, r.service, r.form); err != nil {
				return nil, limit, err
			}
			probed = true
		}
		if limit == 1 {
			behind := "the first result"
			if q.IDs.Min > 1 {
				behind = fmt.Sprintf("the result after id %d", q.IDs.Min-1)
			}
			return nil, limit, &transport.Error{Code: 69, Problem: "the service cannot return " + behind + ", but it answers other requests", Remedy: "send this message to the people who run the service", Err: err}
		}
		r.good.Store(0)
		if r.limit.CompareAndSwap(int64(limit), int64(limit/2)) && !r.noticed.Swap(true) && r.Notice != nil {
			r.Notice(fmt.Sprintf("the service cannot return %d results at once; formetl asks for fewer, and none is left out", limit))
		}
	}
}

// servesOne returns an error unless the service answers a request for one result, the first
// or the last of the form. In an outage it answers neither.
func servesOne(ctx context.Context, s Service, form string) (err error) {
	for _, last := range []bool{false, true} {
		var p *page.Page
		if p, err = s.Results(ctx, form, ResultsQuery{Limit: 1, Descending: last}); err == nil {
			p.Release()
			return nil
		}
		if !transport.TooHeavy(err) {
			break
		}
	}
	return err
}

// Newest returns the latest date of all results that were read, as wall-clock time of the
// account's zone. It is zero if no result has a date.
func (r *Reader) Newest() (newest time.Time) {
	if text := r.newestDate.Load(); text != nil {
		newest, _ = time.Parse(WireTime, *text)
	}
	return newest
}

// HidesDates tells whether no result that was read showed when it was finished (date_finish),
// though one at least did not show either that it is not finished.
func (r *Reader) HidesDates() bool { return r.finished.Load() && !r.dated.Load() }

// noteDates records what Newest, HidesDates and Unstamped return.
func (r *Reader) noteDates(p *page.Page) {
	newest := ""
	known := r.newestDate.Load()
	if known != nil {
		newest = *known
	}
	for i := range p.Len() {
		stamped, unfinished := false, false
		for _, c := range p.Cells(i) {
			f := &p.Fields[c.Field]
			if c.Values == 0 || f.Kind != page.KindMeta {
				continue
			}
			v := p.Value(c, 0)
			unfinished = unfinished || f.ID == page.MetaStatus && string(v) == "Incomplete"
			if !page.IsDate(f.ID) {
				continue
			}
			if f.ID == page.MetaFinish {
				r.dated.Store(true)
			}
			stamped = stamped || f.ID == UpdateMeta && len(v) == len(WireTime)
			if len(v) == len(WireTime) && string(v) > newest { // dates are compared as text
				if _, err := time.Parse(WireTime, string(v)); err == nil {
					newest = string(v)
				}
			}
		}
		if !stamped && r.stamps.Load() {
			r.lacking.Add(1)
		}
		if !unfinished {
			r.finished.Store(true)
		}
	}
	for newest != "" && (known == nil || newest > *known) && !r.newestDate.CompareAndSwap(known, &newest) {
		known = r.newestDate.Load()
	}
}

// Each calls the function each with every page of a window, in ascending order of id, without
// early results (see page.Page.Early). A page is valid only during the call.
func (r *Reader) Each(ctx context.Context, w Window, ids IDRange, each func(*page.Page) error) error {
	wr := r.Window(w, ids, Unknown)
	for {
		p, err := wr.Next(ctx)
		if err != nil || p == nil {
			return err
		}
		p.DropEarly()
		err = each(p)
		p.Release()
		if err != nil {
			return err
		}
	}
}
