package pipelines

import (
	"context"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
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
	staged   load.Prepared  // the file, until its commit is recorded
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
		return nil, errors.Join(err, o.close(context.WithoutCancel(ctx)))
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

// stage encodes the file and makes the commit that puts it in its place.
func (o *fileOutput) stage(ctx context.Context) (*stagedOutput, error) {
	staged, err := o.stageFile(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path, err)
	}
	return staged, nil
}

func (o *fileOutput) stageFile(ctx context.Context) (*stagedOutput, error) {
	windows := o.f.ownWindows()
	stats, err := o.f.statsFor(ctx, windows)
	if err != nil {
		return nil, err
	}
	columns, err := o.shown(windows, stats.Seen, o.manifest)
	if err != nil {
		return nil, err
	}
	var rows int64
	err = o.f.o.encoders.hold(ctx, func() (err error) {
		o.staged, rows, err = o.encodeTo(ctx, o.dest, o.name, columns, windows, o.f.iv.Given)
		return err
	})
	if err != nil {
		return nil, err
	}
	letters, err := o.letters(windows)
	if err != nil {
		return nil, err
	}
	m := o.newManifest(columns, windows, o.manifest, true)
	part := load.Part{Path: o.name, From: m.Range.From, To: m.Range.To, Bytes: o.staged.Bytes, SHA256: o.staged.SHA256}
	_, part.MinID, part.MaxID = rowsOf(windows)
	part.Rows = rows // a child output has others than results
	m.Rows, m.Parts = part.Rows, []load.Part{part}
	commit := load.FileCommit{
		RunID: o.f.o.RunID, Manifest: m, Base: o.base, File: o.staged,
		Objects: []load.SmallObject{{Name: load.FileRejectsName(o.name), Data: letters}},
		Hook:    o.hook(o.f),
	}
	o.book = codebook.Facts{Columns: m.Schema, Stats: stats}
	return &stagedOutput{
		report: OutputReport{Rows: part.Rows, Parts: 1, Bytes: part.Bytes},
		record: func(ctx context.Context) (publisher, error) { return o.record(ctx, commit) },
	}, nil
}

// record records the commit; see datasetOutput.record.
func (o *fileOutput) record(ctx context.Context, commit load.FileCommit) (publisher, error) {
	if err := o.held(); err != nil {
		return nil, err
	}
	recorded, err := commit.Record(ctx, o.dest)
	if err == nil || mustStay(err) || errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrStagedGone) {
		o.staged = load.Prepared{}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path, err)
	}
	return namedPublisher{path: o.path, publisher: recorded}, nil
}

// close drops what was staged and not recorded, and gives the lease back.
func (o *fileOutput) close(ctx context.Context) error {
	var err error
	if o.staged.Name != "" && o.held() == nil {
		err = o.drop(ctx, o.staged)
	}
	return errors.Join(err, o.release(ctx))
}

// ownWindows are the windows of the range that was asked for, without what a
// dataset's whole parts widened it by.
func (f *formRun) ownWindows() []*windowRun {
	if f.iv.Asked == f.iv.Read && len(f.older) == 0 && (f.iv.Everything() || f.undatedWindow() == nil) {
		return f.windows
	}
	var own []*windowRun
	for _, w := range f.windows {
		p := w.planned.Window
		before := !f.iv.Asked.From.IsZero() && (p.From.IsZero() || p.From.Before(f.iv.Asked.From))
		after := p.To.IsZero() || p.To.After(f.iv.Asked.To)
		if w.undated != nil && f.iv.Everything() || w.undated == nil && w.older == nil && !before && !after {
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
