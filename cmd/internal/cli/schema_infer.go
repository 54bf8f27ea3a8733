package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
)

type inferFlags struct {
	formFlags
	output     string
	sample     int
	force, pii bool
}

func schemaInferCommand(p *process) *cobra.Command {
	var f inferFlags
	cmd := &cobra.Command{
		Use:   "infer [DEFINITION] [--form FORM] [-o FILE]",
		Short: "Write a schema file from a live form",
		Long: `Infer makes a schema file of a form's headings and a sample of its results: the
first of the range, the last, and pages spread evenly between them. A request
brings a hundred results, so that the default sample costs about ten. A definition
gives the service, the form and the range; without one, flags name the service.

A column has another type than string only where every sampled value fits it and
nothing is lost by it. Leading zeros, phone numbers, ids and dates such as
12/31/2025 stay strings: a type with a format declares them. Comments show each
column's label and say why its type was chosen; they hold no values.

A file that is there is replaced by --force, with all that was edited in it;
schema diff tells how a schema file and the form differ.`,
		Example: `  formetl schema infer --base-url https://fs1.example.com --account acme --form form1 -o form1.schema.yaml
  formetl schema infer feedback.yaml -o feedback.schema.yaml
  formetl schema infer --form form1 --names id --from 2026-01-01 --sample 5000
  formetl schema infer --form form1 --pii -o form1.schema.yaml --force`,
		Args: console.Arguments(0, 1, "at most one definition, such as feedback.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error { return schemaInfer(cmd, p, f, args) },
	}
	set := cmd.Flags()
	f.register(set)
	f.span.RegisterSample(set)
	set.StringVarP(&f.output, "output", "o", definition.StdoutPath, "file to write, - for standard output")
	set.IntVar(&f.sample, "sample", infer.DefaultSample, "about how many results to look at")
	set.BoolVar(&f.pii, "pii", false, "mark columns that look like personal data, for you to confirm")
	set.BoolVar(&f.force, "force", false, "replace the file if it is there")
	return cmd
}

func schemaInfer(cmd *cobra.Command, p *process, f inferFlags, files []string) error {
	if f.sample < 1 || f.sample > infer.MaxSample {
		return console.Usagef("--sample %d: give 1 to %d", f.sample, infer.MaxSample)
	}
	def, options, form, err := f.open(cmd, p, files, "schema")
	if err != nil {
		return err
	}
	if f.toFile() {
		if err := mayWrite(f.output, f.force); err != nil {
			return err
		}
	}
	inferred, err := infer.Schema(cmd.Context(), def, options, form, infer.Options{Sample: f.sample, Personal: f.pii})
	if err != nil {
		return err
	}
	return writeInferred(p, f, form, inferred)
}

func (f *inferFlags) toFile() bool { return f.output != definition.StdoutPath && f.output != "" }

// writeInferred writes the schema file.
func writeInferred(p *process, f inferFlags, form string, inferred *infer.InferredSchema) error {
	data, err := definition.FormatSchema(inferred.Schema, inferred.Notes)
	if err != nil {
		return err
	}
	if !f.toFile() {
		return console.Print(p.stdout, data)
	}
	if err := writeFile(f.output, data, 0o640); err != nil {
		return err
	}
	p.log.Tell(slog.LevelInfo, fmt.Sprintf("%s: %s to %s", form, console.Plural(len(inferred.Schema.Columns), "column"), f.output))
	return nil
}
