package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

type inferFlags struct {
	service                             serviceFlags
	form, output, base, names, from, to string
	sample                              int
	force, pii                          bool
}

func (a *app) schemaInferCommand() *cobra.Command {
	var f inferFlags
	cmd := &cobra.Command{
		Use:   "infer --form FORM [-o FILE]",
		Short: "Write a schema file from a live form",
		Long: `Infer makes a schema file of a form's headings and a sample of its results: the
first of the range, the last, and pages spread evenly between them. A request
brings a hundred results, so that the default sample costs about ten.

A column has another type than string only where every sampled value fits it and
nothing is lost by it. Leading zeros, phone numbers, ids and dates such as
12/31/2025 stay strings: a type with a format declares them. Comments show each
column's label and say why its type was chosen; they hold no values.

With --base, or --force where FILE is there, the columns of that schema file keep
their names, types and rules; labels follow the form, new columns come at the
end, and comments say where the sample does not fit what is declared. Comments
of your own are not kept.`,
		Example: `  formetl schema infer --base-url https://fs1.example.com --account acme --form form1 -o form1.schema.yaml
  formetl schema infer --form form1 --names id --from 2026-01-01 --sample 5000
  formetl schema infer --form form1 --pii -o form1.schema.yaml --force
  formetl schema infer --form form1 --base form1.schema.yaml | diff form1.schema.yaml -`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.schemaInfer(cmd.Context(), f) },
	}
	f.service.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.form, "form", "", "the form's directory")
	flags.StringVarP(&f.output, "output", "o", definition.StdoutPath, "file to write, - for standard output")
	flags.StringVar(&f.base, "base", "", "schema file whose columns keep their names, types and rules")
	flags.IntVar(&f.sample, "sample", pipelines.DefaultSample, "about how many results to look at")
	flags.BoolVar(&f.pii, "pii", false, "mark columns that look like personal data, for you to confirm")
	flags.StringVar(&f.names, "names", "label", "columns are named by label or id")
	flags.StringVar(&f.from, "from", "", "sample from here on, wall clock of the account's zone")
	flags.StringVar(&f.to, "to", "", "sample up to here, exclusive")
	flags.BoolVar(&f.force, "force", false, "write the file anew if it is there; without --base it is the base")
	return cmd
}

func (a *app) schemaInfer(ctx context.Context, f inferFlags) error {
	if err := checkForm(f.form); err != nil {
		return err
	}
	if f.sample < 1 || f.sample > pipelines.MaxSample {
		return fmt.Errorf("--sample %d: give 1 to %d", f.sample, pipelines.MaxSample)
	}
	labels, err := byLabel(f.names)
	if err != nil {
		return err
	}
	source, err := f.service.source(a)
	if err != nil {
		return err
	}
	options := pipelines.Options{Tables: tables(), Client: clientOptions()}
	if err := parseRange(f.from, f.to, &options); err != nil {
		return err
	}
	log, err := a.beginWith(levelWarn, &options)
	if err != nil {
		return err
	}
	base, err := f.baseSchema()
	if err != nil {
		return err
	}
	state, err := stateFolder("")
	if err != nil {
		return err
	}
	def := &definition.Definition{Name: "schema", State: state, Source: source, Forms: []string{f.form}, Labels: labels}
	inferred, err := pipelines.InferSchema(ctx, def, options, f.form, pipelines.InferOptions{Sample: f.sample, Base: base, Personal: f.pii})
	if err != nil {
		return err
	}
	return a.writeInferred(f, inferred, base != nil, log)
}

func (f *inferFlags) toFile() bool { return f.output != definition.StdoutPath && f.output != "" }

// baseSchema reads the schema that the new one goes on from, nil for none. A
// file that is there and cannot be read as a schema stays as it is: somebody
// may have made a mistake in a schema that took hours.
func (f *inferFlags) baseSchema() (*schemas.Schema, error) {
	there := false
	if f.toFile() {
		_, err := os.Lstat(f.output)
		there = err == nil
	}
	switch {
	case there && !f.force:
		return nil, &load.CreateError{Op: "write", Path: f.output, Hint: "give another name, or --force to replace it", Err: fs.ErrExist}
	case f.base != "":
		return definition.LoadSchema(f.base)
	case !there:
		return nil, nil
	}
	return definition.LoadSchema(f.output)
}

func (a *app) writeInferred(f inferFlags, inferred *pipelines.InferredSchema, based bool, log *logs) error {
	data, err := definition.FormatSchema(inferred.Schema, inferred.Notes)
	if err != nil {
		return err
	}
	if !f.toFile() {
		return a.print(data)
	}
	if err := renameio.WriteFile(f.output, data, 0o640); err != nil {
		return &load.CreateError{Op: "write", Path: f.output, Hint: "give a file in a folder that is there and can be written to", Err: err}
	}
	told := fmt.Sprintf("%s: %s to %s", f.form, plural(len(inferred.Schema.Columns), "column"), f.output)
	if based {
		told += ": " + changesText(inferred)
	}
	log.tell(levelInfo, told)
	return nil
}

// changesText sums up what became of the columns that were there before.
func changesText(in *pipelines.InferredSchema) string {
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

// byLabel reads --names.
func byLabel(names string) (bool, error) {
	if names != "label" && names != "id" {
		return false, fmt.Errorf("--names %q: give label or id", names)
	}
	return names == "label", nil
}
