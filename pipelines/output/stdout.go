package output

import (
	"context"
	"io"

	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// stream is standard output: encoded when all windows are there, so
// that a failed run has written nothing.
type stream struct{ encoding }

func (j *Job) openStream(def definition.Output) (output, error) {
	e, err := j.encodingOf(def)
	if err != nil {
		return nil, err
	}
	return &stream{e}, nil
}

// stage stages nothing: what is written to standard output is gone. So it is
// written when the other outputs record their commits.
func (o *stream) stage(_ context.Context, s *reconcile.Snapshot) (*stagedOutput, error) {
	o.snapshot = s
	staged := &stagedOutput{}
	staged.record = func(ctx context.Context) (p publisher, err error) {
		staged.report, err = o.write(ctx, s)
		return written{}, err
	}
	return staged, nil
}

// written is a commit of which nothing is left to do.
type written struct{}

// Publish does nothing.
func (written) Publish(context.Context) error { return nil }

// write writes the results.
func (o *stream) write(ctx context.Context, s *reconcile.Snapshot) (Report, error) {
	windows := s.Own()
	counted := &countingWriter{w: stdoutWriter{o.job.Stdout}}
	stats, err := s.StatsOf(ctx, windows)
	if err != nil {
		return Report{}, err
	}
	columns, err := o.shown(windows, stats.Seen, nil)
	if err != nil {
		return Report{}, err
	}
	rows, err := o.encode(ctx, counted, columns, windows, s.Interval.Given)
	return Report{Rows: rows, Parts: 1, Bytes: counted.n}, err
}

func (o *stream) close(context.Context) error { return nil }

// StdoutError is a failure to write to standard output.
type StdoutError struct{ Err error }

// Error names the cause.
func (e *StdoutError) Error() string { return "cannot write to standard output: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StdoutError) Unwrap() error { return e.Err }

// stdoutWriter names the place of a failure.
type stdoutWriter struct{ w io.Writer }

// Write passes p on.
func (s stdoutWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		err = &StdoutError{Err: err}
	}
	return n, err
}

// countingWriter counts what was written.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write passes p on and counts what was taken.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
