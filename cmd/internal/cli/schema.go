package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

func schemaCommand(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Write a schema file from a form at the service, or show the columns of a definition",
		Args:  console.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: `  formetl schema infer --form form1 -o form1.schema.yaml
  formetl schema show feedback.yaml
  formetl schema definition > definition.schema.json`,
	}
	cmd.AddCommand(schemaInferCommand(p), schemaShowCommand(p), schemaDefinitionCommand(p), schemaDDLCommand(p), schemaDiffCommand(p), schemaLabelsCommand(p))
	return cmd
}

func schemaDefinitionCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:     "definition",
		Short:   "Print the JSON Schema with which text editors complete and check definitions",
		Example: `  formetl schema definition > definition.schema.json`,
		Args:    console.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			if err := p.log.Start(slog.LevelWarn); err != nil {
				return err
			}
			return console.Print(p.stdout, pipelines.DefinitionSchema)
		},
	}
}

type inferFlags struct {
	asked
	output     string
	sample     int
	force, pii bool
}

func schemaInferCommand(p *process) *cobra.Command {
	var f inferFlags
	cmd := &cobra.Command{
		Use:   "infer [DEFINITION] [--form FORM] [-o FILE]",
		Short: "Write a schema file from a form at the service",
		Long: `Infer writes a schema file from the form's headings and a sample of its results: the
first of the range, the last, and pages spread evenly between them. One request reads
a hundred results, so the default sample takes about ten requests. Without a
definition, flags give the service, the form and the range.

A column gets another type than string only if every sampled value fits it and nothing
is lost. Values with leading zeros, phone numbers, ids and dates such as 12/31/2025
stay strings; to change that, give the column a type with a format. Comments in the
file show each column's label and why its type was chosen; they contain no values.

--force replaces a file that already exists, including everything you edited in it.
To keep your edits, see with formetl schema diff what is new, and add it by hand.` + besideDefinition,
		Example: `  formetl schema infer --base-url https://fs1.example.com --account acme --form form1 -o form1.schema.yaml
  formetl schema infer feedback.yaml -o feedback.columns.yaml
  formetl schema infer --form form1 --names id --from 2026-01-01 --sample 5000
  formetl schema infer --form form1 --pii -o form1.schema.yaml --force`,
		Args: console.OptionalDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return schemaInfer(cmd, p, f, args) },
	}
	set := cmd.Flags()
	f.registerResults(set)
	f.given.RangeFlags.Register(set, "the definition's, or no limit")
	set.StringVarP(&f.output, "output", "o", definition.StdoutPath, "file to write, - for standard output")
	set.IntVar(&f.sample, "sample", upkeep.DefaultSample, "about how many results to read")
	set.BoolVar(&f.pii, "pii", false, "add a comment to columns that look like personal data; only pii: in a column protects it")
	set.BoolVar(&f.force, "force", false, "replace the file if it already exists")
	return cmd
}

func schemaInfer(cmd *cobra.Command, p *process, f inferFlags, files []string) error {
	if f.sample < 1 || f.sample > upkeep.MaxSample {
		return console.Usagef("--sample %d: give a number from 1 to %d", f.sample, upkeep.MaxSample)
	}
	def, options, err := f.openResults(cmd, p, files, "schema")
	if err != nil {
		return err
	}
	def, _ = def.For(f.form) // the schema may be what is to be written
	toFile := f.output != definition.StdoutPath && f.output != ""
	if toFile {
		if len(files) > 0 {
			_ = os.MkdirAll(filepath.Dir(f.output), 0o750) // the definition may be the first to name the folder; if it cannot be made, mayWrite fails
		}
		if err := mayWrite(f.output, f.force); err != nil {
			return err
		}
	}
	inferred, err := upkeep.InferSchema(cmd.Context(), def, options, f.form, upkeep.InferOptions{Sample: f.sample, Personal: f.pii})
	if err != nil {
		return err
	}
	data, err := definition.FormatSchema(inferred.Schema, inferred.Notes)
	if err != nil {
		return err
	}
	if inferred.Sampled.Results == 0 {
		p.log.Tell(slog.LevelWarn, "warning: "+f.form+": there are no results to tell the types from, so each item is a string, which takes no several values; infer from a range that has results")
	}
	if !toFile {
		return console.Print(p.stdout, data)
	}
	if err := writeFile(f.output, data, 0o640); err != nil {
		return err
	}
	p.log.Tell(slog.LevelInfo, fmt.Sprintf("%s: wrote %s to %s", f.form, plain.Plural(len(inferred.Schema.Columns), "column"), f.output))
	return nil
}

