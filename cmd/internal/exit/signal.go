package exit

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// StopError is the end of a command that a signal stopped in order.
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

// OnSignal ends the context on SIGINT, SIGTERM and SIGHUP, with a *StopError as its
// cause. A SIGHUP that the process was started to ignore stays ignored, as nohup wants. A second signal ends the process at once. SIGPIPE is caught too, so
// that a reader of standard output that goes away is an error of that write and
// staged files are still removed.
//
// settle stops catching signals. A signal that came before settle has ended the
// context by its return. It may be called more than once.
func OnSignal(parent context.Context) (ctx context.Context, settle func()) {
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
		close(signals) // a signal that is in it is received first
		watch.Wait()
		cancel(nil)
	})
}

// ServedError is the end of a command that works until it is stopped, such as a service.
// A signal ends it as it should end, so that its exit code is 0.
type ServedError struct{}

// Error says that nothing failed.
func (e *ServedError) Error() string { return "stopped, as it should be" }

// Judge gives a command's error its class where the error alone does not tell it.
// An error without a class from before the command's own work began is wrong
// usage. A command that a signal told to stop ends as stopped, whatever error it
// ended with, because it could not finish.
func Judge(ctx context.Context, err error, began bool) error {
	if err != nil && !began && Code(err) == Bug {
		err = &Error{Usage, err}
	}
	if is[*ServedError](err) {
		return nil
	}
	stopped, ok := context.Cause(ctx).(*StopError) //nolint:errorlint // OnSignal sets it bare
	switch code := Code(err); {
	case !ok || is[*StopError](err) && code == Code(stopped):
		return err
	case code == OK || code == Bug || code == Interrupted:
		return stopped
	}
	return fmt.Errorf("%w; %w", stopped, err)
}
