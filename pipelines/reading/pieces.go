package reading

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// These are the points of a reading at which Form.At is called.
const (
	PointPiece = "piece" // a piece is read, and about to be written to the checkpoint
	PointRead  = "read"  // a window is read, and all its pieces are in the checkpoint
)

// readStretch reads a stretch of a window. Meanwhile other goroutines may take the upper part
// of the stretch through others.
func (r *Reader) readStretch(ctx context.Context, st *stretch, others *shared) error {
	p, err := newPieces(ctx, r, st, others)
	if err == nil && st.w.Undated != nil {
		err = p.readUndated(ctx)
	} else if err == nil {
		err = p.readPages(ctx)
	}
	return p.close(ctx, err)
}

// isRead notes that a window is read completely: it sums the pieces and marks the window as
// done.
func (r *Reader) isRead(w *Window) {
	r.mu.Lock()
	// Sums are made in the order of ids, in whatever order the pieces were read.
	w.Reading = Reading{Chains: w.Chains, Taken: w.Taken, IDs: w.IDs}
	for _, p := range w.Pieces() {
		w.sum(p)
	}
	w.Done, w.countsBefore = true, len(w.Counts)
	r.numbered(w)
	r.mu.Unlock()
	r.At(PointRead)
}

// pieces reads one stretch of a window and divides it into pieces.
type pieces struct {
	r      *Reader
	w      *Window
	st     *stretch
	others *shared

	headings []page.Heading // labels in the first page of the stretch
	// The piece that is being read.
	flattener *transform.Flattener
	rows      *checkpoint.Writer
	piece     checkpoint.Piece
	ids       idset.Builder // the ids of the piece's results
	began     time.Time     // start of the piece by the process's own clock, never set back
	results   int
	last      int64                     // the highest id received so far
	asked     atomic.Pointer[time.Time] // when the last page was requested
}

func newPieces(ctx context.Context, r *Reader, st *stretch, others *shared) (*pieces, error) {
	p := &pieces{r: r, w: st.w, st: st, others: others, last: st.gap.After}
	if err := p.begin(); err != nil {
		return p, err
	}
	if len(st.head) > 0 { // the first pages of the stretch were requested after r.Began
		p.piece.ReadAt = r.Began
	}
	return p, ctx.Err()
}

// begin starts a new piece.
func (p *pieces) begin() (err error) {
	r := p.r
	p.rows, p.results, p.began, p.ids = r.Checkpoint.Write(), 0, time.Now(), idset.Builder{}
	p.piece = checkpoint.Piece{
		Window: p.st.gap.window, After: p.last, Passing: !p.w.OfRange(),
		ReadAt: r.Now().UTC(), Run: r.RunID,
	}
	if asked := p.asked.Load(); asked != nil { // the first page of a further piece is under way
		p.piece.ReadAt = *asked
	}
	p.flattener, err = transform.NewFlattener(r.Schema, transform.Options{
		Zone: r.Def.Source.Zone, Naming: r.Def.Names, Headings: slices.Concat(r.Headings, p.headings), Mem: r.Checkpoint.Mem, Emit: p.rows.Add,
		Reject: func(reject transform.Reject) error {
			p.piece.Rejects = append(p.piece.Rejects, reject)
			return nil
		},
	})
	return err
}

// close ends the reading of the stretch. err is the error that ended it early, or nil.
// After an error, close keeps what was read if the next run may take it over.
func (p *pieces) close(ctx context.Context, err error) error {
	if p.flattener == nil {
		return err
	}
	switch {
	case err == nil && p.st.open:
		p.piece.Open = true
		err = p.end(ctx, p.last)
	case err == nil:
		err = p.end(ctx, p.st.gap.Through)
	case p.results > 0 && p.w.Undated == nil && p.r.Keeps(err):
		lingering, cancel := load.Lingering(ctx, load.Grace)
		defer cancel()
		if lost := p.end(lingering, p.last); lost != nil {
			p.r.Log.LogAttrs(ctx, slog.LevelWarn, "what the run read last could not be kept, so the next run reads it again", slog.String("error", lost.Error()))
		}
	}
	p.flattener.Release()
	return err
}

// end writes the piece that is being read. The piece holds all results up to the id through.
func (p *pieces) end(ctx context.Context, through int64) error {
	if err := p.flattener.Flush(); err != nil {
		return p.failed(err)
	}
	p.piece.Through = through
	p.piece.Stats = p.flattener.Stats()
	p.piece.IDs = p.ids.Set()
	p.r.At(PointPiece)
	piece, err := p.rows.End(ctx, p.piece)
	if err != nil {
		return p.failed(err)
	}
	if err := p.r.Take(p.w, piece); err != nil {
		return err
	}
	return p.r.checkRejects()
}

