package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
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
			return a.print(pipelines.DefinitionJSONSchema())
		},
	}
}

type inferFlags struct {
	service                       serviceFlags
	form, output, names, from, to string
	force                         bool
}

func (a *app) schemaInferCommand() *cobra.Command {
	var f inferFlags
	cmd := &cobra.Command{
		Use:   "infer --form FORM [-o FILE]",
		Short: "Write a schema file from a live form",
		Long: `Infer makes a schema file of a form's headings and a sample of its results, the
first and the last of the range. It costs a handful of requests. Metas and items
are strings, date_* metas timestamps, and items that hold several values
lists: a beginning to edit.`,
		Example: `  formetl schema infer --base-url https://fs1.example.com --account acme --form form1 -o form1.schema.yaml
  formetl schema infer --form form1 --names id --from 2026-01-01`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.schemaInfer(cmd.Context(), f) },
	}
	f.service.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.form, "form", "", "the form's directory")
	flags.StringVarP(&f.output, "output", "o", pipelines.StdoutPath, "file to write, - for standard output")
	flags.StringVar(&f.names, "names", "label", "columns are named by label or id")
	flags.StringVar(&f.from, "from", "", "sample from here on, wall clock of the account's zone")
	flags.StringVar(&f.to, "to", "", "sample up to here, exclusive")
	flags.BoolVar(&f.force, "force", false, "replace the file if it is there")
	return cmd
}

func (a *app) schemaInfer(ctx context.Context, f inferFlags) error {
	if err := checkForm(f.form); err != nil {
		return err
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
	log, err := a.begin(levelWarn)
	if err != nil {
		return err
	}
	options.Logger = log.Logger
	options.Tables.Open = opener(log.Logger)
	toFile := f.output != pipelines.StdoutPath && f.output != ""
	if toFile && !f.force {
		if _, err := os.Lstat(f.output); err == nil {
			return &load.CreateError{Op: "write", Path: f.output, Hint: "give another name, or --force to replace it", Err: fs.ErrExist}
		}
	}
	state, err := stateFolder("")
	if err != nil {
		return err
	}
	def := &pipelines.Definition{Name: "schema", State: state, Source: source, Forms: []string{f.form}, Labels: labels}
	columns, err := pipelines.InferColumns(ctx, def, options, f.form)
	if err != nil {
		return err
	}
	data, err := pipelines.FormatSchema(columns.Schema)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# The columns of form %s, from its headings and %s. Edit the types and names.\n", cell(f.form), plural(columns.Sampled, "result"))
	data = append([]byte(head), data...)
	if !toFile {
		return a.print(data)
	}
	if err := renameio.WriteFile(f.output, data, 0o640); err != nil {
		return &load.CreateError{Op: "write", Path: f.output, Hint: "give a file in a folder that is there and can be written to", Err: err}
	}
	log.tell(levelInfo, fmt.Sprintf("%s: %s to %s", f.form, plural(len(columns.Schema.Columns), "column"), f.output))
	return nil
}

// byLabel reads --names.
func byLabel(names string) (bool, error) {
	if names != "label" && names != "id" {
		return false, fmt.Errorf("--names %q: give label or id", names)
	}
	return names == "label", nil
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
}

func (a *app) schemaShow(ctx context.Context, files []string, f showFlags) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	log, err := a.begin(levelWarn)
	if err != nil {
		return err
	}
	options.Logger = log.Logger
	options.Tables.Open = opener(log.Logger)
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
	def     *pipelines.Definition
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
		columns[i] = shownColumn{Name: c.Name, Type: c.Type.String(), From: c.From.String(), Label: c.Label, OnError: string(c.OnError)}
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
