package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
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
		return "stopped by SIGHUP (the terminal was closed)"
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
func (e *ServedError) Error() string { return "stopped as requested" }

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
