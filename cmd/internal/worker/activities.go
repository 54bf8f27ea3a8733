package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// Activities are the activities with which a worker does the work of workflows.
type Activities struct {
	// State, if set, takes the place of the definitions' own state folders.
	State string
	// Load reads a definition.
	Load func(context.Context, Source) (*definition.Definition, error)
	// BuiltIn returns the formats and destinations of the program.
	BuiltIn func(*slog.Logger) output.BuiltIn
	Client  pipelines.ClientOptions
	Log     *slog.Logger
	// At is pipelines.Options.At.
	At func(string)
}

// beat is how often an activity tells Temporal that it works. A worker that is silent for
// 30 seconds is taken for dead.
const beat = 3 * time.Second

// List returns the forms of a definition, and those that cannot be run together (Listed.Clashes).
func (a *Activities) List(ctx context.Context, in PipelineInput) (listed *Listed, err error) {
	err = a.do(ctx, func(ctx context.Context, log *slog.Logger, p *progress) error {
		def, err := a.definition(ctx, in.Source, p)
		if err != nil {
			return err
		}
		forms, clashes, err := pipelines.FormsToRun(ctx, def, a.options(log, in.Forms...))
		if err != nil {
			return err
		}
		listed = &Listed{Pipeline: def.Name}
		for _, form := range forms {
			if clash := clashes[form]; clash != nil {
				listed.Clashes = append(listed.Clashes, FormEnd{Form: form, Code: console.ExitCode(clash), Error: clash.Error()})
			} else {
				listed.Forms = append(listed.Forms, form)
			}
		}
		return nil
	})
	return listed, err
}

// Run runs the definition for one form, as `formetl run --form` does. A further try of the activity
// resumes from what the try before had read.
func (a *Activities) Run(ctx context.Context, in FormInput) (end *FormEnd, err error) {
	err = a.do(ctx, func(ctx context.Context, log *slog.Logger, p *progress) error {
		def, err := a.definition(ctx, in.Source, p)
		if err != nil {
			return err
		}
		o := a.options(log.With(slog.String("pipeline", def.Name)), in.Form)
		o.Progress, o.At = p.note, a.At
		report, err := pipelines.Run(ctx, def, o)
		if err != nil {
			return err
		}
		form := report.Forms[0]
		end = &FormEnd{Form: form.Form, RunID: report.RunID, Rows: form.Rows, Requests: form.Requests}
		for _, out := range form.Outputs {
			end.Outputs = append(end.Outputs, OutputEnd{Path: out.Path, Rows: out.Rows})
		}
		o.Logger.LogAttrs(ctx, slog.LevelInfo, "the form was written", slog.String("form", in.Form), slog.String("run_id", end.RunID), slog.Int64("rows", end.Rows))
		return nil
	})
	return end, err
}

// options returns the options of a run on this worker, for the given forms.
func (a *Activities) options(log *slog.Logger, forms ...string) pipelines.Options {
	return pipelines.Options{BuiltIn: a.BuiltIn(log), Logger: log, Client: a.Client, Forms: forms}
}

// definition reads the definition that a workflow names. It remembers the definition's secrets, so
// that they are removed from the report of a bug in the activity.
func (a *Activities) definition(ctx context.Context, s Source, p *progress) (*definition.Definition, error) {
	def, err := a.Load(ctx, s)
	if err != nil {
		return nil, err
	}
	p.secrets = def.Secrets()
	if a.State != "" {
		def.State, def.StateS3 = a.State, nil
	}
	return def, nil
}

// do does the work of an activity. It tells Temporal that the activity is alive, ends the work in
// order when the activity is cancelled or the worker stops, and classifies the work's error.
func (a *Activities) do(own context.Context, work func(context.Context, *slog.Logger, *progress) error) (err error) {
	ctx, cancel := context.WithCancelCause(own)
	info := activity.GetInfo(own)
	log := a.Log.With(slog.String("workflow", info.WorkflowExecution.ID), slog.String("activity", info.ActivityType.Name), slog.Int("try", int(info.Attempt)))
	p := &progress{}
	var beats sync.WaitGroup
	beats.Go(func() { p.beat(own, ctx.Done(), func() { cancel(&console.StopError{Signal: syscall.SIGTERM}) }) })
	defer func() {
		if v := recover(); v != nil {
			err = errors.New(transport.RedactAll(fmt.Sprintf("a bug in formetl: %v; %s", v, console.ReportBug), p.secrets...))
			log.LogAttrs(ctx, slog.LevelError, err.Error(), slog.String("stack", transport.RedactAll(string(debug.Stack()), p.secrets...)))
		}
		cancel(nil)
		beats.Wait()
		if err != nil {
			what, code := "the activity failed", console.ExitCode(err)
			if own.Err() == nil && passes(code) {
				what = "the activity ended early; Temporal starts it again, and it goes on from what was read"
			}
			log.LogAttrs(own, slog.LevelWarn, what, slog.String("error", err.Error()), slog.Int("exit_code", code))
		}
		err = failure(own, err)
	}()
	return work(ctx, log, p)
}

