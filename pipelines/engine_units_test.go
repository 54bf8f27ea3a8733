package pipelines

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reconcile"
)

func TestStoppedRunTellsWhy(t *testing.T) {
	stop, other := errors.New("stopped by a test"), errors.New("disk full")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := stopped(ctx, other); err != other { //nolint:errorlint // as it is
		t.Errorf("before the stop: %v", err)
	}
	cancel(stop)
	recorded := &load.CommitError{RunID: "r", Recorded: true, Err: context.Canceled}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("window x: %w", stop), "stopped by a test"},
		{fmt.Errorf("window x: %w", context.Canceled), "stopped by a test"},
		{other, "stopped by a test; disk full"},
		{recorded, "stopped by a test; " + recorded.Error()},
	} {
		if err := stopped(ctx, c.err); !errors.Is(err, stop) || err.Error() != c.want {
			t.Errorf("%v: %q", c.err, err)
		}
	}
}

func TestLingeringContextOutlivesItsParent(t *testing.T) {
	stop := errors.New("stop")
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, release := load.Lingering(parent, time.Hour)
	cancel(stop)
	if ctx.Err() != nil {
		t.Error("it ended with its parent")
	}
	release()
	if ctx.Err() == nil {
		t.Error("it goes on after its release")
	}
	ctx, release = load.Lingering(parent, 0)
	defer release()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), stop) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	w := extracttest.Window("2026-01-01", "2026-01-02")
	for _, c := range []struct {
		err  error
		want string
	}{
		{&reconcile.VerifyError{Counted: 5, Extracted: 4, Windows: []extract.Window{w}}, "the service counts 5 results and sends 4, also when it is asked again in the windows 2026-01-01 00:00:00/2026-01-02 00:00:00: its counts do not agree with its pages; nothing was written: `formetl doctor` shows what the service honours"},
		{&account.NoFormsError{Patterns: []string{"a*"}, Chosen: []string{"b"}}, "no form matches a* and --form b; `formetl forms` lists those of the account"},
		{&account.FormsError{Forms: 3, Errors: []error{errors.New("one"), errors.New("two")}}, "2 of 3 forms failed:\none\ntwo"},
		{&account.FormsError{Forms: 1, Errors: []error{errors.New("one")}}, "one"},
		{&output.OutputsError{Errors: []error{errors.New("one"), errors.New("two")}}, "one\ntwo"},
		{&interval.RangeError{Window: extract.Window{From: w.To, To: w.From}, Endless: true}, "the range begins at 2026-01-02 00:00:00, and it ends before, at 2026-01-01 00:00:00 (now, less `settle`): give an earlier `from`"},
		{&interval.RangeError{Window: extract.Window{From: w.To, To: w.From}}, "the range 2026-01-02 00:00:00/2026-01-01 00:00:00 holds no time: `to` is exclusive and must lie after `from`"},
		{&checkpoint.FolderError{Folder: "/s", Err: errors.New("full")}, "cannot keep results in /s: full; free space, or choose another folder with --state"},
		{&output.StdoutError{Err: errors.New("closed")}, "cannot write to standard output: closed"},
		{&definition.UnsupportedError{What: "x", Remedy: "do y"}, "x is not supported by this version; do y"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%T: %s", c.err, got)
		}
	}
}
