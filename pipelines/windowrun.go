package pipelines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// windowRun is one window of a run and what was read of it.
type windowRun struct {
	planned extract.Planned
	older   *olderRange // that it belongs to; nil for the run's own range
	undated bool        // it stands for the results without a date, which lie in ranges
	ranges  []extract.UndatedRange
	only    *roaring64.Bitmap // undated: the results that it may hold; nil for any
	index   int
	// counts are the service's counts of the window so far: the planner's, if
	// it made one, and those of the verification.
	counts    []int64
	group     windowGroup
	disagreed int // times that the verification found it at odds with its count

	// The first window's beginning is read before the schema is known.
	head    []*page.Page
	pages   *extract.WindowReader
	done    bool      // read, or known to be empty
	readAt  int       // the number of its last reading in the run, 0 for none
	attempt string    // which run's number it is: of this one, or of one that it goes on with
	begunAt time.Time // when its last reading began
	tries   int

	segment  *segment
	stats    transform.Stats   // but for Seen, which is
	seen     packedSeen        // numbers of the run's dictionary
	ids      *roaring64.Bitmap // of rows and rejects
	rejects  []transform.Reject
	replaced int64
}

// windowGroup is windows that follow each other and that the planner counted
// as one.
type windowGroup struct {
	windows []*windowRun
	count   int64
}

// name shows the window to people.
func (w *windowRun) name() string {
	if w.undated {
		return undatedName
	}
	return w.planned.Window.String()
}

// extracted is how many results were read: rows and rejects.
func (w *windowRun) extracted() int64 { return w.stats.Rows + w.stats.Rejected }

// counted notes a count of the window.
func (w *windowRun) counted(n int64) { w.counts = append(w.counts, n) }

// plausible tells whether what was read lies between the window's counts.
// Where those differ, results come and go while they are read, and one that
// went is in neither count: so the counts may be missed by as many as they
// differ by. Where they agree there is no such excuse.
func (w *windowRun) plausible() bool { return plausible(w.counts, w.extracted()) }

func plausible(counts []int64, n int64) bool {
	if len(counts) == 0 {
		return false
	}
	least, most := slices.Min(counts), slices.Max(counts)
	return least-(most-least) <= n && n <= most+(most-least)
}

// rowIDs are the ids of the window's rows from one number up to another, of
// which there is at least one.
func (w *windowRun) rowIDs(from, to int64) *roaring64.Bitmap {
	ids := w.ids.Clone()
	for _, r := range w.rejects {
		ids.Remove(uint64(r.ResultID)) //nolint:gosec // ids are not negative
	}
	if from == 0 && to == w.stats.Rows {
		return ids
	}
	// Rows are written by ascending id, so the n-th row has the n-th id.
	least, _ := ids.Select(uint64(from))  //nolint:gosec // counts are not negative
	most, _ := ids.Select(uint64(to - 1)) //nolint:gosec // as above
	between := roaring64.New()
	between.AddRange(least, most+1)
	between.And(ids)
	return between
}

// readWindow reads a window from its beginning, or on from its head, and puts
// what came into the spool. What an earlier reading left is replaced.
func (f *formRun) readWindow(ctx context.Context, w *windowRun) error {
	r := &windowReading{f: f, begunAt: f.o.Now(), ids: roaring64.New(), segment: f.spool.segment(w.index, w.tries)}
	if len(w.head) > 0 { // of which the time is not known
		r.begunAt = f.report.StartedAt
	}
	w.tries++
	if n := w.extracted(); n > 0 { // of an earlier reading
		f.progress(-n, false)
	}
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
	r.ids.RunOptimize()
	before := w.segment
	if err = f.take(w, r); err == nil {
		err = f.note(w)
	}
	if before != nil {
		before.remove()
	}
	return err
}

// take makes a reading that of its window. It fails where the windows together
// have added too many columns.
func (f *formRun) take(w *windowRun, r *windowReading) error {
	stats := r.flattener.Stats()
	seen := f.seen.pack(stats.Seen)
	stats.Seen = nil
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	f.rejects += stats.Rejected - w.stats.Rejected
	w.segment, w.stats, w.seen, w.ids, w.rejects, w.replaced = r.segment, stats, seen, r.ids, r.rejects, r.replaced
	w.done, w.readAt, w.attempt, w.begunAt = true, f.reads, f.o.RunID, r.begunAt
	if len(stats.Added) == 0 {
		return nil
	}
	if f.added == nil {
		f.added = map[schemas.Source]bool{}
	}
	for _, c := range stats.Added {
		f.added[c.From] = true
	}
	return f.bound()
}

// windowReading is one reading of a window.
type windowReading struct {
	f         *formRun
	name      string
	begunAt   time.Time
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
	r.name = w.name()
	var err error
	if w.undated {
		err = r.readUndated(ctx, w)
	} else {
		err = r.readPages(ctx, w)
	}
	if err != nil {
		return err
	}
	flushed, closed := r.flattener.Flush(), r.segment.close()
	return r.failed(cmp.Or(flushed, closed)) // they tell of one cause
}

// failed names the window of an error. Those of the reader name it themselves.
func (r *windowReading) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("window %s: %w", r.name, err)
}

func (r *windowReading) readUndated(ctx context.Context, w *windowRun) error {
	dated, err := r.f.datedIDs(ctx, w)
	if err != nil {
		return err
	}
	// A service that ignores fs_max_id gives a result with every range below it.
	known := func(id int64) bool { return dated(id) || r.ids.Contains(uint64(id)) } //nolint:gosec // ids are not negative
	for _, u := range w.ranges {
		// What was undated when it was counted may have a date by now.
		u.Mixed = true
		if err := r.f.reader.Undated(ctx, u, known, r.page); err != nil {
			return fmt.Errorf("results without a date: %w", err)
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

func (r *windowReading) page(p *page.Page) error {
	for i := range p.Len() {
		r.ids.Add(uint64(p.ID(i))) //nolint:gosec // ids are not negative
	}
	r.replaced += int64(p.Replaced)
	r.f.learnLabels(p.Headings)
	r.f.progress(int64(p.Len()), false)
	return r.failed(r.flattener.Append(p))
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
