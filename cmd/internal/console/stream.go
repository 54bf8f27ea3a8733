package console

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// grace is how long a write may take after a signal before it is given up.
const grace = 400 * time.Millisecond

// Freed returns a stream of the process whose writes a signal sets free, even if nobody reads its
// other end: a write that has not ended soon after the signal fails with the cause of ctx, and so
// do all later writes. A writer that is no file is returned unchanged.
func Freed(ctx context.Context, to io.Writer) io.Writer {
	if file, ok := to.(*os.File); ok {
		return &stream{ctx: ctx, file: file}
	}
	return to
}

// stream is a file with the methods by which a terminal is recognised. A write to a pipe or a
// terminal cannot be cancelled: the file is shared with other processes, so its mode must not be
// changed. So a goroutine writes, which ends with the process at the latest.
type stream struct {
	ctx  context.Context //nolint:containedctx // the process's context
	file *os.File

	mu     sync.Mutex
	buffer []byte // a copy of what is written, so that the caller can use its own
	stuck  error  // set while the goroutine of an earlier write hangs
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck != nil {
		return 0, s.stuck
	}
	s.buffer = append(s.buffer[:0], p...)
	var n int
	var err error
	written := make(chan struct{})
	go func() {
		n, err = s.file.Write(s.buffer)
		close(written)
	}()
	select {
	case <-written:
		return n, err
	case <-s.ctx.Done():
	}
	stopped, ok := errors.AsType[*StopError](context.Cause(s.ctx))
	if !ok { // the command is over, and its last lines are worth waiting for
		<-written
		return n, err
	}
	select {
	case <-written:
		return n, err
	case <-time.After(grace):
		s.stuck = stopped
		return 0, stopped
	}
}

// Fd returns the descriptor of the file.
func (s *stream) Fd() uintptr { return s.file.Fd() }

// Read reads from the file.
func (s *stream) Read(p []byte) (int, error) { return s.file.Read(p) }

// Close closes the file.
func (s *stream) Close() error { return s.file.Close() }
