package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// process is what a command gets from its caller, and the flags that run and start share.
type process struct {
	stdout, stderr io.Writer
	lookup         console.Environment
	log            *console.Log

	queue, folder string
}

// Main runs one command of formetl-worker and returns its exit code. Data goes to stdout,
// everything else to stderr; lookup reads the environment.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) int {
	ctx, stopCatching := console.OnSignal(context.Background())
	defer stopCatching()
	stdout, stderr = console.Freed(ctx, stdout), console.Freed(ctx, stderr)
	log.SetOutput(io.Discard) // the standard library logs on its own; it may log bytes of an answer
	defer console.TuneCollector(lookup)()
	p := &process{stdout: stdout, stderr: stderr, lookup: lookup, log: console.NewLog(stderr, args)}
	root := console.Root(&cobra.Command{
		Use:   "formetl-worker",
		Short: "Run formetl's pipelines on Temporal, on several machines",
		Long: `formetl-worker runs pipeline definitions as Temporal workflows. You can start any
number of workers on any number of machines. Together they keep to the account's
request budget, if their state is in a bucket.

A worker needs the definitions in a folder, the keys that they refer to, and outputs
that all workers can reach: s3://, or a local path if there is only one worker. It
finds Temporal by TEMPORAL_ADDRESS and Temporal's other variables, or by a profile in
temporal.toml.`,
		Example: `  TEMPORAL_ADDRESS=temporal:7233 formetl-worker run --definitions /etc/formetl
  formetl-worker start feedback.yaml --definitions /etc/formetl --wait`,
	}, p.log)
	root.SetIn(stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.AddCommand(p.runCommand(), p.startCommand())
	for _, cmd := range root.Commands() {
		cmd.Flags().StringVar(&p.queue, "task-queue", "formetl", "Temporal task queue, the same for run and start")
		cmd.Flags().StringVar(&p.folder, "definitions", ".", "folder with the definitions that can be run")
	}
	return console.Run(ctx, stopCatching, root, args, p.log, func(err error, command string) string { return console.Hint(err, command, "") })
}

// Environ is for Temporal's configuration. It returns nil: no list of variables is needed.
func (p *process) Environ() []string { return nil }

// LookupEnv reads a variable of the environment, for Temporal's configuration.
func (p *process) LookupEnv(name string) (string, bool) { return p.lookup(name) }

// temporal returns the options of the connection to Temporal, read from the variables that
// Temporal's own programs use. With an API key the connection uses TLS.
func (p *process) temporal() (o client.Options, err error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{EnvLookup: p})
	if err != nil {
		return o, console.Usagef("the Temporal settings cannot be read: %w; check temporal.toml and the TEMPORAL_ variables", err)
	}
	profile.Address = cmp.Or(profile.Address, client.DefaultHostPort)
	profile.Namespace = cmp.Or(profile.Namespace, client.DefaultNamespace)
	profile.APIKey = strings.TrimSpace(profile.APIKey) // files of secrets end with a line feed
	if o, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{}); err != nil {
		return o, console.Usagef("the Temporal settings cannot be used: %w; check the TEMPORAL_TLS_ variables", err)
	}
	return o, nil
}

// dial connects to Temporal.
func (p *process) dial(ctx context.Context) (client.Client, error) {
	o, err := p.temporal()
	if err != nil {
		return nil, err
	}
	o.Logger = sdklog.NewStructuredLogger(p.log.Logger)
	connected, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, temporalError("connect to Temporal at "+o.HostPort, err)
	}
	return connected, nil
}

// temporalError returns the error for what failed at Temporal, with its exit code.
func temporalError(what string, err error) error {
	code := console.ExitTemporary
	denied, refused := errors.AsType[*serviceerror.PermissionDenied](err)
	_, noNamespace := errors.AsType[*serviceerror.NamespaceNotFound](err)
	_, invalid := errors.AsType[*serviceerror.InvalidArgument](err)
	switch {
	case refused:
		code, err = console.ExitNoPermission, denied
	case noNamespace || invalid:
		code = console.ExitConfig
	}
	return &console.CodeError{Code: code, Err: fmt.Errorf("cannot %s: %w; check TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and TEMPORAL_API_KEY, and whether the Temporal server is running", what, err)}
}

