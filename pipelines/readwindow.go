package pipelines

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// readWindow reads what is still to be read of a window, piece by piece, into
// the checkpoint. Where a result moved within the window meanwhile, all of it is
// read again.
func (f *formRun) readWindow(ctx context.Context, w *windowRun) error {
	if err := f.readGaps(ctx, w); err != nil {
		return err
	}
	if w.ids != nil && w.holdsTwice() {
		f.log.LogAttrs(ctx, slog.LevelInfo, "window is read again", slog.String("window", w.name()), slog.String("reason", "a result moved within it"))
		if err := f.forget(ctx, w); err != nil {
			return err
		}
		return f.readGaps(ctx, w)
	}
	return nil
}

func (f *formRun) readGaps(ctx context.Context, w *windowRun) error {
	w.tries++
	if w.undated != nil {
		p, err := f.newPieces(ctx, w, gap{after: checkpoint.First})
		if err == nil {
			err = p.readUndated(ctx)
		}
		if err := p.close(ctx, err); err != nil {
			return err
		}
	} else {
		for _, g := range gaps(w.planned.Window, w.chains) {
			p, err := f.newPieces(ctx, w, g)
			if err == nil {
				err = p.readPages(ctx)
			}
			if err := p.close(ctx, err); err != nil {
				return err
			}
		}
	}
	f.mu.Lock()
	f.reads++
	w.done, w.number = true, f.reads
	f.mu.Unlock()
	f.at(pointRead)
	return nil
}

// forget removes what was read of a window from the checkpoint.
func (f *formRun) forget(ctx context.Context, w *windowRun) error {
	pieces := w.pieces()
	n, rejected := w.extracted(), w.stats.Rejected
	f.mu.Lock()
	f.rejects -= rejected
	w.reading, w.done = reading{}, false
	f.mu.Unlock()
	if n > 0 {
		f.progress(-n, false)
	}
	return f.checkpoint.Forget(ctx, pieces...)
}

// pieces reads a gap of a window as one piece after the other.
type pieces struct {
	f   *formRun
	w   *windowRun
	gap gap

	// The piece that is under way.
	flattener *transform.Flattener
	rows      *checkpoint.Writer
	piece     checkpoint.Piece
	began     time.Time // by the process's own clock, which only goes forward
	results   int
	last      int64 // the highest id so far
}

func (f *formRun) newPieces(ctx context.Context, w *windowRun, g gap) (*pieces, error) {
	p := &pieces{f: f, w: w, gap: g, last: g.after}
	if err := p.begin(); err != nil {
		return p, err
	}
	if len(w.head) > 0 { // of which the time is not known
		p.piece.ReadAt = f.report.StartedAt
	}
	return p, ctx.Err()
}

// begin begins a piece.
func (p *pieces) begin() (err error) {
	f := p.f
	p.rows, p.results, p.began = f.checkpoint.Write(), 0, time.Now()
	p.piece = checkpoint.Piece{Window: p.gap.window, After: p.last, ReadAt: f.o.Now(), Run: f.o.RunID, IDs: roaring64.New()}
	p.flattener, err = transform.NewFlattener(f.schema, transform.Options{
		Zone: f.def.Source.Zone, Labels: f.def.Labels, Headings: f.headings, Emit: p.rows.Add,
		Reject: func(r transform.Reject) error {
			p.piece.Rejects = append(p.piece.Rejects, r)
			return nil
		},
	})
	return err
}

// close ends the reading of the gap; err is what ended it early.
func (p *pieces) close(ctx context.Context, err error) error {
	if p.flattener == nil {
		return err
	}
	if err == nil {
		err = p.end(ctx, checkpoint.Last)
	}
	p.flattener.Release()
	return err
}

// end writes the piece that is under way, which holds all results up to an id.
func (p *pieces) end(ctx context.Context, through int64) error {
	if err := p.flattener.Flush(); err != nil {
		return p.failed(err)
	}
	p.piece.Through = through
	p.piece.Stats = p.flattener.Stats()
	p.piece.IDs.RunOptimize()
	p.f.at(pointPiece)
	piece, err := p.rows.End(ctx, p.piece, p.w.undated != nil || p.w.older != nil)
	if err != nil {
		return p.failed(err)
	}
	if err := p.f.take(p.w, piece); err != nil {
		return err
	}
	return p.f.checkRejects()
}

