package reading

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// A schema is inferred from the first pages of the first windows. The other
// windows are read after that. Only the plan decides which windows are the first,
// so equal results give an equal schema.
const (
	samplePages = 5
	// SampleResults is how many results a schema is inferred from, as far as
	// counts show it.
	SampleResults = 500
	sampleWindows = 64
)

// Start holds what is known before the first window is read.
type Start struct {
	Plan      *extract.Plan
	Windows   []*Window
	Read      extract.Window
	Known     []schemas.Column      // columns in the manifests of earlier runs
	Names     schemas.Names         // names that inferred columns keep
	Inherited *checkpoint.Inherited // what an earlier run read; nil if nothing can be taken over
}

// ChooseSchema decides which columns the rows begin with. It takes them from the
// definition, otherwise from the resumed checkpoint, otherwise from earlier manifests. If
// none of these has columns, it infers them from the headings and the first pages. The error
// is that of a request, or a *transform.ColumnsError.
func (r *Reader) ChooseSchema(ctx context.Context, s Start) error {
	switch {
	case r.Def.Schema != nil:
		declared := *r.Def.Schema
		if declared.Adds() {
			declared.Columns = schemas.Merge(declared.Columns, s.Known) // what earlier runs added stays
		}
		r.Schema = &declared
		return r.checkColumns()
	case s.Inherited != nil && len(s.Inherited.Chains) > 0 && len(s.Inherited.Inferred) > 0:
		// The columns that the earlier run inferred: the pieces taken over have them.
		columns, err := checkpoint.DecodeColumns(s.Inherited.Inferred)
		r.Schema, r.Headings = &schemas.Schema{Name: r.Name, Columns: columns}, s.Inherited.Headings
		r.learn(s.Inherited.Headings)
		return err
	case len(s.Known) > 0:
		r.Schema = &schemas.Schema{Name: r.Name, Columns: s.Known}
		return r.checkColumns()
	}
	pages, err := r.samplePages(ctx, s)
	if err != nil {
		return errors.Join(err, r.salvage(ctx, s, pages, err))
	}
	if err := r.infer(pages, s.Names); err != nil {
		return err
	}
	if len(pages) == 1 && pages[0].Len() == 0 {
		pages[0].Release()
	}
	return nil
}

func (r *Reader) infer(pages []*page.Page, names schemas.Names) error {
	r.Schema = transform.Infer(r.Name, pages, r.Def.Names)
	names.Keep(r.Schema.Columns)
	if err := r.checkColumns(); err != nil {
		return err
	}
	// All pages that have headings have the same ones.
	if at := slices.IndexFunc(pages, func(p *page.Page) bool { return len(p.Headings) > 0 }); at >= 0 {
		r.Headings = slices.Clone(pages[at].Headings)
	}
	return nil
}

// salvageResults is how many results suffice to infer a schema if the run ends
// before its sample is complete. The next run then need not request these results again.
const salvageResults = 100

// salvage keeps what was read before the sample was complete, so that the next
// run can resume from it. cause is the error that ends the run.
func (r *Reader) salvage(ctx context.Context, s Start, pages []*page.Page, cause error) error {
	results := 0
	for _, p := range pages {
		results += p.Len()
	}
	if !r.Keeps(cause) || results < salvageResults {
		return nil
	}
	if err := r.infer(pages, s.Names); err != nil {
		return err
	}
	ctx, cancel := load.Lingering(ctx, load.Grace) // no requests follow
	defer cancel()
	if err := r.Begin(ctx); err != nil {
		return err
	}
	for _, w := range s.Windows {
		for _, st := range w.begun {
			if len(st.head) == 0 {
				continue
			}
			if err := r.keepHead(ctx, st); err != nil {
				return err
			}
		}
	}
	return nil
}

