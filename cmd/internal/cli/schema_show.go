package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/schemas"
)

func schemaShowCommand(p *process) *cobra.Command {
	var f flags.Definition
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DEFINITION",
		Short: "Show the columns that a definition gives",
		Long: `Show lists the columns that a run of the definition writes: those of its schema,
else those that an earlier run left in its manifest, else those that a sample
of the live form gives. Only the last asks the service.`,
		Example: `  formetl schema show feedback.yaml
  formetl schema show feedback.yaml --form form1 --json`,
		Args: flags.OneDefinition(),
		RunE: func(cmd *cobra.Command, args []string) error { return schemaShow(cmd.Context(), p, args, f, asJSON) },
	}
	f.Register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// shownColumns is what schema show prints as JSON.
type shownColumns struct {
	Pipeline string      `json:"pipeline"`
	Forms    []shownForm `json:"forms"`
}

type shownForm struct {
	Form    string        `json:"form"`
	Origin  string        `json:"origin"`
	Columns []shownColumn `json:"columns"`
}

type shownColumn struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	From    string `json:"from"`
	Label   string `json:"label"`
	OnError string `json:"on_error"`
	PII     string `json:"pii,omitempty"` // the rule; what is dropped is in no output
}

func schemaShow(ctx context.Context, p *process, files []string, f flags.Definition, asJSON bool) error {
	defs, options, err := p.open(ctx, &f, files, slog.LevelWarn, withoutKey)
	if err != nil {
		return err
	}
	s := &columnSource{process: p, flags: f, file: files[0], options: options, def: defs[0]}
	forms, err := s.forms(ctx)
	if err != nil {
		return err
	}
	shown := shownColumns{Pipeline: s.def.Name, Forms: []shownForm{}}
	for _, form := range forms {
		columns, err := s.columns(ctx, form)
		if err != nil {
			return err
		}
		shown.Forms = append(shown.Forms, shownForm{Form: form, Origin: columns.Origin, Columns: showColumns(columns.Schema)})
	}
	if asJSON {
		return show.JSON(p.stdout, shown)
	}
	from := map[string]string{
		infer.OriginSchema: "the definition's schema", infer.OriginManifest: "the manifest of an earlier run",
		infer.OriginSample: "the form's headings and a sample",
	}
	for i, form := range shown.Forms {
		text := show.Columns("", form.rows())
		if i > 0 {
			text = "\n" + text
		}
		if err := show.Print(p.stdout, []byte(text)); err != nil {
			return err
		}
		p.log.Tell(slog.LevelInfo, fmt.Sprintf("form %s: %s, from %s", form.Form, show.Plural(len(form.Columns), "column"), from[form.Origin]))
	}
	return nil
}

// columnSource finds the columns of a definition's forms. It reads the API key
// only when it must ask the service.
type columnSource struct {
	process *process
	flags   flags.Definition
	file    string
	options account.Options
	def     *definition.Definition // without its key until withKey has read it
}

func (s *columnSource) withKey(ctx context.Context) error {
	if !s.def.Source.Key.IsZero() {
		return nil
	}
	defs, err := s.process.load(ctx, &s.flags, []string{s.file}, withKey)
	if err == nil {
		s.def = defs[0]
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

func showColumns(s *schemas.Schema) []shownColumn {
	columns := make([]shownColumn, len(s.Columns))
	for i, c := range s.Columns {
		columns[i] = shownColumn{c.Name, c.Type.String(), c.From.String(), c.Label, string(c.ErrorRule()), c.PII.String()}
	}
	return columns
}

func (f shownForm) rows() [][]string {
	rows := show.Rows([][]string{{"NAME", "TYPE", "FROM", "ON ERROR", "LABEL"}}, f.Columns, func(c shownColumn) []string {
		return []string{c.Name, c.Type, c.From, c.OnError, c.Label}
	})
	if !slices.ContainsFunc(f.Columns, func(c shownColumn) bool { return c.PII != "" }) {
		return rows
	}
	rows[0] = slices.Insert(rows[0], 4, "PII")
	for i, c := range f.Columns {
		rows[i+1] = slices.Insert(rows[i+1], 4, c.PII)
	}
	return rows
}
