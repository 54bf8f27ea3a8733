package reading

import (
	"context"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load/idset"
)

// Undated describes the window of the results without a date.
type Undated struct {
	Ranges []extract.UndatedRange
	Only   idset.Set      // ids of the results that the window may hold; nil for any
	Dated  idset.Set      // ids that the run's windows with a date hold when this one is read
	Read   extract.Window // the span of the windows with a date
	// LeftOut are ids that were left out because the results seem to have a date in Read,
	// though no window with a date held them. They came while those windows were read, so
	// that those are read again. It is nil where dates are not looked at.
	LeftOut idset.Set
	Started bool // results that were begun in Read and not finished seem to have a date, too
}

// seemDated returns those results of a page that have a date of submission in a span, by
// which services most likely filter (service-notes.md). With started it also returns results
// without a date of submission that were begun in the span.
func seemDated(p *page.Page, in extract.Window, started bool) idset.Set {
	var dated idset.Builder
	for i := range p.Len() {
		var finish, start []byte
		for _, c := range p.Cells(i) {
			f := p.Fields[c.Field]
			switch {
			case f.Kind != page.KindMeta || c.Values == 0:
			case f.ID == page.MetaFinish:
				finish = p.Value(c, 0)
			case f.ID == page.MetaStart:
				start = p.Value(c, 0)
			}
		}
		if started && len(finish) == 0 {
			finish = start
		}
		at, err := time.Parse(extract.WireTime, string(finish))
		if err == nil && !at.Before(in.From) && at.Before(in.To) {
			dated.Add(p.ID(i))
		}
	}
	return dated.Set()
}

// datedIDs returns a function that tells whether the window w of results without a date must
// leave out a result. It must if another window of the run holds the result: a query with only
// an upper bound may also return undated results. If a range of ids is mixed, w also
// leaves out results dated outside the run's range. If w is read again, every range may be
// mixed, because results get a date when they are finished.
func (r *Reader) datedIDs(ctx context.Context, w *Window) (func(id int64) bool, error) {
	dated := w.Undated.Dated
	known := func(id int64) bool { return dated.Contains(id) }
	if only := w.Undated.Only; only != nil {
		return func(id int64) bool { return known(id) || !only.Contains(id) }, nil
	}
	mixed := w.Tries > 1
	for _, u := range w.Undated.Ranges {
		mixed = mixed || u.Mixed
	}
	if !mixed {
		return known, nil
	}
	if read := w.Undated.Read; !read.From.IsZero() {
		// Parts that are kept cannot show which results lie before the run's
		// range, because they lack late results.
		for _, u := range w.Undated.Ranges {
			before, err := IDsIn(ctx, r.Pages, extract.Window{From: extract.Epoch, To: read.From}, u.IDs)
			if err != nil {
				return nil, err
			}
			dated = dated.Union(before)
		}
	}
	after, err := IDsIn(ctx, r.Pages, extract.Window{From: w.Undated.Read.To}, extract.IDRange{})
	dated = dated.Union(after)
	return known, err
}

// IDsIn asks the service for the ids of the results in a span of time that are in the range
// ids.
func IDsIn(ctx context.Context, pages *extract.Reader, span extract.Window, ids extract.IDRange) (idset.Set, error) {
	var found idset.Builder
	err := pages.Each(ctx, span, ids, func(p *page.Page) error {
		for _, id := range p.IDs() {
			found.Add(id)
		}
		return nil
	})
	return found.Set(), err
}