// samplePages reads the first pages of the first windows that hold results, as a sample for
// the schema. The rest is read later. If the range has no results, it returns one page that
// has only headings.
func (f Form) samplePages(ctx context.Context, s Start) ([]*page.Page, error) {
	rest := slices.DeleteFunc(slices.Clone(s.Windows), func(w *Window) bool { return w.Planned.Count == 0 })
	for len(rest) > 0 {
		n := sampleSize(s.Plan, rest)
		pages, err := f.readHeads(ctx, rest[:n])
		if err != nil || len(pages) > 0 {
			return pages, err
		}
		rest = rest[n:]
	}
	query := Query(f.Def.Extract)
	query.Window, query.Headings, query.Limit = s.Read, true, 1
	p, err := f.Client.Results(ctx, f.Name, query)
	if err != nil {
		return nil, err
	}
	p.Filter(func(int64) bool { return false })
	return []*page.Page{p}, nil
}

// sampleSize returns how many of the first windows suffice for a sample.
func sampleSize(plan *extract.Plan, windows []*Window) int {
	guess := int64(windowGuess)
	if plan.Total != extract.Unknown {
		guess = plan.Total / int64(len(plan.Windows))
	}
	var results int64
	for i, w := range windows {
		if w.Planned.Count == extract.Unknown {
			results += guess
		} else {
			results += w.Planned.Count
		}
		if results >= SampleResults || i+1 == sampleWindows {
			return i + 1
		}
	}
	return len(windows)
}

// windowGuess is the assumed number of results in a window that was not counted.
const windowGuess = 50

// readHeads reads and returns the first pages of each window. Reader.Read reads the
// rest. A window that shall give several pages is divided into stretches, whose first
// pages are read side by side.
func (f Form) readHeads(ctx context.Context, windows []*Window) ([]*page.Page, error) {
	most := max(1, samplePages/len(windows))
	for _, w := range windows {
		st := &stretch{w: w, gap: wholeOf(w.Planned.Window), expected: w.Planned.Count}
		st.source = f.source(st)
		w.begun = []*stretch{st}
	}
	err := f.beginAll(ctx, windows, 1)
	for _, w := range windows {
		if st := w.begun[0]; err == nil && len(st.head) < most && !st.source.Ended() {
			w.begun = f.spread(st, most-len(st.head))
		}
	}
	if err == nil {
		err = f.beginAll(ctx, windows, most)
	}
	var pages []*page.Page
	for _, w := range windows {
		for _, st := range w.begun {
			pages = append(pages, st.head...)
		}
	}
	return pages, err
}

// beginAll reads up to `most` pages of each window. Of a window that is divided into several
// stretches it reads the first page of each stretch.
func (f Form) beginAll(ctx context.Context, windows []*Window, most int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cap(f.Slots))
	for _, w := range windows {
		each := most
		if len(w.begun) > 1 {
			each = 1
		}
		for _, st := range w.begun {
			group.Go(func() error {
				return f.Slots.Hold(ctx, func() error { return st.begin(ctx, each) })
			})
		}
	}
	return group.Wait()
}

// begin reads the first pages of a stretch, up to `most`.
func (st *stretch) begin(ctx context.Context, most int) error {
	for len(st.head) < most {
		p, err := st.source.Next(ctx)
		if err != nil || p == nil {
			return err
		}
		st.head = append(st.head, p)
	}
	return nil
}

// spread divides a stretch whose first pages were read: it splits off up to `most` stretches
// and returns all. Each should hold about as many results, by the window's count and by how
// dense the ids are. So equal results are divided in the same way in each run.
func (f Form) spread(st *stretch, most int) []*stretch {
	dense := &stretch{gap: st.gap, expected: st.expected, divisible: true}
	for _, p := range st.head {
		dense.note(p)
	}
	rest, ids := dense.rest()
	n := min(int64(most), rest/(leastShared*f.PageSize()))
	if n == 0 || ids <= n {
		return []*stretch{st}
	}
	list, whole := []*stretch{st}, st.gap
	for k := range n {
		up := &stretch{w: st.w, gap: whole, expected: rest / (n + 1)}
		up.gap.After = dense.last + ids*(k+1)/(n+1)
		list[k].gap.Through = up.gap.After
		list = append(list, up)
	}
	st.expected = dense.read + rest - n*(rest/(n+1))
	st.source.Until(st.gap.Through)
	for _, up := range list[1:] {
		up.source = f.source(up)
	}
	return list
}
