package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas/plain"
)

type verifyFlags struct {
	console.DefinitionFlags
	json, against bool
}

func verifyCommand(p *process) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify DEFINITION|PATH...",
		Short: "Check that the files of earlier runs are complete and undamaged",
		Long: `Verify reads every part that a manifest lists, and compares its size and SHA-256 with
the manifest. For a dataset it also checks the number of rows of each part, that no
result is in two parts, and that no file named like a part (part-*) is unlisted; it looks
at no other file. Of a table it checks that no row is missing. It changes nothing, and
prints the command that writes damaged parts again.

A definition is a YAML file. A PATH is the folder of a dataset or a single file with
a manifest, local or on s3://; set AWS_ENDPOINT_URL for a store other than AWS. It ends
with 65 if something is damaged or missing.`,
		Example: `  formetl verify feedback.yaml
  formetl verify feedback.yaml --against-service
  formetl verify lake/feedback/ --json`,
		Args: console.Arguments(1, math.MaxInt, "definitions, such as feedback.yaml, or paths, such as lake/feedback/"),
		RunE: func(cmd *cobra.Command, args []string) error { return runVerify(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	set.BoolVar(&f.against, "against-service", false, "also compare each window with the service's count of now, by a request each; results that came or went since the last run end it with 65 too")
	set.BoolVar(&f.json, "json", false, "print one JSON object")
	f.RegisterForms(set)
	f.RegisterKey(set, ", for --against-service, or if the definition names its forms by patterns")
	return cmd
}

// runVerify checks definitions and paths, one after the other. A path that cannot be checked
// does not stop the checks of the others.
func runVerify(ctx context.Context, p *process, args []string, f verifyFlags) error {
	all := &upkeep.Verification{Outputs: []*upkeep.Verified{}}
	var failures []error
	for _, arg := range args {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		found, err := verifyOne(ctx, p, arg, f)
		if err != nil {
			failures = append(failures, err)
		}
		all.Outputs, all.Requests = append(all.Outputs, found.Outputs...), all.Requests+found.Requests
	}
	if err := upkeep.Damaged(all.Outputs); err != nil {
		failures = append(failures, err)
	}
	all.Sound = len(failures) == 0
	if err := console.Show(p.stdout, f.json, all, verifyText(all)); err != nil {
		return err
	}
	return errors.Join(failures...)
}

// verifyText returns a line for people on each output, and one on each problem.
func verifyText(r *upkeep.Verification) string {
	var b strings.Builder
	for _, o := range r.Outputs {
		state := "ok"
		switch {
		case len(o.Problems) > 0:
			state = plain.Plural(len(o.Problems), "problem")
		case !o.Sound:
			state = "see the error message"
		case o.Manifest == nil:
			state = "see the note"
		}
		content := "nothing was checked"
		if m := o.Manifest; m != nil { // its rows are not only those of sound parts
			content = fmt.Sprintf("%s, %s, %s, last run %s", plain.Plural(o.Parts, "part"), plain.Plural(m.Rows, "row"), console.Covered(m), m.RunID)
		}
		fmt.Fprintf(&b, "%s: %s: %s\n", o.Path, content, state)
		for _, p := range o.Problems {
			text := strings.TrimPrefix(strings.Replace(p.Part, "../", "before ", 1)+": "+p.Text, ": ") // without a part the problem is the whole output's
			fmt.Fprintf(&b, "  %-10s  %s\n", p.Kind, text)
		}
		for _, note := range o.Notes {
			fmt.Fprintf(&b, "  note        %s\n", note)
		}
		for _, command := range o.Commands {
			fmt.Fprintf(&b, "  to fix it   %s\n", command)
		}
	}
	if r.Requests > 0 {
		fmt.Fprintf(&b, "sent %s to compare with the service's counts\n", plain.Plural(r.Requests, "request"))
	}
	return b.String()
}

// verifyOne checks a definition or a path. It returns a report even if something could not
// be checked.
func verifyOne(ctx context.Context, p *process, arg string, f verifyFlags) (*upkeep.Verification, error) {
	nothing := &upkeep.Verification{}
	if isDefinition(arg) {
		defs, options, err := p.openOutputs(ctx, &f.DefinitionFlags, []string{arg}, f.against)
		if err != nil {
			return nothing, err
		}
		return upkeep.Verify(ctx, defs[0], options, f.against)
	}
	if f.against {
		return nothing, console.Usagef("--against-service needs a definition, because only that names the service; %s is a path", arg)
	}
	options, err := p.start(slog.LevelWarn, new(console.RangeFlags).Options)
	if err != nil {
		return nothing, err
	}
	if info, err := os.Stat(arg); err == nil && info.IsDir() && !strings.HasSuffix(arg, "/") {
		arg += "/"
	}
	return upkeep.VerifyPath(ctx, arg, options, f.Given())
}

// isDefinition tells whether an argument is the file of a definition, and not an output of a run.
func isDefinition(arg string) bool {
	extension := strings.ToLower(filepath.Ext(arg))
	return extension == ".yaml" || extension == ".yml"
}
