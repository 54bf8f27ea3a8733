package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

func validateCommand(p *process) *cobra.Command {
	strict := false
	f := console.DefinitionFlags{NoCommands: true} // a command that prints a secret may need the network
	cmd := &cobra.Command{
		Use:   "validate DEFINITION...",
		Short: "Check definitions and their schemas without the network",
		Long: `Validate checks definitions, and the schemas that they name, as a run does before
its first request. You can also give it a schema file alone.

It needs neither the network nor a secret (api_key, hmac_key, dsn). A variable or file
of a secret that is missing is only a warning, because it may exist on the machine
that runs the job. Probable mistakes, such as one schema for several forms, are
warnings too.

It shows all problems of all files, and ends with 78 if there is one. With --strict
it also ends with 78 if there is a warning.`,
		Example: `  formetl validate feedback.yaml
  formetl validate pipelines/*.yaml
  formetl validate feedback.yaml --strict
  formetl validate form1.schema.yaml`,
		Args: console.Definitions,
		RunE: func(cmd *cobra.Command, args []string) error { return validate(cmd.Context(), p, args, f, strict) },
	}
	f.RegisterVariables(cmd.Flags())
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings, such as a missing key, as problems")
	return cmd
}

func validate(ctx context.Context, p *process, files []string, f console.DefinitionFlags, strict bool) error {
	if err := p.log.Start(slog.LevelWarn); err != nil {
		return err
	}
	var failures []error
	for _, file := range files {
		check := checkDefinition
		if is, err := definition.Is(file); err == nil && !is {
			check = checkSchema
		}
		found, lacking, err := check(ctx, p, file, f)
		if err == nil && strict {
			err = lacking
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if lacking != nil {
			text := strings.TrimRight(lacking.Error(), "\n")
			p.log.Tell(slog.LevelWarn, "warning: "+strings.ReplaceAll(text, "\n", "\nwarning: "))
		}
		if err := console.Print(p.stdout, []byte(file+": ok ("+found+")\n")); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

// checkDefinition checks a definition. found says what the definition holds. lacking is an error
// with the warnings: the secrets that a run needs and that are missing, and what most likely is a
// mistake.
func checkDefinition(ctx context.Context, p *process, file string, f console.DefinitionFlags) (found string, lacking, err error) {
	defs, err := p.load(ctx, &f, []string{file}, withoutKey)
	if err != nil {
		return "", nil, err
	}
	def := defs[0]
	warnings, err := def.CheckForms(def.KnownForms())
	if err != nil {
		return "", nil, err
	}
	if warnings = append(def.Warnings, warnings...); len(warnings) > 0 {
		lacking = &definition.Error{File: file, Problems: warnings}
	}
	defs, noKey := p.load(ctx, &f, []string{file}, withKey)
	if noKey == nil {
		_, noKey = defs[0].CheckForms(def.KnownForms())
	}
	return contents(def), errors.Join(noKey, lacking), nil
}

// checkSchema checks a schema file, with the results of checkDefinition.
func checkSchema(_ context.Context, p *process, file string, _ console.DefinitionFlags) (found string, lacking, err error) {
	s, err := definition.LoadSchema(file, nil)
	if err != nil {
		return "", nil, err
	}
	_, lacking = definition.LoadSchema(file, &definition.Secrets{Lookup: p.lookup})
	return "schema of " + plain.Plural(len(s.Columns), "column"), lacking, nil
}

// contents says what a definition holds: "1 form, 2 outputs".
func contents(def *definition.Definition) string {
	names, globs := pipelines.NamedForms(def, pipelines.Options{})
	var parts []string
	if len(names) > 0 {
		parts = append(parts, plain.Plural(len(names), "form"))
	}
	if len(globs) > 0 {
		parts = append(parts, plain.Plural(len(globs), "pattern")+" of forms")
	}
	return strings.Join(append(parts, plain.Plural(len(slices.DeleteFunc(slices.Clone(def.Outputs), definition.Output.Exploded)), "output")), ", ")
}