// load reads a definition from the folder of --definitions, and checks that a worker can
// run it.
func (p *process) load(s Source, o definition.LoadOptions) (*definition.Definition, error) {
	if !filepath.IsLocal(filepath.FromSlash(s.Path)) {
		return nil, &console.CodeError{Code: console.ExitConfig, Err: fmt.Errorf("the definition %q is not in the folder of --definitions: give its path within that folder, such as feedback.yaml", s.Path)}
	}
	o.Variables = s.Variables
	def, err := definition.Load(filepath.Join(p.folder, filepath.FromSlash(s.Path)), o)
	if err != nil {
		return nil, err
	}
	for _, out := range def.Outputs {
		if out.Path == definition.StdoutPath {
			return nil, &console.CodeError{Code: console.ExitConfig, Err: fmt.Errorf("%s writes to standard output, which nobody reads on a worker: change the output's path to a file or folder", def.File)}
		}
	}
	return def, nil
}

// runFlags are the flags of the command run.
type runFlags struct {
	state, keyFile string
	activities     int
}

func (p *process) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a worker, which carries out the workflows of a task queue until it is stopped",
		Long: `Run works until you stop it (Ctrl-C or SIGTERM). It then keeps what it has read, and
other workers with the same state go on at once. If a worker was killed or its machine
is gone, others go on after about a minute.`,
		Example: `  TEMPORAL_ADDRESS=temporal:7233 formetl-worker run --definitions /etc/formetl
  TEMPORAL_ADDRESS=… TEMPORAL_NAMESPACE=… TEMPORAL_API_KEY=… formetl-worker run`,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), f) },
	}
	set := cmd.Flags()
	set.StringVar(&f.state, "state", "", "folder or s3://bucket/prefix/ where runs keep what they have read until they end, and count their requests; give each run the same (default: the definition's, else FORMETL_STATE or .formetl/ beside it)")
	set.StringVar(&f.keyFile, "api-key-file", "", "file that contains the API key of the form service, instead of the definitions' references")
	set.IntVar(&f.activities, "activities", 16, "how many forms this worker runs at once, within the definitions' request budgets")
	return cmd
}

const (
	// stopWithin is how long a worker that is told to stop waits for its activities, which
	// keep what they have read for the next try. The process ends soon after, see console.Run.
	stopWithin = 2 * time.Second
	// mostSilence is the longest time between two heartbeats that are sent to Temporal, and so how
	// long a cancellation may take to arrive.
	mostSilence = 5 * time.Second
)

// run runs a worker until ctx ends.
func (p *process) run(ctx context.Context, f runFlags) error {
	if f.activities < 1 {
		return console.Usagef("--activities %d: no form would ever run; give 1 or more", f.activities)
	}
	state, err := console.StatePath(f.state)
	if err != nil {
		return err
	}
	if err := p.log.Start(slog.LevelInfo); err != nil {
		return err
	}
	connected, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer connected.Close()
	host, _ := os.Hostname() // the host's name, for people
	w := worker.New(connected, p.queue, worker.Options{
		MaxConcurrentActivityExecutionSize: f.activities, WorkerStopTimeout: stopWithin,
		MaxHeartbeatThrottleInterval: mostSilence, DefaultHeartbeatThrottleInterval: mostSilence,
		DisableRegistrationAliasing: true, Identity: fmt.Sprintf("formetl-worker %d on %s", os.Getpid(), host),
	})
	w.RegisterWorkflow(Pipeline)
	w.RegisterActivity(&Activities{
		State: state, BuiltIn: console.BuiltIn, Log: p.log.Logger, At: console.FaultPoint(p.lookup),
		Load: func(ctx context.Context, s Source) (*definition.Definition, error) {
			o := console.Checks(ctx, p.lookup)
			if f.keyFile != "" {
				var err error
				if o.Key, err = definition.KeyFromFile(f.keyFile); err != nil {
					return nil, &console.CodeError{Code: console.ExitConfig, Err: fmt.Errorf("--api-key-file: %w", err)}
				}
			}
			return p.load(s, o)
		},
		Client: pipelines.ClientOptions{UserAgent: "formetl-worker/" + console.Version()},
	})
	if err := w.Start(); err != nil {
		return temporalError("start the worker for the task queue "+p.queue, err)
	}
	p.log.LogAttrs(ctx, slog.LevelInfo, "the worker is ready", slog.String("task_queue", p.queue), slog.String("definitions", p.folder), slog.Int("activities", f.activities))
	<-ctx.Done()
	w.Stop()
	return &console.ServedError{}
}

