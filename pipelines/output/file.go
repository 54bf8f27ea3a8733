package output

import (
	"context"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// file is one file, replaced whole. It is encoded from the snapshot when
// all windows are there.
type file struct {
	encoding
	place
	codebookFacts
	name     string         // in the destination
	manifest *load.Manifest // of the last run, nil if there was none
	base     string         // its version
	staged   load.Prepared  // the file, until its commit is recorded
}

// openFile opens the destination that the file lies in.
func (j *Job) openFile(ctx context.Context, def definition.Output, path string) (output, error) {
	e, err := j.encodingOf(def)
	if err != nil {
		return nil, err
	}
	root, name := definition.SplitPath(path)
	o := &file{encoding: e, name: name}
	if o.place, err = j.openPlace(ctx, def, path, root, name); err != nil {
		return nil, err
	}
	if err := o.lookBack(ctx); err != nil {
		return nil, errors.Join(err, o.close(context.WithoutCancel(ctx)))
	}
	j.tellOrphans(ctx, def, path, o.manifest)
	return o, nil
}

// lookBack finishes what a dead run left and reads the manifest.
func (o *file) lookBack(ctx context.Context) error {
	if err := o.recover(ctx, o.job, o.name); err != nil {
		return err
	}
	m, version, err := ManifestAt(ctx, o.dest, load.FileManifestName(o.name), o.out)
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
func (o *file) stage(ctx context.Context, s *reconcile.Snapshot) (*stagedOutput, error) {
	staged, err := o.stageFile(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path, err)
	}
	return staged, nil
}

func (o *file) stageFile(ctx context.Context, s *reconcile.Snapshot) (*stagedOutput, error) {
	o.snapshot = s
	windows := s.Own()
	stats, err := s.StatsOf(ctx, windows)
	if err != nil {
		return nil, err
	}
	columns, err := o.shown(windows, stats.Seen, o.manifest)
	if err != nil {
		return nil, err
	}
	var rows int64
	err = o.job.Encoders.Hold(ctx, func() (err error) {
		o.staged, rows, err = o.encodeTo(ctx, o.dest, o.name, columns, windows, s.Interval.Given)
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
		RunID: o.job.RunID, Manifest: m, Base: o.base, File: o.staged,
		Objects: []load.SmallObject{{Name: load.FileRejectsName(o.name), Data: letters}},
		Hook:    o.hook(o.job),
	}
	o.book = codebook.Facts{Columns: m.Schema, Stats: stats}
	return &stagedOutput{
		report: Report{Rows: part.Rows, Parts: 1, Bytes: part.Bytes},
		record: func(ctx context.Context) (publisher, error) { return o.record(ctx, commit) },
	}, nil
}

// record records the commit.
func (o *file) record(ctx context.Context, commit load.FileCommit) (publisher, error) {
	if err := o.held(); err != nil {
		return nil, err
	}
	recorded, err := commit.Record(ctx, o.dest)
	if givenUp(err) {
		o.staged = load.Prepared{}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path, err)
	}
	return namedPublisher{path: o.path, publisher: recorded}, nil
}

// close drops what was staged and not recorded, and gives the lease back.
func (o *file) close(ctx context.Context) error {
	var err error
	if o.staged.Name != "" && o.held() == nil {
		err = load.AbortAll(ctx, o.dest, o.staged)
	}
	return errors.Join(err, o.release(ctx))
}

// rowsOf counts the rows of the windows and gives their smallest and largest id.
func rowsOf(windows []*reading.Window) (rows, lowest, highest int64) {
	for _, w := range windows {
		if w.Stats.Rows == 0 {
			continue
		}
		ids := w.RowIDs(0, w.Stats.Rows)
		lo, hi := int64(ids.Minimum()), int64(ids.Maximum()) //nolint:gosec // they were int64
		if rows == 0 || lo < lowest {
			lowest = lo
		}
		highest = max(highest, hi)
		rows += w.Stats.Rows
	}
	return rows, lowest, highest
}
