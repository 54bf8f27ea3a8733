package pipelines

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/transform"
)

// windowRun is one window of a run and what was read of it.
type windowRun struct {
	planned extract.Planned
	undated []extract.UndatedRange // not empty: the results without a date
	index   int

	// The first window's beginning is read before the schema is known.
	head   []*extract.Page
	pages  *extract.WindowReader
	done   bool
	readAt int // the number of its last reading in the run
	tries  int

	segment  *segment
	stats    transform.Stats
	ids      *roaring64.Bitmap // of rows and rejects
	rejects  []transform.Reject
	replaced int64
}

// isUndated tells whether the window stands for the results without a date.
func (w *windowRun) isUndated() bool { return len(w.undated) > 0 }

// name shows the window to people.
func (w *windowRun) name() string {
	if w.isUndated() {
		return "undated"
	}
	return w.planned.Window.String()
}

// extracted is how many results were read: rows and rejects.
func (w *windowRun) extracted() int64 { return w.stats.Rows + w.stats.Rejected }

// rowIDs are the smallest and the largest id among the window's rows.
func (w *windowRun) rowIDs() (lowest, highest int64) {
	ids := w.ids.Clone()
	for _, r := range w.rejects {
		ids.Remove(uint64(r.ResultID)) //nolint:gosec // ids are not negative
	}
	return int64(ids.Minimum()), int64(ids.Maximum()) //nolint:gosec // they were int64
}

// readWindow reads a window from its beginning, or on from its head, and puts
// what came into the spool. What an earlier reading left is replaced.
func (f *formRun) readWindow(ctx context.Context, w *windowRun) error {
	r := &windowReading{f: f, ids: roaring64.New(), segment: f.spool.segment(w.index, w.tries)}
	w.tries++
	flattener, err := transform.NewFlattener(f.schema, transform.Options{
		Zone: f.def.Source.Zone, Labels: f.def.Labels, Headings: f.headings,
		Emit:   r.segment.write,
		Reject: r.reject,
	})
	if err != nil {
		return err
	}
	defer flattener.Release()
	r.flattener = flattener
	if err := r.read(ctx, w); err != nil {
		r.segment.remove()
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.segment != nil {
		w.segment.remove()
	}
	f.reads++
	stats := flattener.Stats()
	f.rejects += stats.Rejected - w.stats.Rejected
	w.segment, w.stats, w.ids, w.rejects, w.replaced = r.segment, stats, r.ids, r.rejects, r.replaced
	w.done, w.readAt = true, f.reads
	return nil
}

// windowReading is one reading of a window.
type windowReading struct {
	f         *formRun
	flattener *transform.Flattener
	segment   *segment
	ids       *roaring64.Bitmap
	rejects   []transform.Reject
	replaced  int64
}

func (r *windowReading) reject(j transform.Reject) error {
	// Beyond the most that may be rejected the run fails, and only the count matters.
	if len(r.rejects) <= r.f.schema.MaxRejects {
		r.rejects = append(r.rejects, j)
	}
	return nil
}

func (r *windowReading) read(ctx context.Context, w *windowRun) error {
	var err error
	if w.isUndated() {
		err = r.readUndated(ctx, w.undated)
	} else {
		err = r.readPages(ctx, w)
	}
	if err == nil {
		err = r.flattener.Flush()
	}
	if err == nil {
		err = r.segment.close()
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("window %s: %w", w.name(), err)
	}
	return err
}

func (r *windowReading) readUndated(ctx context.Context, ranges []extract.UndatedRange) error {
	dated, err := r.f.datedIDs(ctx, ranges)
	if err != nil {
		return err
	}
	for _, u := range ranges {
		if err := r.f.reader.Undated(ctx, u, dated, r.page); err != nil {
			return err
		}
	}
	return nil
}

func (r *windowReading) readPages(ctx context.Context, w *windowRun) error {
	head, pages := w.head, w.pages
	w.head, w.pages = nil, nil
	if pages == nil {
		pages = r.f.reader.Window(w.planned.Window, extract.IDRange{}, r.f.usable(w.planned.Count))
	}
	defer pages.Close()
	for _, p := range head {
		err := r.page(p)
		p.Release()
		if err != nil {
			return err
		}
	}
	for {
		p, err := pages.Next(ctx)
		if err != nil || p == nil {
			return err
		}
		err = r.page(p)
		p.Release()
		if err != nil {
			return err
		}
	}
}

func (r *windowReading) page(p *extract.Page) error {
	for i := range p.Len() {
		r.ids.Add(uint64(p.ID(i))) //nolint:gosec // ids are not negative
	}
	r.replaced += int64(p.Replaced)
	r.f.learnLabels(p.Headings)
	r.f.progress(p.Len(), false)
	return r.flattener.Append(p)
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
func (f *formRun) learnLabels(headings []extract.Heading) {
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
