package pipelines

import (
	"context"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// fileOutput is one file, replaced whole. It is encoded from the spool when
// all windows are there.
type fileOutput struct {
	encoding
	place
	codebookFacts
	name     string         // in the destination
	manifest *load.Manifest // of the last run, nil if there was none
	base     string         // its version
}

// openFile opens the destination that the file lies in.
func (f *formRun) openFile(ctx context.Context, def definition.Output, path string) (output, error) {
	e, err := f.encodingOf(def)
	if err != nil {
		return nil, err
	}
	root, name := definition.SplitPath(path)
	o := &fileOutput{encoding: e, name: name}
	if o.place, err = f.openPlace(ctx, def, path, root, name); err != nil {
		return nil, err
	}
	if err := o.lookBack(ctx); err != nil {
		return nil, errors.Join(err, o.close(context.WithoutCancel(ctx), true))
	}
	f.tellOrphans(ctx, def, path, o.manifest)
	return o, nil
}

// lookBack finishes what a dead run left and reads the manifest.
func (o *fileOutput) lookBack(ctx context.Context) error {
	if _, err := o.recover(ctx, o.f, o.name); err != nil {
		return err
	}
	m, version, err := manifestAt(ctx, o.dest, load.FileManifestName(o.name), o.out)
	if errors.Is(err, load.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	o.manifest, o.base = m, version
	return nil
}

func (o *fileOutput) windowRead(context.Context, *windowRun) error { return o.held() }

func (o *fileOutput) commit(ctx context.Context) (OutputReport, error) {
	windows := o.f.ownWindows()
	columns, err := o.shown(windows, o.manifest)
	if err != nil {
		return OutputReport{}, fmt.Errorf("%s: %w", o.path, err)
	}
	prepared, rows, err := o.stage(ctx, o.dest, o.name, columns, windows, o.f.asked)
	if err != nil {
		return OutputReport{}, fmt.Errorf("%s: %w", o.path, err)
	}
	report, err := o.replace(ctx, prepared, rows, columns, windows)
	if err != nil {
		err = fmt.Errorf("%s: %w", o.path, err)
		if !mustStay(err) {
			err = errors.Join(err, o.drop(ctx, prepared))
		}
	}
	return report, err
}

// replace puts the prepared file of so many rows in its place, with its manifest.
func (o *fileOutput) replace(ctx context.Context, prepared load.Prepared, rows int64, columns []schemas.Column, windows []*windowRun) (OutputReport, error) {
	letters, err := o.letters(windows)
	if err != nil {
		return OutputReport{}, err
	}
	m := o.newManifest(columns, windows, o.manifest, true)
	part := load.Part{Path: o.name, From: m.Range.From, To: m.Range.To, Bytes: prepared.Bytes, SHA256: prepared.SHA256}
	_, part.MinID, part.MaxID = rowsOf(windows)
	part.Rows = rows // a child output has others than results
	m.Rows, m.Parts = part.Rows, []load.Part{part}
	if err := o.held(); err != nil {
		return OutputReport{}, err
	}
	ctx, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	err = load.FileCommit{
		RunID: o.f.runID, Manifest: m, Base: o.base, File: prepared,
		Objects: []load.SmallObject{{Name: load.FileRejectsName(o.name), Data: letters}},
		Hook:    o.hook(o.f),
	}.Do(ctx, o.dest)
	o.book = codebook.Facts{Columns: m.Schema, Stats: statsOf(windows)}
	return OutputReport{Rows: part.Rows, Parts: 1, Bytes: part.Bytes}, err
}

func (o *fileOutput) close(ctx context.Context, _ bool) error { return o.release(ctx) }

// ownWindows are the windows of the range that was asked for, without what a
// dataset's whole parts widened it by.
func (f *formRun) ownWindows() []*windowRun {
	if f.own == f.rng && len(f.older) == 0 && (f.everything() || f.undatedWindow() == nil) {
		return f.windows
	}
	var own []*windowRun
	for _, w := range f.windows {
		p := w.planned.Window
		before := !f.own.From.IsZero() && (p.From.IsZero() || p.From.Before(f.own.From))
		after := p.To.IsZero() || p.To.After(f.own.To)
		if w.undated && f.everything() || !w.undated && w.older == nil && !before && !after {
			own = append(own, w)
		}
	}
	return own
}

// rowsOf counts the rows of the windows and gives their smallest and largest id.
func rowsOf(windows []*windowRun) (rows, lowest, highest int64) {
	for _, w := range windows {
		if w.stats.Rows == 0 {
			continue
		}
		ids := w.rowIDs(0, w.stats.Rows)
		lo, hi := int64(ids.Minimum()), int64(ids.Maximum()) //nolint:gosec // they were int64
		if rows == 0 || lo < lowest {
			lowest = lo
		}
		highest = max(highest, hi)
		rows += w.stats.Rows
	}
	return rows, lowest, highest
}
