package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// Activities are what a worker does for workflows.
type Activities struct {
	// Folder holds the definitions. Others are not read.
	Folder string
	// State, where it is set, takes the place of the definitions' own.
	State string
	// Load reads a definition's file.
	Load func(ctx context.Context, file string, variables map[string]string) (*definition.Definition, error)
	// Tables are the formats and destinations of the program.
	Tables func(*slog.Logger) output.Tables
	Client account.ClientOptions
	Log    *slog.Logger
	// At is pipelines.Options.At.
	At func(string)
}

// beat is how often an activity tells Temporal that it works. A worker that is silent for
// 30 seconds is taken for dead.
const beat = 3 * time.Second

// List returns the forms of a definition, and those that cannot be run together.
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
		listed = &Listed{Pipeline: def.Name, Forms: forms}
		for _, clash := range clashes {
			listed.Clashes = append(listed.Clashes, FormEnd{Form: clash.Form, Code: exit.Code(clash), Error: clash.Error()})
		}
		return nil
	})
	return listed, err
}

// Run runs the definition for one form, as `formetl run --form` does. A further try resumes
// from what the one before had read.
func (a *Activities) Run(ctx context.Context, in FormInput) (end *FormEnd, err error) {
	err = a.do(ctx, func(ctx context.Context, log *slog.Logger, p *progress) error {
		def, err := a.definition(ctx, in.Source, p)
		if err != nil {
			return err
		}
		o := pipelines.Options{Options: a.options(log.With(slog.String("pipeline", def.Name)), in.Form), Progress: p.note, At: a.At}
		report, err := pipelines.Run(ctx, def, o)
		if err != nil {
			return err
		}
		end = formEnd(report.RunID, report.Forms[0])
		o.Logger.LogAttrs(ctx, slog.LevelInfo, "the form is written", slog.String("form", in.Form), slog.String("run_id", end.RunID), slog.Int64("rows", end.Rows), slog.Int("windows", end.Windows))
		return nil
	})
	return end, err
}

// options are those of a run of this worker, for some forms.
func (a *Activities) options(log *slog.Logger, forms ...string) account.Options {
	return account.Options{Tables: a.Tables(log), Logger: log, Client: a.Client, Forms: forms}
}

// definition reads the definition that a workflow names. Its secrets stay out of what is
// told of a bug in the activity.
func (a *Activities) definition(ctx context.Context, s Source, p *progress) (*definition.Definition, error) {
	if !filepath.IsLocal(filepath.FromSlash(s.Path)) || path.IsAbs(s.Path) {
		return nil, &exit.Error{Code: exit.Config, Err: fmt.Errorf("the definition %q does not lie in the folder of this worker's definitions; start the workflow with a path below --definitions", s.Path)}
	}
	def, err := a.Load(ctx, filepath.Join(a.Folder, filepath.FromSlash(s.Path)), s.Variables)
	if err != nil {
		return nil, err
	}
	p.secrets = def.Secrets()
	if a.State != "" {
		def.State, def.StateS3 = a.State, nil
	}
	return def, runnable(def)
}

// runnable tells why a worker cannot run a definition.
func runnable(def *definition.Definition) error {
	for _, o := range def.Outputs {
		if o.Path == definition.StdoutPath {
			return &exit.Error{Code: exit.Config, Err: fmt.Errorf("%s: nobody reads a worker's standard output; write a path", def.File)}
		}
	}
	return nil
}

// do does the work of an activity: it tells Temporal that the activity is alive, ends it
// in order when it is cancelled or the worker stops, and judges its error.
func (a *Activities) do(own context.Context, work func(context.Context, *slog.Logger, *progress) error) (err error) {
	ctx, cancel := context.WithCancelCause(own)
	info := activity.GetInfo(own)
	log := a.Log.With(slog.String("workflow", info.WorkflowExecution.ID), slog.String("activity", info.ActivityType.Name), slog.Int("try", int(info.Attempt)))
	p := &progress{}
	var beats sync.WaitGroup
	beats.Go(func() { p.beat(own, ctx.Done(), func() { cancel(&exit.StopError{Signal: syscall.SIGTERM}) }) })
	defer func() {
		if v := recover(); v != nil {
			err = errors.New(transport.RedactAll(fmt.Sprint("a bug: ", v), p.secrets...))
			log.LogAttrs(ctx, slog.LevelError, err.Error(), slog.String("stack", transport.RedactAll(string(debug.Stack()), p.secrets...)))
		}
		cancel(nil)
		beats.Wait()
		if err != nil {
			log.LogAttrs(own, slog.LevelWarn, "the activity failed", slog.String("error", err.Error()), slog.Int("exit_code", exit.Code(err)))
		}
		err = failure(own, err)
	}()
	return work(ctx, log, p)
}

// progress is how far an activity has come.
type progress struct {
	mu  sync.Mutex
	now Heartbeat

	secrets []transport.Secret // of the activity's definition; only the activity's goroutine uses them
}

func (p *progress) note(now pipelines.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = Heartbeat{Rows: now.Rows, Windows: now.WindowsDone, Requests: now.Requests}
}

// beat tells Temporal of the progress until the activity is done. It calls stop when the
// worker ends.
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

// relative returns a definition's path as workflows name it.
func relative(folder, file string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(folder, file)
	if err != nil || !filepath.IsLocal(rel) {
		return "", exit.Usagef("%s does not lie in %s: give the folder that the workers have with --definitions", file, folder)
	}
	return strings.TrimPrefix(filepath.ToSlash(rel), "./"), nil
}
