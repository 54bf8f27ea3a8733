package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/formetl/formetl/cmd/internal/built"
	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/program"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/budget"
	"github.com/formetl/formetl/pipelines/definition"
)

const (
	// stopWithin is how long a worker that is told to stop waits for its activities, which
	// keep what they have read. The process ends soon after, see program.Run.
	stopWithin = 2 * time.Second
	// mostSilence is how seldom Temporal is told of an activity, and so how long a
	// cancellation may take to arrive.
	mostSilence = 5 * time.Second
)

// runFlags are the flags of run.
type runFlags struct {
	connection
	definitions, state, keyFile string
	activities                  int
}

func runCommand(p *process) *cobra.Command {
	f := runFlags{connection: connection{lookup: p.lookup}}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Work for the workflows of a task queue until stopped",
		Long: `Run works until it is stopped. A worker that stops in order keeps what its
activities have read, and other workers go on at once if they have the same state.
After kill -9 they go on when it has been silent for half a minute.`,
		Example: `  formetl-worker run --address temporal:7233 --definitions /etc/formetl
  TEMPORAL_ADDRESS=… TEMPORAL_NAMESPACE=… TEMPORAL_API_KEY=… formetl-worker run`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return work(cmd.Context(), p, &f) },
	}
	set := cmd.Flags()
	f.register(set)
	set.StringVar(&f.definitions, "definitions", ".", "folder of the definitions; others are not run")
	set.StringVar(&f.state, "state", "", "folder of budgets and checkpoints, or s3://bucket/prefix/ (default: the definition's)")
	set.StringVar(&f.keyFile, "api-key-file", "", "file that holds the API key of the form service, instead of the definitions' references")
	set.IntVar(&f.activities, "activities", 16, "most forms that this worker runs at once")
	return cmd
}

// work works until ctx ends.
func work(ctx context.Context, p *process, f *runFlags) error {
	if f.activities < 1 {
		return exit.Usagef("--activities %d: give 1 or more", f.activities)
	}
	folder, err := absolute(f.definitions)
	if err != nil {
		return err
	}
	state, err := flags.StatePath(f.state)
	if err != nil {
		return err
	}
	if err := p.log.Start(slog.LevelInfo); err != nil {
		return err
	}
	connected, err := f.dial(ctx, p)
	if err != nil {
		return err
	}
	defer connected.Close()
	w := newWorker(connected, f.queue, f.activities, &Activities{
		Folder: folder, State: state, Tables: built.Tables, Log: p.log.Logger, At: program.FaultPoint(p.lookup),
		Load: p.withKey(f.keyFile), Client: account.ClientOptions{UserAgent: userAgent(telemetry.Version()), Budgets: &budget.Budgets{}},
	})
	if err := w.Start(); err != nil {
		return temporalError("work for the task queue "+f.queue, err)
	}
	p.log.LogAttrs(ctx, slog.LevelInfo, "the worker works", slog.String("task_queue", f.queue), slog.String("definitions", folder), slog.Int("activities", f.activities))
	<-ctx.Done()
	w.Stop()
	return &exit.ServedError{}
}

// newWorker returns a worker with the workflow and the activities of pipelines.
func newWorker(c client.Client, queue string, most int, a *Activities) worker.Worker {
	host, _ := os.Hostname() // for people
	w := worker.New(c, queue, worker.Options{
		MaxConcurrentActivityExecutionSize: most, WorkerStopTimeout: stopWithin,
		MaxHeartbeatThrottleInterval: mostSilence, DefaultHeartbeatThrottleInterval: mostSilence,
		DisableRegistrationAliasing: true, Identity: fmt.Sprintf("formetl-worker %d on %s", os.Getpid(), host),
	})
	w.RegisterWorkflow(Pipeline)
	w.RegisterActivity(a)
	return w
}

// withKey returns how a worker reads definitions: with their keys, or the key in a file.
func (p *process) withKey(keyFile string) func(context.Context, string, map[string]string) (*definition.Definition, error) {
	return func(ctx context.Context, file string, variables map[string]string) (*definition.Definition, error) {
		o := built.Checks(ctx, p.lookup)
		o.Variables = variables
		if keyFile != "" {
			key, err := definition.KeyFromFile(keyFile)
			if err != nil {
				return nil, &exit.Error{Code: exit.Config, Err: fmt.Errorf("--api-key-file: %w", err)}
			}
			o.Key = key
		}
		return definition.Load(file, o)
	}
}