// progress is the progress of an activity, which beat reports.
type progress struct {
	mu  sync.Mutex
	now Heartbeat

	secrets []transport.Secret // of the definition; only the activity's goroutine uses them
}

func (p *progress) note(now pipelines.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = Heartbeat{Rows: now.Rows, Windows: now.WindowsDone, Requests: now.Requests}
}

// beat reports the progress to Temporal until the activity is done. It calls stop when the
// worker stops.
func (p *progress) beat(ctx context.Context, done <-chan struct{}, stop func()) {
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	stopping := activity.GetWorkerStopChannel(ctx)
	for {
		p.mu.Lock()
		now := p.now
		p.mu.Unlock()
		activity.RecordHeartbeat(ctx, now)
		select {
		case <-done:
			return
		case <-stopping:
			stop()
			stopping = nil
		case <-ticks.C:
		}
	}
}

// An activity's error has the type "exit N"; N is the exit code with which a command would end. An
// activity is tried again only after exit code 75, or if it did not finish because the worker
// was stopped or the state could not be reached.

// typePrefix and the exit code are the type of an activity's error.
const typePrefix = "exit "

// mostText bounds the text of an error in the history of a workflow, in bytes.
const mostText = 500

// heldPause is how long a workflow waits for another run that holds the lease of an output.
const heldPause = 20 * time.Second

// failure returns the error of an activity for Temporal. own is the activity's context: if Temporal
// cancelled it, the activity reports that it was cancelled.
func failure(own context.Context, err error) error {
	if err == nil {
		return nil
	}
	if own.Err() != nil {
		return own.Err()
	}
	code := console.ExitCode(err)
	text := err.Error()
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + " …"
	}
	return temporal.NewApplicationErrorWithOptions(text, typePrefix+strconv.Itoa(code), temporal.ApplicationErrorOptions{
		NonRetryable: !passes(code), NextRetryDelay: pauseAfter(err),
	})
}

// passes tells whether a later try may succeed after an error with this exit code.
func passes(code int) bool {
	return code == console.ExitTemporary || code == console.ExitHungUp || code == console.ExitInterrupted || code == console.ExitTerminated
}

// pauseAfter returns how long to wait after err before the next try; 0: as the retry policy says.
func pauseAfter(err error) time.Duration {
	if b, ok := errors.AsType[*transport.BudgetError](err); ok && !b.Until.IsZero() {
		return max(time.Second, time.Until(b.Until))
	}
	if _, ok := errors.AsType[*load.HeldError](err); ok {
		return heldPause
	}
	if _, ok := errors.AsType[*console.StopError](err); ok {
		return time.Second
	}
	return 0
}

// codeOf returns the exit code and the text of an activity's error that a workflow got.
func codeOf(err error) (int, string) {
	if err == nil {
		return console.ExitOK, ""
	}
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		if n, wrong := strconv.Atoi(strings.TrimPrefix(failed.Type(), typePrefix)); wrong == nil && strings.HasPrefix(failed.Type(), typePrefix) {
			return n, failed.Message()
		}
		return console.ExitBug, failed.Message()
	}
	if temporal.IsCanceledError(err) {
		return console.ExitInterrupted, "the workflow was cancelled"
	}
	if _, ok := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](err); ok {
		return console.ExitTemporary, "another workflow of this definition is already running, and goes on"
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return console.ExitTemporary, fmt.Sprintf("not finished within its time limit: no worker is running (start one with `formetl-worker run`), or the work takes longer than Temporal allows (%v)", timeout)
	}
	return console.ExitBug, err.Error()
}
