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
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// Activities are what a worker does for workflows.
type Activities struct {
	// Folder holds the definitions. Others are not read.
	Folder string
	// State is the folder of this worker for what only it needs.
	State string
	// Load reads a definition's file.
	Load func(ctx context.Context, file string, variables map[string]string) (*definition.Definition, error)
	// Tables are the formats and destinations of the program.
	Tables func(*slog.Logger) output.Tables
	Client account.ClientOptions
	Log    *slog.Logger
	// At is pipelines.Options.At.
	At func(string)

	gates   *gates
	folders *folders
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
		o := a.options(def, log)
		o.Forms = in.Forms
		forms, clashes, err := pipelines.SharedForms(ctx, def, o)
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

// Plan opens the outputs of a form, decides what is read, and plans it.
func (a *Activities) Plan(ctx context.Context, in Step) (end *PlanEnd, err error) {
	err = a.step(ctx, in, func(ctx context.Context, def *definition.Definition, o pipelines.Options) error {
		plan, report, err := pipelines.PlanForm(ctx, def, o, in.Form)
		if err == nil {
			end = planEnd(ctx, o, in, plan, report)
		}
		return err
	})
	return end, err
}

// planEnd is what a workflow is told of how a run goes on. Without a plan it has ended.
func planEnd(ctx context.Context, o pipelines.Options, in Step, plan *pipelines.SharedPlan, report *pipelines.FormReport) *PlanEnd {
	end := &PlanEnd{Requests: report.Requests.Minus(in.Spent)}
	if plan == nil {
		end.Done = ended(ctx, o, in, report)
		return end
	}
	o.Logger.LogAttrs(ctx, slog.LevelInfo, "workers share the run", slog.String("form", in.Form),
		slog.Int("windows", plan.Windows), slog.Int("groups_to_read", plan.Groups), slog.Int("shares_to_stage", plan.Shares))
	end.Of, end.Groups, end.Shares, end.Windows, end.Results = plan.Of, plan.Groups, plan.Shares, plan.Windows, plan.Results
	return end
}

// Read reads a group of windows of the plan.
func (a *Activities) Read(ctx context.Context, in Step) (end *ReadEnd, err error) {
	err = a.step(ctx, in, func(ctx context.Context, def *definition.Definition, o pipelines.Options) error {
		read, err := pipelines.ReadGroup(ctx, def, o, in.Form, in.Group)
		if gone(ctx, o, err) {
			end = &ReadEnd{Gone: true}
			return nil
		}
		if err != nil {
			return err
		}
		if read.Left != "" {
			o.Logger.LogAttrs(ctx, slog.LevelWarn, "groups of windows are left to Reconcile", slog.String("form", in.Form), slog.Int("group", in.Group), slog.String("reason", read.Left))
		}
		o.Logger.LogAttrs(ctx, slog.LevelInfo, "a group of windows is over", slog.String("form", in.Form), slog.Int("group", in.Group),
			slog.Int("windows", read.Windows), slog.Int64("results", read.Results), slog.Int64("requests", read.Requests.All()))
		end = &ReadEnd{Windows: read.Windows, Results: read.Results, Requests: read.Requests, Left: read.Left != ""}
		return nil
	})
	return end, err
}

// gone tells whether an error means that the workflow has to plan again: another run came
// between, or what it read is damaged.
func gone(ctx context.Context, o pipelines.Options, err error) bool {
	if !errors.Is(err, checkpoint.ErrNoPlan) {
		return false
	}
	o.Logger.LogAttrs(ctx, slog.LevelWarn, "the run cannot go on from its plan; the workflow plans again", slog.String("error", err.Error()))
	return true
}

// Reconcile makes what was read agree. It may ask for more groups to be read.
func (a *Activities) Reconcile(ctx context.Context, in Step) (end *PlanEnd, err error) {
	err = a.step(ctx, in, func(ctx context.Context, def *definition.Definition, o pipelines.Options) error {
		plan, report, err := pipelines.ReconcileForm(ctx, def, o, in.Form)
		if err == nil {
			end = planEnd(ctx, o, in, plan, report)
		}
		return err
	})
	return end, err
}

// Stage stages a share of the parts.
func (a *Activities) Stage(ctx context.Context, in Step) (end *StageEnd, err error) {
	err = a.step(ctx, in, func(ctx context.Context, def *definition.Definition, o pipelines.Options) error {
		err := pipelines.StageShare(ctx, def, o, in.Form, in.Group)
		if gone(ctx, o, err) {
			end = &StageEnd{Gone: true}
			return nil
		}
		if err != nil {
			return err
		}
		o.Logger.LogAttrs(ctx, slog.LevelInfo, "a share of the parts is staged", slog.String("form", in.Form), slog.Int("share", in.Group))
		end = &StageEnd{}
		return nil
	})
	return end, err
}

// Commit commits what is staged.
func (a *Activities) Commit(ctx context.Context, in Step) (end *CommitEnd, err error) {
	err = a.step(ctx, in, func(ctx context.Context, def *definition.Definition, o pipelines.Options) error {
		report, err := pipelines.CommitForm(ctx, def, o, in.Form)
		if gone(ctx, o, err) {
			end = &CommitEnd{Gone: true}
			return nil
		}
		if err == nil {
			end = &CommitEnd{Done: ended(ctx, o, in, report)}
		}
		return err
	})
	return end, err
}

// End gives up the run of a form.
func (a *Activities) End(ctx context.Context, in Step) error {
	return a.step(ctx, in, func(ctx context.Context, def *definition.Definition, o pipelines.Options) error {
		return pipelines.EndForm(ctx, def, o, in.Form)
	})
}

// step does a step of a form's run.
func (a *Activities) step(ctx context.Context, in Step, do func(context.Context, *definition.Definition, pipelines.Options) error) error {
	return a.do(ctx, func(ctx context.Context, log *slog.Logger, p *progress) error {
		def, err := a.definition(ctx, in.Source, p)
		if err != nil {
			return err
		}
		info := activity.GetInfo(ctx)
		o := pipelines.Options{Options: a.options(def, log.With(slog.String("pipeline", def.Name))), Progress: p.note, At: a.At}
		o.Client.Met = in.Spent.All() > 0 // by an earlier activity of the run
		o.Shared = &pipelines.Shared{
			Owner: info.WorkflowExecution.ID, Run: in.Run, Try: int(info.Attempt), Decided: in.Decided,
			Spent: in.Spent, GroupRequests: in.GroupRequests, Of: in.Of, Alone: in.Alone,
		}
		return do(ctx, def, o)
	})
}

// options are those of every run of this worker.
func (a *Activities) options(def *definition.Definition, log *slog.Logger) account.Options {
	tables := a.Tables(log)
	o := account.Options{Tables: tables, Logger: log, Client: a.Client}
	o.Client.Budget = a.gates.of(def)
	o.Tables.Open = func(ctx context.Context, root string, out definition.Output) (load.Destination, error) {
		dest, err := tables.Open(ctx, root, out)
		if d, ok := dest.(*local.Destination); ok && err == nil {
			return folder{d, root, a.folders}, nil
		}
		return dest, err
	}
	return o
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
	def.State = a.State
	return def, shareable(def)
}

// shareable tells why several workers cannot run a definition.
func shareable(def *definition.Definition) error {
	if !def.CheckpointAtDestination {
		return &exit.Error{Code: exit.Config, Err: fmt.Errorf("%s: workers find what others have read at the destination alone; write `checkpoint: destination`", def.File)}
	}
	for _, o := range def.Outputs {
		if !o.Lasting() {
			return &exit.Error{Code: exit.Config, Err: fmt.Errorf("%s: the output %s is another one for each run, or standard output, so that no other worker finds it; write a path without {run_id}", def.File, o.Path)}
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
