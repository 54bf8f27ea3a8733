package pipelines

import (
	"context"
	"errors"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// A schema is inferred from the pages that the first windows begin with. They
// are read anyway; the other windows wait for them. Which ones they are follows
// from the plan alone, so equal results give an equal schema.
const (
	samplePages   = 5
	sampleResults = 500 // as far as counts tell
	sampleWindows = 64
)

// settleSchema decides what columns the flatteners begin with: the
// definition's; else those of the checkpoint that is resumed from; else those of the
// manifest that an earlier run left; else what the headings and the first pages
// show.
func (f *formRun) settleSchema(ctx context.Context) error {
	switch {
	case f.def.Schema != nil:
		s := *f.def.Schema
		if s.Unknown == "" || s.Unknown == schemas.UnknownAdd {
			s.Columns = schemas.Merge(s.Columns, f.kept) // what earlier runs added stays
		}
		f.schema = &s
		return f.bound()
	case f.left != nil && len(f.left.Chains) > 0 && len(f.left.Inferred) > 0:
		return f.inheritSchema()
	case len(f.kept) > 0:
		f.schema = &schemas.Schema{Name: f.form, Columns: f.kept}
		return f.bound()
	}
	pages, err := f.samplePages(ctx)
	if err != nil {
		return errors.Join(err, f.salvage(ctx, pages, err))
	}
	if err := f.infer(pages); err != nil {
		return err
	}
	if len(pages) == 1 && pages[0].Len() == 0 {
		pages[0].Release()
	}
	return nil
}

// inheritSchema takes over what the run inferred whose checkpoint is resumed
// from: its rows have these columns.
func (f *formRun) inheritSchema() error {
	columns, err := checkpoint.DecodeColumns(f.left.Inferred)
	if err != nil {
		return err
	}
	f.schema, f.headings = &schemas.Schema{Name: f.form, Columns: columns}, f.left.Headings
	f.learnLabels(f.left.Headings)
	return nil
}

func (f *formRun) infer(pages []*page.Page) error {
	f.schema = transform.Infer(f.form, pages, f.def.Labels)
	if err := f.bound(); err != nil {
		return err
	}
	for _, p := range pages { // the first that has them: all say the same
		if len(p.Headings) > 0 {
			f.headings = slices.Clone(p.Headings)
			break
		}
	}
	return nil
}

// bound holds the columns of the schema, and those that windows have added to
// it, to max_columns. The caller holds f.mu where windows are read.
func (f *formRun) bound() error {
	if n, most := len(f.schema.Columns)+len(f.added), f.schema.MostColumns(); n > most {
		return &transform.ColumnsError{Columns: n, Max: most}
	}
	return nil
}

// salvageResults is how many results are a sample where the run ends before it
// has a whole one: better a schema of fewer than to ask for them again.
const salvageResults = 100

// salvage keeps what was read before the sample was complete, for the run that
// resumes from there.
func (f *formRun) salvage(ctx context.Context, pages []*page.Page, cause error) error {
	results := 0
	for _, p := range pages {
		results += p.Len()
	}
	if !keepsRead(cause) || results < salvageResults {
		return nil
	}
	if err := f.infer(pages); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // nothing is asked for
	if err := f.beginCheckpoint(ctx); err != nil {
		return err
	}
	for _, w := range f.windows {
		if len(w.head) == 0 {
			continue
		}
		if err := f.keepHead(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// samplePages reads the beginnings of the first windows that hold results.
// Their workers go on from there. A range without results gives one page with
// headings only.
func (f *formRun) samplePages(ctx context.Context) ([]*page.Page, error) {
	rest := make([]*windowRun, 0, len(f.windows))
	for _, w := range f.windows {
		if w.planned.Count != 0 {
			rest = append(rest, w)
		}
	}
	for len(rest) > 0 {
		n := f.sampleSize(rest)
		pages, err := f.readHeads(ctx, rest[:n])
		if err != nil || len(pages) > 0 {
			return pages, err
		}
		rest = rest[n:]
	}
	e := f.def.Extract
	p, err := f.client.Results(ctx, f.form, extract.ResultsQuery{
		Window: f.iv.Read, Search: e.Search, View: e.View, CustomLabels: e.CustomLabels, Headings: true, Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	p.Filter(func(int64) bool { return false })
	return []*page.Page{p}, nil
}

// sampleSize is how many of the windows hold enough results for a sample.
func (f *formRun) sampleSize(windows []*windowRun) int {
	guess := int64(pageGuess)
	if f.plan.Total != extract.Unknown {
		guess = f.plan.Total / int64(len(f.plan.Windows))
	}
	var results int64
	for i, w := range windows {
		if w.planned.Count == extract.Unknown {
			results += guess
		} else {
			results += w.planned.Count
		}
		if results >= sampleResults || i+1 == sampleWindows {
			return i + 1
		}
	}
	return len(windows)
}

// pageGuess is how many results an uncounted window is taken to hold.
const pageGuess = 50

// readHeads reads the first pages of each window and leaves the rest to its worker.
func (f *formRun) readHeads(ctx context.Context, windows []*windowRun) ([]*page.Page, error) {
	most := max(1, samplePages/len(windows))
	err := f.eachWindow(ctx, windows, func(ctx context.Context, w *windowRun) error {
		w.pages = f.reader.Window(w.planned.Window, extract.IDRange{}, f.usable(w.planned.Count))
		for len(w.head) < most {
			p, err := w.pages.Next(ctx)
			if err != nil || p == nil {
				return err
			}
			w.head = append(w.head, p)
		}
		return nil
	})
	var pages []*page.Page
	for _, w := range windows {
		pages = append(pages, w.head...)
	}
	return pages, err
}
