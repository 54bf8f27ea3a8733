package cli

import (
	"bytes"
	"encoding/csv"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// previewFlags are the flags of preview.
type previewFlags struct {
	asked
	schema               string
	limit                int64
	latest, asJSON, wide bool
}

func previewCommand(p *process) *cobra.Command {
	var f previewFlags
	cmd := &cobra.Command{
		Use:   "preview [DEFINITION] [--form FORM]",
		Short: "Show a few results of a form",
		Long: `Preview shows the first results of a form as a table, or the newest with --latest. It
sends one request for each hundred results, and writes no files. Without a definition,
flags give the service, the form, the range and the columns.

Texts of more than 40 characters are cut; --wide shows them in full.` + besideDefinition,
		Example: `  formetl preview feedback.yaml
  formetl preview --base-url https://fs1.example.com --account acme --form form1 --latest
  formetl preview --form form1 -n 3 --json`,
		Args: console.OptionalDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return preview(cmd, p, f, args) },
	}
	set := cmd.Flags()
	f.registerResults(set)
	f.given.RangeFlags.Register(set, "the definition's, or no limit")
	set.StringVar(&f.schema, "schema", "", "schema file with the columns and their types (default: the definition's)")
	set.Int64VarP(&f.limit, "limit", "n", 10, "number of results to show")
	set.BoolVar(&f.latest, "latest", false, "show the newest results first, by id")
	set.BoolVar(&f.wide, "wide", false, "show long texts in full")
	set.BoolVar(&f.asJSON, "json", false, "print as JSON")
	return cmd
}

func preview(cmd *cobra.Command, p *process, f previewFlags, files []string) error {
	if f.limit < 1 {
		return console.Usagef("--limit %d: give a number above 0", f.limit)
	}
	ctx := cmd.Context()
	def, common, err := f.openResults(cmd, p, files, "preview")
	if err != nil {
		return err
	}
	if def, err = def.For(f.form); f.schema != "" {
		def.Schema, err = definition.LoadSchema(f.schema, console.Secrets(ctx, p.lookup))
	}
	if err != nil {
		return err
	}
	q := pipelines.LookQuery{Form: f.form, Limit: f.limit, Latest: f.latest}
	var text bytes.Buffer
	if f.asJSON {
		if err := pipelines.Look(ctx, def, common, q, jsonout.JSON(), &text); err != nil {
			return err
		}
		return console.Print(p.stdout, plain.JSON(text.Bytes()))
	}
	if err := pipelines.Look(ctx, def, common, q, csvout.Format(), &text); err != nil {
		return err
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		return err
	}
	if !f.wide {
		for _, row := range rows[1:] {
			for i := range row {
				row[i] = plain.Cut(row[i], 40)
			}
		}
	}
	return console.Table(p.stdout, rows...)
}