// take makes a piece one of its window's reading. It fails where the windows
// together have added too many columns.
func (f *formRun) take(w *windowRun, p checkpoint.Piece) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.add(p)
	f.rejects += p.Stats.Rejected
	if len(p.Stats.Added) == 0 {
		return nil
	}
	if f.added == nil {
		f.added = map[schemas.Source]bool{}
	}
	for _, c := range p.Stats.Added {
		f.added[c.From] = true
	}
	return f.bound()
}

// failed names the window of an error. Those of the reader name it themselves.
func (p *pieces) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("window %s: %w", p.w.name(), err)
}

func (p *pieces) readUndated(ctx context.Context) error {
	dated, err := p.f.datedIDs(ctx, p.w)
	if err != nil {
		return err
	}
	// A service that ignores fs_max_id gives a result with every range below it.
	known := func(id int64) bool {
		return dated(id) || p.piece.IDs.Contains(uint64(id)) || p.w.ids != nil && p.w.ids.Contains(uint64(id)) //nolint:gosec // ids are not negative
	}
	page := func(page *page.Page) error {
		if err := p.page(page); err != nil {
			return err
		}
		return p.cut(ctx, true)
	}
	for _, u := range p.w.undated.ranges {
		// What was undated when it was counted may have a date by now.
		u.Mixed = true
		if err := p.f.reader.Undated(ctx, u, known, page); err != nil {
			return fmt.Errorf("results without a date: %w", err)
		}
	}
	return nil
}

func (p *pieces) readPages(ctx context.Context) error {
	w := p.w
	head, source := w.head, w.pages
	w.head, w.pages = nil, nil
	if source == nil {
		count := int64(extract.Unknown)
		if p.gap == (gap{w.planned.Window, checkpoint.First}) && w.tries == 1 {
			count = p.f.usable(w.planned.Count)
		}
		source = p.f.reader.Window(p.gap.window, extract.IDRange{Min: p.gap.after + 1}, count)
	}
	defer source.Close()
	next := func() (*page.Page, error) {
		if len(head) > 0 {
			page := head[0]
			head = head[1:]
			return page, nil
		}
		return source.Next(ctx)
	}
	for {
		page, err := next()
		if err != nil || page == nil {
			return err
		}
		err = p.page(page)
		page.Release()
		if err == nil {
			err = p.cut(ctx, !source.Ascending())
		}
		if err != nil {
			return err
		}
	}
}

// keepHead writes the pages that a window's reading began with to the
// checkpoint, and asks for no more.
func (f *formRun) keepHead(ctx context.Context, w *windowRun) error {
	p, err := f.newPieces(ctx, w, gap{w.planned.Window, checkpoint.First})
	if err != nil {
		return err
	}
	defer p.flattener.Release()
	for _, page := range w.head {
		if err := p.page(page); err != nil {
			return err
		}
	}
	if w.pages.Ended() {
		return p.end(ctx, checkpoint.Last)
	}
	p.piece.Whole = !w.pages.Ascending()
	return p.end(ctx, p.last)
}

// cut ends a piece behind the page at hand where it is time for that. whole
// tells that nothing can follow on the piece but in this reading.
func (p *pieces) cut(ctx context.Context, whole bool) error {
	pace := p.f.checkpoint.Pace
	if p.results == 0 || p.results < pace.Results && time.Since(p.began) < pace.Every && p.rows.Bytes() < pace.Bytes {
		return nil
	}
	p.piece.Whole = whole
	if err := p.end(ctx, p.last); err != nil {
		return err
	}
	p.flattener.Release()
	return p.begin()
}

func (p *pieces) page(page *page.Page) error {
	for i := range page.Len() {
		id := page.ID(i)
		p.piece.IDs.Add(uint64(id)) //nolint:gosec // ids are not negative
		p.last = max(p.last, id)
	}
	p.results += page.Len()
	p.piece.Replaced += int64(page.Replaced)
	p.f.learnLabels(page.Headings)
	p.f.progress(int64(page.Len()), false)
	return p.failed(p.flattener.Append(page))
}

// usable is a count that says how many results a window gives: none does
// where a search or a view leaves results out.
func (f *formRun) usable(count int64) int64 {
	if f.filtered() {
		return extract.Unknown
	}
	return count
}

// learnLabels keeps the first headings that the service gives.
func (f *formRun) learnLabels(headings []page.Heading) {
	if len(headings) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.labels != nil {
		return
	}
	f.labels = map[string]string{}
	for _, h := range headings {
		f.labels[h.ID] = h.Label
	}
}