// startFlags are the flags of the command start.
type startFlags struct {
	console.DefinitionFlags
	wait bool
}

func (p *process) startCommand() *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use:   "start DEFINITION",
		Short: "Start the workflow of a definition, which a worker carries out",
		Long: `Start checks a definition and hands it to Temporal (at TEMPORAL_ADDRESS), which has a
worker run it: one that you started with formetl-worker run. DEFINITION is its path
relative to --definitions, where each worker reads its own copy. Its run is formetl/NAME in
Temporal, after the definition's name:, so only one can be under way: a second start
changes nothing and ends with 75.`,
		Example: `  formetl-worker start feedback.yaml
  formetl-worker start feedback.yaml --definitions /etc/formetl --form form1 --wait`,
		Args: console.OneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return p.start(cmd.Context(), &f, args[0]) },
	}
	set := cmd.Flags()
	set.StringArrayVar(&f.Forms, "form", nil, "run only this form of the definition; repeatable (default: all of them)")
	f.RegisterVariables(set)
	set.BoolVar(&f.wait, "wait", false, "wait until the run ends, and end with its forms' gravest exit code (default: end once Temporal has the run)")
	return cmd
}

func (p *process) start(ctx context.Context, f *startFlags, path string) error {
	variables, err := f.Variables()
	if err != nil {
		return console.Usagef("%w", err)
	}
	if err := p.log.Start(slog.LevelWarn); err != nil {
		return err
	}
	in := PipelineInput{Source: Source{Path: filepath.ToSlash(filepath.Clean(path)), Variables: variables}, Forms: f.Forms}
	o := console.Checks(ctx, p.lookup)
	o.WithoutSecrets = true
	def, err := p.load(in.Source, o)
	if err != nil {
		return err
	}
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	id := PipelineID(def.Name)
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: p.queue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, Pipeline, in)
	switch {
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		return &console.CodeError{Code: console.ExitTemporary, Err: fmt.Errorf("the workflow %s is already running: start it again when it has ended", id)}
	case err != nil:
		return temporalError("start the workflow "+id, err)
	}
	fmt.Fprintf(p.stderr, "started the workflow %s (run %s); without --wait, Temporal alone shows how it ends\n", id, run.GetRunID())
	if !f.wait {
		return nil
	}
	var end PipelineEnd
	if err := run.Get(ctx, &end); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		code, text := codeOf(err)
		return &console.CodeError{Code: code, Err: fmt.Errorf("%s: %s", def.Name, text)}
	}
	failed := &pipelines.FormsError{Forms: len(end.Forms)}
	for _, form := range end.Forms {
		if form.Code != console.ExitOK {
			failed.Errors = append(failed.Errors, &console.CodeError{Code: form.Code, Err: fmt.Errorf("form %s: %s", form.Form, strings.TrimPrefix(form.Error, "form "+form.Form+": "))})
		}
		for _, o := range form.Outputs {
			fmt.Fprintf(p.stdout, "%s\t%s\t%d\t%s\n", def.Name, form.Form, o.Rows, o.Path)
		}
	}
	return failed.OrNil()
}
