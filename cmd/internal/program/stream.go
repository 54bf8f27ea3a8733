package program

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/formetl/formetl/cmd/internal/exit"
)

// grace is how long a write may take after a signal before it is given up.
const grace = 400 * time.Millisecond

// Freed returns a stream of the process whose writers a signal sets free, also where nobody
// reads the other end: a write that has not ended soon after it fails with the cause of ctx,
// and so do all later ones. Other writers are returned as they are.
func Freed(ctx context.Context, to io.Writer) io.Writer {
	if file, ok := to.(*os.File); ok {
		return &stream{ctx: ctx, file: file}
	}
	return to
}

// stream is a file with the methods by which a terminal is known. A write to a pipe or a
// terminal cannot be cancelled, because the file is shared with other processes and must not
// be set to another mode. So a goroutine writes, which ends with the process at the latest.
type stream struct {
	ctx  context.Context //nolint:containedctx // it is that of the process
	file *os.File

	mu     sync.Mutex
	buffer []byte // what is written; the caller has its own again when Write returns
	stuck  error  // the goroutine of an earlier write still hangs
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
	stopped, ok := errors.AsType[*exit.StopError](context.Cause(s.ctx))
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

// Fd is the descriptor of the file.
func (s *stream) Fd() uintptr { return s.file.Fd() }

// Read reads from the file.
func (s *stream) Read(p []byte) (int, error) { return s.file.Read(p) }

// Close closes the file.
func (s *stream) Close() error { return s.file.Close() }