func schemaShowCommand(p *process) *cobra.Command {
	var f console.DefinitionFlags
	cmd := &cobra.Command{
		Use:   "show DEFINITION",
		Short: "Show the columns that a run of a definition writes",
		Long: `Show lists the columns that a run of the definition writes, and those with pii: drop,
which it leaves out. They come from its schema; without one from the manifest of an
earlier run; without that from a sample of the form's results, those of --from and --to
if you give them. Only that asks the service.`,
		Example: `  formetl schema show feedback.yaml
  formetl schema show feedback.yaml --form form1`,
		Args: console.OneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return schemaShow(cmd.Context(), p, args, f) },
	}
	f.RegisterForms(cmd.Flags())
	f.RegisterKey(cmd.Flags(), ", instead of the definition's reference")
	return cmd
}

func schemaShow(ctx context.Context, p *process, files []string, f console.DefinitionFlags) error {
	defs, options, err := p.openOutputs(ctx, &f, files, withoutKey)
	if err != nil {
		return err
	}
	from := map[string]string{
		upkeep.OriginSchema: "the definition's schema", upkeep.OriginManifest: "the manifest of an earlier run",
		upkeep.OriginSample: "the form's headings and a sample",
	}
	forms, err := pipelines.ListForms(ctx, defs[0], options)
	if err != nil {
		return err
	}
	text := ""
	return p.eachForm(ctx, &f, defs[0], options, forms, func(_ *definition.Definition, form string, found *upkeep.FormColumns) error {
		if len(forms) > 1 {
			text += "form " + form + "\n"
		}
		text += console.Columns("", columnRows(found.Schema.Columns))
		if err := console.Print(p.stdout, []byte(text)); err != nil {
			return err
		}
		p.log.Tell(slog.LevelInfo, fmt.Sprintf("form %s: %s, from %s", form, plain.Plural(len(found.Schema.Columns), "column"), from[found.Origin]))
		text = "\n" // an empty line between two tables
		return nil
	})
}

// eachForm visits forms of a definition that openOutputs has opened, with the definition and the
// columns of each. The API key is read only if the service must be asked for the columns.
func (p *process) eachForm(ctx context.Context, f *console.DefinitionFlags, def *definition.Definition, o pipelines.Options, forms []string, visit func(*definition.Definition, string, *upkeep.FormColumns) error) error {
	for _, form := range forms {
		own, err := def.For(form)
		if err != nil {
			return err
		}
		columns, err := upkeep.KnownColumns(ctx, own, o, form)
		if err == nil && columns == nil && def.Source.Key.IsZero() {
			if def, err = p.loadKey(ctx, f, def.File); err == nil {
				own, err = def.For(form)
			}
		}
		if err == nil && columns == nil {
			columns, err = upkeep.InferColumns(ctx, own, o, form)
		}
		if err == nil {
			err = visit(own, form, columns)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func columnRows(columns []schemas.Column) [][]string {
	rows := console.Rows([][]string{{"NAME", "TYPE", "FROM", "ON ERROR", "LABEL"}}, columns, func(c schemas.Column) []string {
		return []string{c.Name, c.Type.String(), c.From.String(), string(c.ErrorRule()), c.Label}
	})
	if !slices.ContainsFunc(columns, func(c schemas.Column) bool { return c.PII.String() != "" }) {
		return rows
	}
	rows[0] = slices.Insert(rows[0], 4, "PII")
	for i, c := range columns {
		rows[i+1] = slices.Insert(rows[i+1], 4, c.PII.String())
	}
	return rows
}
