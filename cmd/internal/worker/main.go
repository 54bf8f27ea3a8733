package worker

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/built"
	"github.com/formetl/formetl/cmd/internal/collector"
	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/program"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/pipelines/definition"
)

// process is what a command gets from the process: streams, environment and log.
type process struct {
	stdout, stderr io.Writer
	lookup         flags.Environment
	log            *telemetry.Log
}

// Main runs one command of formetl-worker and returns its exit code. Data goes to stdout,
// everything else to stderr; lookup reads the environment.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) int {
	ctx, settle := exit.OnSignal(context.Background())
	defer settle()
	stdout, stderr = program.Freed(ctx, stdout), program.Freed(ctx, stderr)
	log.SetOutput(io.Discard) // of the standard library, which may hold an answer's bytes
	defer collector.Tune(lookup)()
	p := &process{stdout: stdout, stderr: stderr, lookup: lookup, log: telemetry.NewLog(stderr, args)}
	root := rootCommand(p)
	root.SetIn(stdin)
	return program.Run(ctx, settle, root, args, p.log, func(err error, command string) string { return exit.Hint(err, command, "") })
}

func rootCommand(p *process) *cobra.Command {
	root := program.Root(&cobra.Command{
		Use:   "formetl-worker",
		Short: "Run formetl's pipelines on Temporal, on several machines",
		Long: `formetl-worker runs pipeline definitions as workflows of Temporal. Any number of
workers on any number of machines run its forms, and keep to the request budget of
the account together if their state is a bucket.

A worker needs the definitions in a folder, the keys that they refer to, and
outputs that all workers reach: s3://, or a local path with a single worker.`,
		Example: `  formetl-worker run --address temporal:7233 --definitions /etc/formetl
  formetl-worker start --definitions /etc/formetl /etc/formetl/feedback.yaml --wait`,
	}, p.log)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.AddCommand(runCommand(p), startCommand(p))
	return root
}

// load reads a definition without its keys, and checks that workers can run it.
func (p *process) load(ctx context.Context, file string, variables map[string]string) (*definition.Definition, error) {
	o := built.Checks(ctx, p.lookup)
	o.Variables, o.WithoutSecrets = variables, true
	def, err := definition.Load(file, o)
	if err != nil {
		return nil, err
	}
	return def, runnable(def)
}

// named are definitions, as workflows name them.
type named struct {
	def    *definition.Definition
	source Source
}

// definitions reads definitions that lie in the folder of the workers.
func (p *process) definitions(ctx context.Context, f *flags.Definition, folder string, files []string) ([]named, error) {
	variables, err := f.Variables()
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	if err := p.log.Start(levelOfCommands); err != nil {
		return nil, err
	}
	all := make([]named, 0, len(files))
	for _, file := range files {
		rel, err := relative(folder, file)
		if err != nil {
			return nil, err
		}
		def, err := p.load(ctx, file, variables)
		if err != nil {
			return nil, err
		}
		all = append(all, named{def, Source{Path: rel, Variables: variables}})
	}
	return all, nil
}

// absolute is a folder's absolute path.
func absolute(folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("find the folder %s: %w", folder, err)
	}
	return abs, nil
}

// levelOfCommands is the least level that short commands log.
const levelOfCommands = slog.LevelWarn
