package output

import (
	"context"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// file is an output that is a single file. Each run replaces it as a whole.
type file struct{ *place }

// stage encodes the file and builds the commit that puts it in its place.
func (o *file) stage(ctx context.Context, s *reconcile.Snapshot) (*stagedOutput, error) {
	o.snapshot = s
	windows := s.Own()
	columns, stats, err := o.ownColumns(ctx, windows)
	if err != nil {
		return nil, err
	}
	var staged load.Prepared
	var rows int64
	err = o.job.Encoders.Hold(ctx, func() (err error) {
		staged, rows, err = o.encodeTo(ctx, columns, windows)
		return err
	})
	if err != nil {
		return nil, err
	}
	o.staged = append(o.staged, staged)
	letters, err := o.letters(&outputPart{windows: windows, from: s.Interval.Given.From, to: s.Interval.Given.To})
	if err != nil {
		return nil, err
	}
	m := o.newManifest(columns, windows, true)
	part := load.Part{Path: o.Scope, From: m.Range.From, To: m.Range.To, Rows: rows, Bytes: staged.Bytes, SHA256: staged.SHA256}
	_, part.MinID, part.MaxID = rowsOf(windows)
	if !o.out.Exploded() {
		part.Rejected = m.Rejected
	}
	m.Rows, m.Parts = part.Rows, []load.Part{part}
	commit := load.Commit{
		RunID: o.job.RunID, File: o.Scope, Manifest: m, Base: o.base, New: []load.Prepared{staged},
		Objects: []load.SmallObject{{Name: load.FileRejectsName(o.Scope), Data: letters}},
		Alone:   o.out.NoManifest,
		Hook:    o.hook,
	}
	o.book = codebook.Facts{Columns: m.Schema, Stats: stats}
	report := Report{Rows: part.Rows, Parts: 1, Bytes: part.Bytes, SHA256: part.SHA256}
	if letters != nil {
		report.DeadLetters = load.FileRejectsName(o.Path)
	}
	return &stagedOutput{
		report: report,
		record: func(ctx context.Context) (func(context.Context) error, error) { return o.record(ctx, commit) },
	}, nil
}

// rowsOf returns the number of rows in the windows, and their smallest and largest id.
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
