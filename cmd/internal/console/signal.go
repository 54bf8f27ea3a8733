package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// StopError is the error of a command that a signal stopped in order.
type StopError struct{ Signal os.Signal }

// Error names the signal.
func (e *StopError) Error() string {
	switch e.Signal {
	case os.Interrupt:
		return "stopped by SIGINT (Ctrl-C)"
	case syscall.SIGTERM:
		return "stopped by SIGTERM"
	case syscall.SIGHUP:
		return "stopped by SIGHUP (the terminal is gone)"
	}
	return "stopped by " + e.Signal.String()
}

// ExitCode returns 128 plus the number of the signal, as shells do.
func (e *StopError) ExitCode() int {
	switch e.Signal {
	case syscall.SIGTERM:
		return ExitTerminated
	case syscall.SIGHUP:
		return ExitHungUp
	}
	return ExitInterrupted
}

// OnSignal returns a context that ends on SIGINT, SIGTERM and SIGHUP, with a *StopError as its
// cause. A SIGHUP that the process was started to ignore (nohup) stays ignored. A second signal
// ends the process at once. SIGPIPE is caught too: if the reader of standard output goes away, the
// write fails with an error, and staged files are still removed.
//
// stopCatching stops catching signals. If a signal came before, the context has ended when
// stopCatching returns. stopCatching may be called more than once.
func OnSignal(parent context.Context) (ctx context.Context, stopCatching func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, pipes := make(chan os.Signal, 1), make(chan os.Signal, 1)
	caught := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		caught = append(caught, syscall.SIGHUP)
	}
	signal.Notify(signals, caught...)
	signal.Notify(pipes, syscall.SIGPIPE)
	var watch sync.WaitGroup
	watch.Go(func() {
		if s, came := <-signals; came {
			signal.Stop(signals)
			cancel(&StopError{s})
		}
	})
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals) // after Stop no signal is on its way to the channel
		signal.Stop(pipes)
		close(signals) // a signal that is still in the channel is received first
		watch.Wait()
		cancel(nil)
	})
}

// ServedError is the error of a command that works until it is stopped, such as a service. A
// signal is its regular end, so the exit code is 0.
type ServedError struct{}

// Error says that nothing failed.
func (e *ServedError) Error() string { return "stopped, as it should be" }

// judge gives a command's error its exit code where the error alone does not tell it. An error
// without a code from before the command's own work began is wrong usage. A command that a signal
// told to stop ends with the *StopError, whatever its own error was, because it could not
// finish.
func judge(ctx context.Context, err error, began bool) error {
	if err != nil && !began && ExitCode(err) == ExitBug {
		err = &CodeError{ExitUsage, err}
	}
	if _, served := errors.AsType[*ServedError](err); served {
		return nil
	}
	stopped, ok := context.Cause(ctx).(*StopError) //nolint:errorlint // OnSignal sets it unwrapped
	_, told := errors.AsType[*StopError](err)
	switch code := ExitCode(err); {
	case !ok || told && code == ExitCode(stopped):
		return err
	case code == ExitOK || code == ExitBug || code == ExitInterrupted:
		return stopped
	}
	return fmt.Errorf("%w; %w", stopped, err)
}

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
