package reading

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
)

// Undated is what the window of the results without a date holds.
type Undated struct {
	Ranges []extract.UndatedRange
	Only   *roaring64.Bitmap // the results that it may hold; nil for any
	// Dated gives the ids that the windows of time hold now.
	Dated func() *roaring64.Bitmap
	Read  extract.Window // what those windows span
}

// datedIDs tells which results are not among the undated. These are the ones that
// the windows of time gave: a service may give undated results where only an upper
// bound is asked for. Where ranges are mixed, they are also those dated outside the
// run's range. Where the window is read again every range may be mixed, because
// results get their date when they are finished.
func (r *Reader) datedIDs(ctx context.Context, w *Window) (func(id int64) bool, error) {
	r.mu.Lock()
	dated := w.Undated.Dated()
	r.mu.Unlock()
	known := func(id int64) bool { return dated.Contains(uint64(id)) } //nolint:gosec // ids are not negative
	if only := w.Undated.Only; only != nil {
		return func(id int64) bool { return known(id) || !only.Contains(uint64(id)) }, nil //nolint:gosec // as above
	}
	mixed := w.Tries > 1
	for _, u := range w.Undated.Ranges {
		mixed = mixed || u.Mixed
	}
	if !mixed {
		return known, nil
	}
	if read := w.Undated.Read; !read.From.IsZero() {
		// The parts that are kept do not tell which results lie before the run's
		// range: a late result is in none of them.
		for _, u := range w.Undated.Ranges {
			if err := addIDs(ctx, r.Pages, dated, extract.Window{From: extract.Epoch, To: read.From}, u.IDs); err != nil {
				return nil, err
			}
		}
	}
	return known, addIDs(ctx, r.Pages, dated, extract.Window{From: w.Undated.Read.To}, extract.IDRange{})
}

// addIDs adds the ids of a span's results to a set.
func addIDs(ctx context.Context, pages *extract.Reader, set *roaring64.Bitmap, span extract.Window, ids extract.IDRange) error {
	return pages.Each(ctx, span, ids, func(p *page.Page) error {
		for _, id := range p.IDs() {
			set.Add(uint64(id)) //nolint:gosec // ids are not negative
		}
		return nil
	})
}
