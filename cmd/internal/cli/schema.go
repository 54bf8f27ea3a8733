package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

func (a *app) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Write a schema file from a live form, or show a definition's columns",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: `  formetl schema infer --form form1 -o form1.schema.yaml
  formetl schema show feedback.yaml
  formetl schema definition > definition.schema.json`,
	}
	cmd.AddCommand(a.schemaInferCommand(), a.schemaShowCommand(), a.schemaDefinitionCommand())
	cmd.AddCommand(a.schemaDDLCommand())
	cmd.AddCommand(a.schemaDiffCommand())
	return cmd
}

func (a *app) schemaDefinitionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "definition",
		Short:   "Print the JSON Schema of definitions, for editors",
		Example: `  formetl schema definition > definition.schema.json`,
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			if _, err := a.begin(levelWarn); err != nil {
				return err
			}
			return a.print(definition.JSONSchema())
		},
	}
}

type showFlags struct {
	definitionFlags
	json bool
}

func (a *app) schemaShowCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show DEFINITION",
		Short: "Show the columns that a definition gives",
		Long: `Show lists the columns that a run of the definition writes: those of its schema,
else those that an earlier run left in its manifest, else those that a sample
of the live form gives. Only the last asks the service.`,
		Example: `  formetl schema show feedback.yaml
  formetl schema show feedback.yaml --form form1 --json`,
		Args: oneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return a.schemaShow(cmd.Context(), args, f) },
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
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

func (a *app) schemaShow(ctx context.Context, files []string, f showFlags) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	log, err := a.beginWith(levelWarn, &options)
	if err != nil {
		return err
	}
	defs, err := f.load(a, files, withoutSecrets)
	if err != nil {
		return err
	}
	s := &columnsOf{a: a, flags: f, files: files, options: options, def: defs[0]}
	forms, err := s.forms(ctx)
	if err != nil {
		return err
	}
	shown := shownColumns{Pipeline: s.def.Name, Forms: []shownForm{}}
	for _, form := range forms {
		columns, err := s.of(ctx, form)
		if err != nil {
			return err
		}
		shown.Forms = append(shown.Forms, shownForm{Form: form, Origin: columns.Origin, Columns: showColumns(columns.Schema)})
	}
	if f.json {
		return a.printJSON(shown)
	}
	for i, form := range shown.Forms {
		if i > 0 {
			if err := a.print([]byte("\n")); err != nil {
				return err
			}
		}
		if err := a.printTable(form.rows()...); err != nil {
			return err
		}
		log.tell(levelInfo, fmt.Sprintf("form %s: %s, %s", form.Form, plural(len(form.Columns), "column"), originText(form.Origin)))
	}
	return nil
}

// columnsOf finds columns, and asks for the API key only when it must.
type columnsOf struct {
	a       *app
	flags   showFlags
	files   []string
	options pipelines.Options
	def     *definition.Definition
	live    bool // def holds the key
}

// withKey reads the definition again, now with its secret.
func (s *columnsOf) withKey() error {
	if s.live {
		return nil
	}
	defs, err := s.flags.load(s.a, s.files, withSecrets)
	if err != nil {
		return err
	}
	s.def, s.live = defs[0], true
	return nil
}

func (s *columnsOf) forms(ctx context.Context) ([]string, error) {
	if s.def.ListsForms() && len(s.options.Forms) == 0 {
		if err := s.withKey(); err != nil {
			return nil, err
		}
	}
	return pipelines.ListForms(ctx, s.def, s.options)
}

func (s *columnsOf) of(ctx context.Context, form string) (*pipelines.FormColumns, error) {
	columns, err := pipelines.KnownColumns(ctx, s.def, s.options, form)
	if err != nil || columns != nil {
		return columns, err
	}
	if err := s.withKey(); err != nil {
		return nil, err
	}
	return pipelines.InferColumns(ctx, s.def, s.options, form)
}

func showColumns(s *schemas.Schema) []shownColumn {
	columns := make([]shownColumn, len(s.Columns))
	for i, c := range s.Columns {
		columns[i] = shownColumn{Name: c.Name, Type: c.Type.String(), From: c.From.String(), Label: c.Label, OnError: string(c.OnError), PII: c.PII.String()}
		switch {
		case c.Inferred: // inferred columns never reject
			columns[i].OnError = string(schemas.OnErrorSetNull)
		case c.OnError == "":
			columns[i].OnError = string(schemas.OnErrorReject)
		}
	}
	return columns
}

func (f shownForm) rows() [][]string {
	rows := make([][]string, 0, 1+len(f.Columns))
	rows = append(rows, []string{"NAME", "TYPE", "FROM", "ON ERROR", "LABEL"})
	for _, c := range f.Columns {
		rows = append(rows, []string{c.Name, c.Type, c.From, c.OnError, c.Label})
	}
	if !slices.ContainsFunc(f.Columns, func(c shownColumn) bool { return c.PII != "" }) {
		return rows
	}
	rows[0] = slices.Insert(rows[0], 4, "PII")
	for i, c := range f.Columns {
		rows[i+1] = slices.Insert(rows[i+1], 4, c.PII)
	}
	return rows
}

func originText(origin string) string {
	switch origin {
	case pipelines.OriginSchema:
		return "from the definition's schema"
	case pipelines.OriginManifest:
		return "from the manifest of an earlier run"
	}
	return "from the form's headings and a sample"
}
