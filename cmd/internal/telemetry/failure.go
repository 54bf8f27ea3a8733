package telemetry

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/formetl/formetl/cmd/internal/exit"
)

// RunError is the failure of one run of a command.
type RunError struct {
	Pipeline, RunID string
	Named           bool // the command runs several pipelines, so that the text names this one
	Err             error
}

// Error is the text of the wrapped error.
func (e *RunError) Error() string {
	if e.Named {
		return e.Pipeline + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns why the run failed.
func (e *RunError) Unwrap() error { return e.Err }

// failuresOf returns the parts of an error that have a record each. These are the failed
// runs, and what else failed. An error of at most one run is one part.
func failuresOf(err error) []error {
	var runs, others []error
	var walk func(err error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case *RunError:
			runs = append(runs, e)
		case interface{ Unwrap() []error }:
			for _, part := range e.Unwrap() {
				walk(part)
			}
		default:
			others = append(others, e)
		}
	}
	walk(err)
	if len(runs) < 2 {
		return []error{err}
	}
	return append(runs, others...)
}

// failJSON writes the record of a failure. It names the run that failed.
func (l *Log) failJSON(err error, hint string) {
	attrs := []slog.Attr{slog.String("error", err.Error()), slog.Int("exit_code", exit.Code(err))}
	if hint != "" {
		attrs = append(attrs, slog.String("hint", hint))
	}
	of := *l
	if run, ok := errors.AsType[*RunError](err); ok {
		of.About(run.Pipeline, run.RunID)
	}
	of.Tell(slog.LevelError, "failed", attrs...)
}

// Outcome says in a word how a run or a form ended, by its exit code.
func Outcome(code int, begun bool) string {
	if !begun {
		return "not begun"
	}
	return cmp.Or(map[int]string{
		exit.OK: "done", exit.Data: "data at fault", exit.NoInput: "not found", exit.Unavailable: "service failed", exit.Bug: "bug",
		exit.CantCreate: "output not created", exit.IO: "output failed", exit.Temporary: "to be run again", exit.NoPermission: "key refused",
		exit.Config: "definition wrong", exit.HungUp: "stopped", exit.Interrupted: "stopped", exit.Terminated: "stopped",
	}[code], "failed")
}
