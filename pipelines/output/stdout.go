package output

import (
	"context"
	"io"

	"github.com/formetl/formetl/pipelines/reconcile"
)

// stream is the output that writes to standard output.
type stream struct{ *place }

// stage encodes nothing yet, because text on standard output cannot be taken
// back. The results are written when the other outputs record their commits.
func (o *stream) stage(_ context.Context, s *reconcile.Snapshot) (*stagedOutput, error) {
	o.snapshot = s
	staged := &stagedOutput{}
	staged.record = func(ctx context.Context) (publish func(context.Context) error, err error) {
		staged.report, err = o.write(ctx)
		return func(context.Context) error { return nil }, err
	}
	return staged, nil
}

// write writes the results to standard output and returns its report.
func (o *stream) write(ctx context.Context) (Report, error) {
	windows := o.snapshot.Own()
	columns, _, err := o.ownColumns(ctx, windows)
	if err != nil {
		return Report{}, err
	}
	counted := &countingWriter{w: stdoutWriter{o.job.Stdout}}
	rows, err := o.encode(ctx, counted, columns, windows)
	return Report{Rows: rows, Parts: 1, Bytes: counted.n}, err
}

// StdoutError reports a failure to write to standard output.
type StdoutError struct{ Err error }

// Error names the cause.
func (e *StdoutError) Error() string { return "cannot write to standard output: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StdoutError) Unwrap() error { return e.Err }

// stdoutWriter wraps errors of its writer in a *StdoutError.
type stdoutWriter struct{ w io.Writer }

// Write writes p to the underlying writer.
func (s stdoutWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		err = &StdoutError{Err: err}
	}
	return n, err
}

// countingWriter counts the bytes that were written.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write writes p to the underlying writer and counts the bytes that it accepts.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
