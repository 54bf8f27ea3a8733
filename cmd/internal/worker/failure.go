package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
)

// An activity's error is of the type "exit N", by the exit code that a command ends with.
// Only 75 is tried again, and what a worker did not end because it was stopped, or because the
// state was not there.

// typePrefix begins the type of every error of an activity.
const typePrefix = "exit "

// mostText bounds the text of an error in a history.
const mostText = 2000

// heldPause is how long a workflow waits for a run that holds the lease.
const heldPause = 20 * time.Second

// failure is what an activity returns for an error. own is the activity's context: where
// Temporal cancelled it, the activity tells that it is cancelled.
func failure(own context.Context, err error) error {
	if err == nil {
		return nil
	}
	if own.Err() != nil {
		return own.Err()
	}
	code := exit.Code(err)
	_, away := errors.AsType[*checkpoint.UnreachedError](err)
	text := err.Error()
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + " …"
	}
	return temporal.NewApplicationErrorWithOptions(text, typePrefix+strconv.Itoa(code), temporal.ApplicationErrorOptions{
		NonRetryable: !passes(code) && !away, NextRetryDelay: pauseAfter(err),
	})
}

// passes tells whether an error of this exit code may pass by itself.
func passes(code int) bool {
	return code == exit.Temporary || code == exit.HungUp || code == exit.Interrupted || code == exit.Terminated
}

// pauseAfter is how long to wait before the next try; 0 leaves that to the retry policy.
func pauseAfter(err error) time.Duration {
	if b, ok := errors.AsType[*transport.BudgetError](err); ok && !b.Until.IsZero() {
		return max(time.Second, time.Until(b.Until))
	}
	if _, ok := errors.AsType[*load.HeldError](err); ok {
		return heldPause
	}
	if _, ok := errors.AsType[*exit.StopError](err); ok {
		return time.Second
	}
	return 0
}

// codeOf is the exit code and the text of an error that a workflow got.
func codeOf(err error) (int, string) {
	if err == nil {
		return exit.OK, ""
	}
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		if n, wrong := strconv.Atoi(strings.TrimPrefix(failed.Type(), typePrefix)); wrong == nil && strings.HasPrefix(failed.Type(), typePrefix) {
			return n, failed.Message()
		}
		return exit.Bug, failed.Message()
	}
	if temporal.IsCanceledError(err) {
		return exit.Interrupted, "it was cancelled"
	}
	if _, ok := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](err); ok {
		return exit.Temporary, "another workflow of this definition is under way; it goes on"
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return exit.Temporary, fmt.Sprintf("no worker has ended the work in time: %v", timeout)
	}
	return exit.Bug, err.Error()
}
