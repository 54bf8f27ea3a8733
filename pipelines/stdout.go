package pipelines

import "io"

// StdoutError is a failure to write to standard output.
type StdoutError struct{ Err error }

// Error names the cause.
func (e *StdoutError) Error() string { return "cannot write to standard output: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StdoutError) Unwrap() error { return e.Err }

type countingWriter struct {
	w io.Writer
	n int64
}

// Write passes on and counts.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