// Take adds a piece to the reading of a window. It returns an error if all
// windows together have added too many columns.
func (r *Reader) Take(w *Window, p checkpoint.Piece) error {
	r.learn(p.Headings)
	r.mu.Lock()
	defer r.mu.Unlock()
	w.add(p)
	r.rejects.count(p, 1)
	if len(p.Stats.Added) == 0 {
		return nil
	}
	if r.added == nil {
		r.added = map[schemas.Source]bool{}
	}
	for _, c := range p.Stats.Added {
		r.added[c.From] = true
	}
	return r.checkColumns()
}

// failed adds the window's name to an error. Errors of extract.Reader already
// have that name.
func (p *pieces) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("window %s: %w", p.w.Name(), err)
}

func (p *pieces) readUndated(ctx context.Context) error {
	dated, err := p.r.datedIDs(ctx, p.w)
	if err != nil {
		return err
	}
	// If the service ignores fs_max_id, every range below a result returns it again.
	page := func(page *page.Page) error {
		here := p.ids.Set()
		page.Filter(func(id int64) bool { return !dated(id) && !here.Contains(id) && !p.w.IDs.Contains(id) })
		if leftOut := p.w.Undated.LeftOut; leftOut != nil {
			dated := seemDated(page, p.w.Undated.Read, p.w.Undated.Started)
			page.Filter(func(id int64) bool { return !dated.Contains(id) })
			p.w.Undated.LeftOut = leftOut.Union(dated)
		}
		if err := p.page(page); err != nil {
			return err
		}
		return p.cut(ctx)
	}
	for _, u := range p.w.Undated.Ranges {
		if err := p.r.Pages.Each(ctx, extract.Window{}, u.IDs, page); err != nil {
			return fmt.Errorf("results without a date: %w", err)
		}
	}
	return nil
}

func (p *pieces) readPages(ctx context.Context) error {
	head, source := p.st.head, p.st.source
	if source == nil {
		source = p.r.source(p.st)
	}
	err := ahead(ctx, func(ctx context.Context) (next *page.Page, err error) {
		if len(head) > 0 {
			next, head = head[0], head[1:]
		} else {
			if through := p.others.lastToRead(p.st); through != checkpoint.Last {
				source.Until(through)
			}
			now := p.r.Now().UTC()
			p.asked.Store(&now)
			if next, err = source.Next(ctx); err != nil {
				return next, err
			}
		}
		p.others.received(p.st, next, len(head) == 0 && source.Ended())
		return next, nil
	}, func(next *page.Page) error {
		defer next.Release()
		if err := p.page(next); err != nil {
			return err
		}
		return p.cut(ctx)
	})
	p.st.open = source.Open()
	return err
}

// source returns a reader of a stretch's pages. If the window was counted, the reader knows
// when it has all results, and saves the last request.
func (f Form) source(st *stretch) *extract.WindowReader {
	w, count := st.w, int64(extract.Unknown)
	whole := st.gap == wholeOf(w.Planned.Window)
	uncompared := f.Filtered() || !f.Def.Extract.Verify
	// The count of a window that is read again is older than the change that made it wrong.
	stale := uncompared && w.Tries > 1
	if whole && !st.tail && !stale {
		count = w.counted()
	}
	source := f.Pages.Window(st.gap.window, st.gap.ids(), count)
	if uncompared {
		source.Uncompared()
	}
	if st.tail {
		source.DoubtEnd()
	} else if !stale && count == extract.Unknown && (w.counted() != extract.Unknown || w.inGroup()) {
		source.CountedTogether()
	}
	return source
}

// keepHead writes the first pages of a stretch, which are already read, to the
// checkpoint. It requests no more pages.
func (r *Reader) keepHead(ctx context.Context, st *stretch) error {
	p, err := newPieces(ctx, r, st, nil)
	if err != nil {
		return err
	}
	defer p.flattener.Release()
	for _, page := range st.head {
		if err := p.page(page); err != nil {
			return err
		}
	}
	if st.source.Ended() && !st.source.Open() {
		return p.end(ctx, st.gap.Through)
	}
	p.piece.Open = st.source.Open()
	return p.end(ctx, p.last)
}

// cut ends the piece after the current page if it has reached a limit of the checkpoint's Pace,
// and begins a new piece.
func (p *pieces) cut(ctx context.Context) error {
	pace := p.r.Checkpoint.Pace
	if p.results == 0 || p.results < pace.Results && time.Since(p.began) < pace.Every && p.rows.Bytes() < pace.Bytes {
		return nil
	}
	if err := p.end(ctx, p.last); err != nil {
		return err
	}
	p.flattener.Release()
	return p.begin()
}

