package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/schemas"
)

func schemaShowCommand(p *process) *cobra.Command {
	var f console.DefinitionFlags
	cmd := &cobra.Command{
		Use:   "show DEFINITION",
		Short: "Show the columns that a definition gives",
		Long: `Show lists the columns that a run of the definition writes: those of its schema,
else those that an earlier run left in its manifest, else those that a sample
of the live form gives. Only the last asks the service.`,
		Example: `  formetl schema show feedback.yaml
  formetl schema show feedback.yaml --form form1`,
		Args: console.OneDefinition(),
		RunE: func(cmd *cobra.Command, args []string) error { return schemaShow(cmd.Context(), p, args, f) },
	}
	f.Register(cmd.Flags())
	return cmd
}

func schemaShow(ctx context.Context, p *process, files []string, f console.DefinitionFlags) error {
	defs, options, err := p.open(ctx, &f, files, slog.LevelWarn, withoutKey)
	if err != nil {
		return err
	}
	s := &columnSource{process: p, flags: f, file: files[0], options: options, def: defs[0]}
	forms, err := s.forms(ctx)
	if err != nil {
		return err
	}
	from := map[string]string{
		infer.OriginSchema: "the definition's schema", infer.OriginManifest: "the manifest of an earlier run",
		infer.OriginSample: "the form's headings and a sample",
	}
	for i, form := range forms {
		found, err := s.columns(ctx, form)
		if err != nil {
			return err
		}
		columns := found.Schema.Columns
		text := console.Columns("", columnRows(columns))
		if i > 0 {
			text = "\n" + text
		}
		if err := console.Print(p.stdout, []byte(text)); err != nil {
			return err
		}
		p.log.Tell(slog.LevelInfo, fmt.Sprintf("form %s: %s, from %s", form, console.Plural(len(columns), "column"), from[found.Origin]))
	}
	return nil
}

// columnSource finds the columns of a definition's forms. It reads the API key
// only when it must ask the service.
type columnSource struct {
	process *process
	flags   console.DefinitionFlags
	file    string
	options account.Options
	def     *definition.Definition // without its key until withKey has read it
}

func (s *columnSource) withKey(ctx context.Context) error {
	if !s.def.Source.Key.IsZero() {
		return nil
	}
	def, err := s.process.loadKey(ctx, &s.flags, s.file)
	if err == nil {
		s.def = def
	}
	return err
}

func (s *columnSource) forms(ctx context.Context) ([]string, error) {
	if account.NeedsForms(s.def, s.options) {
		if err := s.withKey(ctx); err != nil {
			return nil, err
		}
	}
	return account.ListForms(ctx, s.def, s.options)
}

func (s *columnSource) columns(ctx context.Context, form string) (*infer.FormColumns, error) {
	columns, err := infer.KnownColumns(ctx, s.def, s.options, form)
	if err != nil || columns != nil {
		return columns, err
	}
	if err := s.withKey(ctx); err != nil {
		return nil, err
	}
	return infer.Columns(ctx, s.def, s.options, form)
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
