package output

import (
	"context"
	"io"
	"log/slog"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// file is an output that is a single file. Each run replaces it as a whole.
type file struct{ *place }

func (o *file) open(ctx context.Context) error { return o.openAndLook(ctx, o.tellForeign) }

// tellForeign warns of a file that this run replaces although it has no manifest, which shows
// that no run of formetl wrote it. An export asks about such a file beforehand.
func (o *file) tellForeign(ctx context.Context) error {
	if o.manifest == nil && !o.out.NoManifest && o.job.Def.File != "" {
		if _, err := o.dest.Stat(ctx, o.Scope); err == nil { // any other error shows when the file is replaced
			o.job.Log.LogAttrs(ctx, slog.LevelWarn, "this file has no manifest of formetl beside it, so formetl may not have written it; this run replaces it and keeps no copy (to keep it, stop the run and rename the file)", slog.String("path", o.Path))
		}
	}
	return nil
}

// stage encodes the file and builds the commit that puts it in its place.
func (o *file) stage(ctx context.Context, s *reconcile.Snapshot) error {
	o.snapshot = s
	windows := s.Own()
	columns, stats, err := o.ownColumns(ctx, windows)
	if err != nil {
		return err
	}
	whole := &outputPart{windows: windows, from: s.Interval.Given.From, to: s.Interval.Given.To}
	if err := o.stageParts(ctx, []*outputPart{whole}, columns); err != nil {
		return err
	}
	letters, err := o.letters(whole)
	if err != nil {
		return err
	}
	m, object := o.newManifest(columns, windows, true), *whole.prepared
	object.Part.From, object.Part.To = m.Range.From, m.Range.To
	m.Rows, m.Parts = object.Part.Rows, []load.Part{object.Part}
	o.commit = load.Commit{
		RunID: o.job.RunID, File: o.Scope, Manifest: m, Base: o.base, New: []load.Prepared{object.Prepared},
		Letters: letters, Alone: o.out.NoManifest, Hook: o.hook,
	}
	o.book = codebookFacts{columns: m.Schema, stats: stats}
	o.staging = o.report
	o.staging.holds(&m)
	o.staging.SHA256 = object.Part.SHA256
	if letters != nil {
		o.staging.DeadLetters = load.FileRejectsName(o.Path)
	}
	return nil
}

// stream is the output that writes to standard output.
type stream struct{ *place }

func (o *stream) open(ctx context.Context) error { return o.locate(ctx) }

// stage encodes nothing yet, because text on standard output cannot be taken
// back. The results are written by record, when the other outputs record their commits.
func (o *stream) stage(_ context.Context, s *reconcile.Snapshot) error {
	o.snapshot = s
	return nil
}

// record writes the results to standard output. Nothing is left to publish after that.
func (o *stream) record(ctx context.Context) error {
	windows := o.snapshot.Own()
	columns, _, err := o.ownColumns(ctx, windows)
	if err != nil {
		return err
	}
	stdout := &stdoutWriter{w: o.job.Stdout}
	object, err := o.object(stdout, columns, o.snapshot.Interval.Given)
	if err != nil {
		return err
	}
	o.staging = o.report
	err = o.each(ctx, columns, windows, func(b arrow.RecordBatch) error {
		o.staging.Rows += b.NumRows()
		return object.Write(b)
	})
	if err == nil {
		err = object.Close()
	}
	if err != nil {
		object.discard()
		return err
	}
	o.staging.Parts, o.staging.Bytes = 1, stdout.n
	o.publish = func(context.Context) error { return nil }
	return nil
}

// StdoutError reports a failure to write to standard output.
type StdoutError struct{ Err error }

// Error names the cause.
func (e *StdoutError) Error() string { return "cannot write to standard output: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StdoutError) Unwrap() error { return e.Err }

// ExitCode returns 74, an error of writing: the reader of standard output does not take the
// results.
func (e *StdoutError) ExitCode() int { return 74 }

// stdoutWriter counts the bytes that were written, and wraps errors in a *StdoutError.
type stdoutWriter struct {
	w io.Writer
	n int64
}

// Write writes p to standard output.
func (s *stdoutWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	if err != nil {
		err = &StdoutError{Err: err}
	}
	return n, err
}
