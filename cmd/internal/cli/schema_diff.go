package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

type diffFlags struct {
	service    serviceFlags
	definition definitionFlags
	json       bool
}

func (a *app) schemaDiffCommand() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW | FILE --form FORM | DEFINITION",
		Short: "Show what changed between two schema files, or on the live form",
		Long: `Diff compares two schema files; or a schema file with a live form; or what a
definition gives, its schema or else the columns of its last run, with the live
forms. The live form is its headings and a sample of its results, at the cost of
a handful of requests. It ends with 65 where a change breaks what reads the
columns, or runs by them.`,
		Example: `  formetl schema diff old.schema.yaml new.schema.yaml
  formetl schema diff form1.schema.yaml --form form1 --base-url https://fs1.example.com --account acme
  formetl schema diff feedback.yaml --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return &usageError{fmt.Errorf("%s takes two schema files, one with --form, or a definition; %d were given", cmd.CommandPath(), len(args))}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.schemaDiff(cmd.Context(), cmd.Flags(), args, f)
		},
	}
	f.service.register(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.definition.forms, "form", nil, "the form to compare with; of a definition only this form; repeatable")
	flags.StringVar(&f.definition.from, "from", "", "sample from here on, wall clock of the account's zone")
	flags.StringVar(&f.definition.to, "to", "", "sample up to here, exclusive")
	flags.StringVar(&f.definition.state, "state", "", "folder of budgets (default: the definition's)")
	flags.BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

// comparison is what schema diff prints of two descriptions as JSON.
type comparison struct {
	Was      string           `json:"was"`
	Is       string           `json:"is"`
	Form     string           `json:"form,omitempty"`
	Sampled  *int             `json:"sampled,omitempty"`         // results of the live form
	Listed   *bool            `json:"headings_listed,omitempty"` // the form's headings list items
	Breaking int              `json:"breaking"`
	Changes  []schemas.Change `json:"changes"`
}

// breakingError is a comparison that found changes that break.
type breakingError struct{ breaking, changes int }

// Error tells how many there are and the ways out.
func (e *breakingError) Error() string {
	return fmt.Sprintf("%d of %s would break what reads the columns, or runs by them; mend the schema, restore the form, or write the new columns to another path (or over the old ones with --full)",
		e.breaking, plural(e.changes, "change"))
}

// DataFault is true: the form is no longer what its readers expect.
func (e *breakingError) DataFault() bool { return true }

func (a *app) schemaDiff(ctx context.Context, set *pflag.FlagSet, files []string, f diffFlags) error {
	f.definition.keyFile = f.service.keyFile
	log, err := a.begin(levelWarn)
	if err != nil {
		return err
	}
	var list []comparison
	if len(files) == 2 {
		list, err = diffFiles(set, files)
	} else {
		list, err = a.diffLive(ctx, log, set, files, f)
	}
	if err != nil {
		return err
	}
	failed := &breakingError{}
	for i, c := range list {
		list[i].Breaking = schemas.Breaking(c.Changes)
		if c.Changes == nil {
			list[i].Changes = []schemas.Change{}
		}
		failed.breaking += list[i].Breaking
		failed.changes += len(c.Changes)
	}
	if err := a.printComparisons(log, list, f.json); err != nil {
		return err
	}
	if failed.breaking > 0 {
		return failed
	}
	return nil
}

// diffFiles compares two schema files.
func diffFiles(set *pflag.FlagSet, files []string) ([]comparison, error) {
	if name := given(set, func(name string) bool { return name != "json" && !global(name) }); name != "" {
		return nil, &usageError{fmt.Errorf("two schema files are compared without a service: --%s does not apply", name)}
	}
	var both [2]*schemas.Schema
	var failures []error
	for i, file := range files {
		s, err := definition.LoadSchema(file)
		both[i], failures = s, append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return []comparison{{Was: files[0], Is: files[1], Changes: schemas.Diff(both[0], both[1])}}, nil
}

// global tells whether a flag says how a command talks, and not what it does.
func global(name string) bool {
	return name == "log-format" || name == "log-level"
}

// given is a flag of the command line that counts, "" for none.
func given(set *pflag.FlagSet, counts func(name string) bool) string {
	found := ""
	set.Visit(func(f *pflag.Flag) {
		if found == "" && counts(f.Name) {
			found = f.Name
		}
	})
	return found
}

// diffLive compares a schema file, or what a definition gives, with live forms.
func (a *app) diffLive(ctx context.Context, log *logs, set *pflag.FlagSet, files []string, f diffFlags) ([]comparison, error) {
	isDefinition, err := definition.Is(files[0])
	if err != nil {
		return nil, err
	}
	options, err := f.definition.options()
	if err != nil {
		return nil, &usageError{err}
	}
	options.Logger = log.Logger
	options.Tables.Open = opener(log.Logger)
	if !isDefinition {
		return a.diffForm(ctx, files[0], options, f)
	}
	own := func(name string) bool {
		return name != "json" && name != "form" && name != "from" && name != "to" && name != "state" && name != "api-key-file" && !global(name)
	}
	if name := given(set, own); name != "" {
		return nil, &usageError{fmt.Errorf("%s is a definition and says itself how to ask the service: --%s does not apply", files[0], name)}
	}
	defs, err := f.definition.load(a, files, withSecrets)
	if err != nil {
		return nil, err
	}
	return diffDefinition(ctx, files[0], defs[0], options)
}

// diffForm compares a schema file with a live form.
func (a *app) diffForm(ctx context.Context, file string, options pipelines.Options, f diffFlags) ([]comparison, error) {
	if len(f.definition.forms) != 1 {
		return nil, &usageError{fmt.Errorf("%s is a schema file: give one --form to compare it with, or a second schema file", file)}
	}
	form := f.definition.forms[0]
	if err := checkForm(form); err != nil {
		return nil, err
	}
	source, err := f.service.source(a)
	if err != nil {
		return nil, &usageError{err}
	}
	known, err := definition.LoadSchema(file)
	if err != nil {
		return nil, err
	}
	state, err := stateFolder(f.definition.state)
	if err != nil {
		return nil, err
	}
	def := &definition.Definition{Name: "schema", State: state, Source: source, Forms: []string{form}}
	c, err := diffOne(ctx, file, def, options, form, known)
	return []comparison{c}, err
}

// diffDefinition compares what a definition gives with its live forms.
func diffDefinition(ctx context.Context, file string, def *definition.Definition, options pipelines.Options) ([]comparison, error) {
	forms, err := pipelines.ListForms(ctx, def, options)
	if err != nil {
		return nil, err
	}
	var list []comparison
	for _, form := range forms {
		known, err := pipelines.KnownColumns(ctx, def, options, form)
		if err != nil {
			return nil, err
		}
		if known == nil {
			return nil, &pipelines.NoColumnsError{File: file, Form: form}
		}
		c, err := diffOne(ctx, originOf(file, known), def, options, form, known.Schema)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// originOf says what was compared.
func originOf(file string, known *pipelines.FormColumns) string {
	if known.Origin == pipelines.OriginManifest {
		return file + " (its last run)"
	}
	return file
}

func diffOne(ctx context.Context, was string, def *definition.Definition, options pipelines.Options, form string, known *schemas.Schema) (comparison, error) {
	d, err := pipelines.DiffLive(ctx, def, options, form, known)
	if err != nil {
		return comparison{}, err
	}
	return comparison{Was: was, Is: "form " + form, Form: form, Sampled: &d.Sampled, Listed: &d.Listed, Changes: d.Changes}, nil
}

func (a *app) printComparisons(log *logs, list []comparison, asJSON bool) error {
	if asJSON {
		return a.printJSON(struct {
			Comparisons []comparison `json:"comparisons"`
		}{list})
	}
	for i, c := range list {
		if i > 0 && len(c.Changes) > 0 && len(list[i-1].Changes) > 0 {
			if err := a.print([]byte("\n")); err != nil {
				return err
			}
		}
		if len(c.Changes) > 0 {
			if err := a.printTable(c.rows()...); err != nil {
				return err
			}
		}
		log.tell(levelInfo, c.summary())
	}
	return nil
}

// rows are the changes as a table.
func (c comparison) rows() [][]string {
	rows := make([][]string, 0, 1+len(c.Changes))
	rows = append(rows, []string{"CHANGE", "COLUMN", "FROM", "WAS", "IS", "BREAKING"})
	for _, x := range c.Changes {
		kind, was, is, breaking := string(x.Kind), x.Was, x.Is, ""
		if x.Key != "" && x.Key != "type" {
			kind += " " + x.Key
		}
		if x.Label != "" {
			label := strconv.Quote(cell(x.Label))
			if x.Kind == schemas.ColumnRemoved {
				was += " " + label
			} else {
				is += " " + label
			}
		}
		if x.Count > 0 {
			is += " (" + plural(int(x.Count), "value") + ")"
		}
		if x.Breaking {
			breaking = "breaking"
		}
		rows = append(rows, []string{kind, x.Column, x.From, was, is, breaking})
	}
	return rows
}

// summary is the comparison on one line.
func (c comparison) summary() string {
	s := fmt.Sprintf("%s and %s: no changes", cell(c.Was), cell(c.Is))
	if n := len(c.Changes); n > 0 {
		s = fmt.Sprintf("%s and %s: %s, %d breaking", cell(c.Was), cell(c.Is), plural(n, "change"), c.Breaking)
	}
	if c.Sampled == nil {
		return s
	}
	if !*c.Listed {
		return s + "; by " + plural(*c.Sampled, "result") + " alone, as the headings list no items: what these lack need not be gone"
	}
	return s + "; by headings and " + plural(*c.Sampled, "result")
}
