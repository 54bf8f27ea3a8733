package cli

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/owned"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/schemas"
)

type inferFlags struct {
	formFlags
	output, base string
	sample       int
	force, pii   bool
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

With --base, or --force where FILE is there, the columns of that schema file keep
their names, types and rules; labels follow the form, new columns come at the
end, and comments say where the sample does not fit what is declared. Comments
of your own are not kept.`,
		Example: `  formetl schema infer --base-url https://fs1.example.com --account acme --form form1 -o form1.schema.yaml
  formetl schema infer feedback.yaml -o feedback.schema.yaml
  formetl schema infer --form form1 --names id --from 2026-01-01 --sample 5000
  formetl schema infer --form form1 --pii -o form1.schema.yaml --force
  formetl schema infer --form form1 --base form1.schema.yaml | diff form1.schema.yaml -`,
		Args: flags.Arguments(0, 1, "at most one definition, such as feedback.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error { return schemaInfer(cmd, p, f, args) },
	}
	set := cmd.Flags()
	f.register(set)
	f.span.RegisterSample(set)
	set.StringVarP(&f.output, "output", "o", definition.StdoutPath, "file to write, - for standard output")
	set.StringVar(&f.base, "base", "", "schema file whose columns keep their names, types and rules")
	set.IntVar(&f.sample, "sample", infer.DefaultSample, "about how many results to look at")
	set.BoolVar(&f.pii, "pii", false, "mark columns that look like personal data, for you to confirm")
	set.BoolVar(&f.force, "force", false, "write the file anew if it is there; without --base it is the base")
	return cmd
}

func schemaInfer(cmd *cobra.Command, p *process, f inferFlags, files []string) error {
	if f.sample < 1 || f.sample > infer.MaxSample {
		return exit.Usagef("--sample %d: give 1 to %d", f.sample, infer.MaxSample)
	}
	def, options, form, err := f.open(cmd, p, files, "schema")
	if err != nil {
		return err
	}
	base, err := f.baseSchema()
	if err != nil {
		return err
	}
	inferred, err := infer.Schema(cmd.Context(), def, options, form, infer.Options{Sample: f.sample, Base: base, Personal: f.pii})
	if err != nil {
		return err
	}
	return writeInferred(p, f, form, inferred, base != nil)
}

func (f *inferFlags) toFile() bool { return f.output != definition.StdoutPath && f.output != "" }

// baseSchema reads the schema that the new one follows, nil for none. An existing
// file that is no valid schema is an error even with --force. It may be somebody's
// work with a mistake in it.
func (f *inferFlags) baseSchema() (*schemas.Schema, error) {
	there := false
	if f.toFile() {
		_, err := os.Lstat(f.output)
		there = err == nil
	}
	switch {
	case there && owned.CheckOrdinary(f.output) != nil:
		return nil, owned.CheckOrdinary(f.output)
	case there && !f.force:
		return nil, &load.CreateError{Op: "write", Path: f.output, Hint: "give another name, or --force to replace it", Err: fs.ErrExist}
	case f.base != "":
		return definition.LoadSchema(f.base, nil)
	case !there:
		return nil, nil
	}
	return definition.LoadSchema(f.output, nil)
}

// writeInferred writes the schema file. based says that it follows an earlier one.
func writeInferred(p *process, f inferFlags, form string, inferred *infer.InferredSchema, based bool) error {
	data, err := definition.FormatSchema(inferred.Schema, inferred.Notes)
	if err != nil {
		return err
	}
	if !f.toFile() {
		return show.Print(p.stdout, data)
	}
	if err := maybe.WriteFile(f.output, data, 0o640); err != nil {
		return &load.CreateError{Op: "write", Path: f.output, Hint: "give a file in a folder that is there and can be written to", Err: err}
	}
	told := fmt.Sprintf("%s: %s to %s", form, show.Plural(len(inferred.Schema.Columns), "column"), f.output)
	if based {
		told += ": " + changesText(inferred)
	}
	p.log.Tell(slog.LevelInfo, told)
	return nil
}

// changesText sums up how the schema differs from the one that it follows.
func changesText(in *infer.InferredSchema) string {
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{{in.Added, "new"}, {in.Gone, "no longer on the form"}, {in.Misfits, "that values of the sample do not fit"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.text))
		}
	}
	if len(parts) == 0 {
		return "as they were"
	}
	return strings.Join(parts, ", ")
}
