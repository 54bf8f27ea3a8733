package pipelines

import (
	"context"
	"io"

	"github.com/formetl/formetl/pipelines/definition"
)

// streamOutput is standard output: encoded when all windows are there, so
// that a failed run has written nothing.
type streamOutput struct{ encoding }

func (f *formRun) openStream(def definition.Output) (output, error) {
	e, err := f.encodingOf(def)
	if err != nil {
		return nil, err
	}
	return &streamOutput{e}, nil
}

// stage stages nothing: what is written to standard output is gone. So it is
// written when the other outputs record their commits.
func (o *streamOutput) stage(context.Context) (*stagedOutput, error) {
	staged := &stagedOutput{}
	staged.record = func(ctx context.Context) (p publisher, err error) {
		staged.report, err = o.write(ctx)
		return written{}, err
	}
	return staged, nil
}

// written is a commit of which nothing is left to do.
type written struct{}

// Publish does nothing.
func (written) Publish(context.Context) error { return nil }

// write writes the results.
func (o *streamOutput) write(ctx context.Context) (OutputReport, error) {
	windows := o.f.ownWindows()
	counted := &countingWriter{w: stdoutWriter{o.f.o.Stdout}}
	stats, err := o.f.statsFor(ctx, windows)
	if err != nil {
		return OutputReport{}, err
	}
	columns, err := o.shown(windows, stats.Seen, nil)
	if err != nil {
		return OutputReport{}, err
	}
	rows, err := o.encode(ctx, counted, columns, windows, o.f.iv.Given)
	return OutputReport{Rows: rows, Parts: 1, Bytes: counted.n}, err
}

func (o *streamOutput) close(context.Context) error { return nil }

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
