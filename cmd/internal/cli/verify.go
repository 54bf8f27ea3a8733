package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/verified"
	"github.com/formetl/formetl/load/audit"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/verify"
)

type verifyFlags struct {
	flags.Definition
	json, against bool
}

func verifyCommand(p *process) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify DEFINITION|PATH...",
		Short: "Check what runs wrote against its manifests, part by part",
		Long: `Verify reads every part of an output back: its SHA-256, its rows, its columns, its
ids, and that no id is in the dataset twice. It changes nothing. A damaged part is
named with the command that writes it anew.

A definition is a YAML file. A PATH is a dataset's folder or a single file, also in
s3://, with its manifest. With --against-service the counts of a definition's
windows are compared too, by one request for each window.

It ends with 65 where something is damaged.`,
		Example: `  formetl verify feedback.yaml
  formetl verify feedback.yaml --against-service
  formetl verify lake/feedback/ --json`,
		Args: flags.Arguments(1, maxPaths, "definitions, such as feedback.yaml, or paths, such as lake/feedback/"),
		RunE: func(cmd *cobra.Command, args []string) error { return runVerify(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	set.BoolVar(&f.against, "against-service", false, "compare each window with the service's count, by one request for each")
	set.BoolVar(&f.json, "json", false, "print one JSON object")
	f.RegisterForms(set)
	f.RegisterKey(set, ", with --against-service")
	return cmd
}

// maxPaths is how many paths a command takes. A glob of a shell may give many.
const maxPaths = 10_000

// runVerify checks definitions and paths, one after the other. One that cannot be checked
// does not stop the others.
func runVerify(ctx context.Context, p *process, args []string, f verifyFlags) error {
	result := verified.Result{Outputs: []verified.Output{}}
	var failures []error
	var reports []*audit.Report
	for _, arg := range args {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		found, requests, err := verifyOne(ctx, p, arg, f)
		if err != nil {
			failures = append(failures, err)
		}
		reports, result.Requests = append(reports, found...), result.Requests+requests
		for _, r := range found {
			result.Outputs = append(result.Outputs, verified.Of(r, &definition.Definition{File: mender(arg), Given: f.Given()}))
		}
	}
	result.Sound = len(failures) == 0 && audit.Of(reports) == nil
	if f.json {
		if err := show.JSON(p.stdout, result); err != nil {
			return err
		}
	} else if err := show.Print(p.stdout, []byte(result.Text())); err != nil {
		return err
	}
	if err := audit.Of(reports); err != nil {
		failures = append(failures, err)
	}
	return failed(len(args), failures)
}

// verifyOne checks a definition or a path.
func verifyOne(ctx context.Context, p *process, arg string, f verifyFlags) ([]*audit.Report, int64, error) {
	if isDefinition(arg) {
		key := withoutKey
		if f.against {
			key = withKey
		}
		defs, options, err := p.open(ctx, &f.Definition, []string{arg}, slog.LevelWarn, key)
		if err != nil {
			return nil, 0, err
		}
		report, err := verify.Definition(ctx, defs[0], options, f.against)
		return report.Outputs, report.Requests, err
	}
	if f.against {
		return nil, 0, exit.Usagef("--against-service: %s is a path, and only a definition names the service", arg)
	}
	options, err := p.start(slog.LevelWarn, new(flags.Range).Options)
	if err != nil {
		return nil, 0, err
	}
	if info, err := os.Stat(arg); err == nil && info.IsDir() && !strings.HasSuffix(arg, "/") {
		arg += "/"
	}
	report, err := verify.Path(ctx, arg, options)
	if err != nil {
		return nil, 0, err
	}
	return []*audit.Report{report}, 0, nil
}

// mender is the definition that a run mends an output with, as a command names it.
func mender(arg string) string {
	if isDefinition(arg) {
		return arg
	}
	return "DEFINITION"
}

// isDefinition tells whether an argument names a definition, and not what a run wrote.
func isDefinition(arg string) bool {
	extension := strings.ToLower(filepath.Ext(arg))
	return extension == ".yaml" || extension == ".yml"
}
