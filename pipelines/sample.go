package pipelines

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
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
// definition's; else those of the manifest that an earlier run left; else
// what the headings and the first pages show.
func (f *formRun) settleSchema(ctx context.Context) error {
	kept, err := f.keptColumns()
	if err != nil {
		return err
	}
	switch {
	case f.def.Schema != nil:
		s := *f.def.Schema
		if s.Unknown == "" || s.Unknown == schemas.UnknownAdd {
			s.Columns = schemas.Merge(s.Columns, kept) // what earlier runs added stays
		}
		f.schema = &s
		return nil
	case len(kept) > 0:
		f.schema = &schemas.Schema{Name: f.form, Columns: kept}
		return nil
	}
	pages, err := f.samplePages(ctx)
	if err != nil {
		return err
	}
	f.schema = transform.Infer(f.form, pages, f.def.Labels)
	for _, p := range pages { // the first that has them: all say the same
		if len(p.Headings) > 0 {
			f.headings = slices.Clone(p.Headings)
			break
		}
	}
	if len(pages) == 1 && pages[0].Len() == 0 {
		pages[0].Release()
	}
	return nil
}

// keptColumns are the columns of the manifests that earlier runs left, the
// first dataset's first: later runs begin with them, so that a schema is
// stable. The manifest of a single file counts for a definition that is run
// again and again, not for an export.
func (f *formRun) keptColumns() ([]schemas.Column, error) {
	var kept, ofFiles []schemas.Column
	if f.o.Full {
		return nil, nil
	}
	for _, out := range f.outputs {
		switch o := out.(type) {
		case *datasetOutput:
			columns, err := f.keptBy(o.path, o.manifest)
			if err != nil {
				return nil, err
			}
			kept = schemas.Merge(kept, columns)
		case *fileOutput:
			if o.manifest == nil || f.def.File == "" || f.def.Schema != nil || o.manifest.Names != f.naming() {
				continue // the file is replaced whole: nothing depends on what it was
			}
			columns, err := columnsOf(o.manifest)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.path, err)
			}
			ofFiles = schemas.Merge(ofFiles, columns)
		}
	}
	return schemas.Merge(kept, ofFiles), nil
}

// keptBy are the columns of a dataset, if the definition still fits them.
func (f *formRun) keptBy(path string, m *load.Manifest) ([]schemas.Column, error) {
	if m == nil {
		return nil, nil
	}
	if f.def.Schema == nil && m.Names != f.naming() {
		return nil, &DatasetChangedError{Path: path, What: "naming of columns", Was: cmp.Or(m.Names, "declared"), Is: f.naming()}
	}
	columns, err := columnsOf(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return columns, f.checkKept(path, columns)
}

// naming is how columns are named that the definition does not name.
func (f *formRun) naming() string {
	switch {
	case f.def.Schema != nil:
		return ""
	case f.def.Labels:
		return "label"
	}
	return "id"
}

// checkKept refuses a definition that renames or retypes a committed column.
func (f *formRun) checkKept(path string, kept []schemas.Column) error {
	if f.def.Schema == nil {
		return nil
	}
	for _, k := range kept {
		i := f.def.Schema.Find(k.From)
		if i < 0 {
			continue
		}
		is := f.def.Schema.Columns[i]
		if is.Name != k.Name || !is.Type.Equal(k.Type) {
			return &SchemaChangedError{Path: path, Column: k.Name, Was: k.Name + " " + k.Type.String(), Is: is.Name + " " + is.Type.String()}
		}
	}
	return nil
}

func columnsOf(m *load.Manifest) ([]schemas.Column, error) {
	columns := make([]schemas.Column, 0, len(m.Schema))
	for _, c := range m.Schema {
		t, err := schemas.ParseType(c.Type)
		if err != nil {
			return nil, err
		}
		from, err := schemas.ParseSource(c.From)
		if err != nil {
			return nil, err
		}
		columns = append(columns, schemas.Column{Name: c.Name, From: from, Type: t, Label: c.Label, Inferred: true})
	}
	return columns, nil
}

// samplePages reads the beginnings of the first windows that hold results.
// Their workers go on from there. A range without results gives one page with
// headings only.
func (f *formRun) samplePages(ctx context.Context) ([]*extract.Page, error) {
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
		Window: f.rng, Search: e.Search, View: e.View, CustomLabels: e.CustomLabels, Headings: true, Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	p.Filter(func(int64) bool { return false })
	return []*extract.Page{p}, nil
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
func (f *formRun) readHeads(ctx context.Context, windows []*windowRun) ([]*extract.Page, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(f.def.Source.Requests.Concurrency)
	most := max(1, samplePages/len(windows))
	for _, w := range windows {
		group.Go(func() error {
			w.pages = f.reader.Window(w.planned.Window, extract.IDRange{}, f.usable(w.planned.Count))
			for len(w.head) < most {
				p, err := w.pages.Next(ctx)
				if err != nil {
					return fmt.Errorf("window %s: %w", w.name(), err)
				}
				if p == nil {
					return nil
				}
				w.head = append(w.head, p)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var pages []*extract.Page
	for _, w := range windows {
		pages = append(pages, w.head...)
	}
	return pages, nil
}