// page adds a page to the piece, without the results that belong before the window. The piece
// covers the ids of these results too, so that they are not requested again.
func (p *pieces) page(page *page.Page) error {
	if n := page.Len(); n > 0 {
		p.last = max(p.last, page.ID(n-1))
	}
	// Bounds coarser than dates give the results of a second to two windows.
	if view := p.r.Def.Extract.View; view != "" && p.r.CoarseBounds() && p.w.Planned.Window != (extract.Window{}) && p.r.Pages.HidesDates() {
		return &definition.Fault{
			Code: 78, Text: fmt.Sprintf("view %s does not show when results were finished (date_finish), and with API v2 formetl needs that to divide them by date", view),
			Cure: "add the column date_finish to the view; or leave out the view; or write all results to single files, without from and to, which needs no dates",
		}
	}
	page.DropEarly()
	for i := range page.Len() {
		p.ids.Add(page.ID(i))
	}
	p.results += page.Len()
	p.piece.Replaced += int64(page.Replaced)
	if p.r.learn(page.Headings); p.piece.Headings == nil {
		p.piece.Headings = slices.Clone(page.Headings)
		if p.headings == nil {
			p.headings = p.piece.Headings
		}
	}
	p.r.Progress(int64(page.Len()))
	return p.failed(p.flattener.Append(page))
}

// ahead calls use with each page that next returns. It asks for a page while use
// works on the one before, so that at most two pages are kept. It returns the
// first error, and only after the last call of next has ended.
func ahead(ctx context.Context, next func(context.Context) (*page.Page, error), use func(*page.Page) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	pages := make(chan *page.Page)
	var failed error // the error of next; it is set before pages is closed
	go func() {
		defer close(pages)
		for {
			p, err := next(ctx)
			if err != nil || p == nil {
				failed = err
				return
			}
			select {
			case pages <- p:
			case <-ctx.Done():
				p.Release()
				failed = context.Cause(ctx)
				return
			}
		}
	}()
	for p := range pages {
		if err != nil {
			p.Release()
		} else if err = use(p); err != nil {
			stop()
		}
	}
	stop()
	if err == nil {
		err = failed
	}
	return err
}

// Stats returns the sums of the statistics of windows, added in order of time.
// So the order of added columns does not depend on which window was read first.
// Stats reads the records of all pieces from the checkpoint.
func Stats(ctx context.Context, c *checkpoint.Checkpoint, windows []*Window) (transform.Stats, error) {
	sum := Counted(windows)
	for _, w := range windows {
		for _, p := range w.Pieces() {
			seen, err := c.Seen(ctx, p)
			if err != nil {
				return sum, err
			}
			sum.Add(transform.Stats{Seen: seen})
		}
	}
	return sum, nil
}

// Counted returns the same sums as Stats, but without Seen, and so reads nothing from the
// checkpoint.
func Counted(windows []*Window) (sum transform.Stats) {
	for _, w := range windows {
		sum.Add(w.Stats)
	}
	return sum
}

// Results returns how many results the windows hold, including rejected ones.
func Results(windows []*Window) (n int64) {
	for _, w := range windows {
		n += w.Results()
	}
	return n
}

// TakeOver gives each window the pieces of an earlier run that lie completely
// within it. It removes all other pieces from the checkpoint. It returns how many
// windows are complete then, and how many results were taken over.
func (r *Reader) TakeOver(ctx context.Context, windows []*Window, inherited *checkpoint.Inherited) (whole int, results int64, err error) {
	var all []checkpoint.Chain
	for _, w := range windows {
		chains := inherited.Within(w.Planned.Window)
		if len(chains) == 0 || w.Planned.Count == 0 {
			continue // a window counted as empty is not read, unless the verification finds results in it
		}
		if todo := (&Window{Planned: w.Planned, Reading: Reading{Chains: chains}}).unread(); len(todo)-1 > pagesSaved(chains, r.PageSize()) {
			continue // each gap costs a request, and all gaps cost more than the whole window
		}
		all = append(all, chains...)
		for _, c := range chains {
			for _, p := range c.Pieces {
				if err := r.Take(w, p); err != nil {
					return whole, results, err
				}
			}
		}
		w.Taken, w.Done = true, false
		results += w.Results()
	}
	taken := slices.DeleteFunc(slices.Clone(windows), func(w *Window) bool { return !w.Taken })
	slices.SortStableFunc(taken, func(a, b *Window) int { return a.ReadAt.Compare(b.ReadAt) })
	for _, w := range taken {
		w.Done = len(w.tails()) == 0 || w.inGroup() && len(w.unread()) == 0
	}
	for _, w := range taken {
		// A group of which nothing is left to read is compared with its count here.
		if w.inGroup() && !slices.ContainsFunc(w.Group.Windows, func(is *Window) bool { return !is.Done }) {
			w.Done = len(w.tails()) == 0
		}
		if w.Done {
			r.numbered(w)
			whole++
		}
	}
	return whole, results, r.Checkpoint.Keep(ctx, all)
}

// pagesSaved returns how many requests it would take to read chains again. size
// is how many results a full page holds.
func pagesSaved(chains []checkpoint.Chain, size int64) int {
	var results int64
	for _, c := range chains {
		results += c.Results()
	}
	return int(results / size)
}
