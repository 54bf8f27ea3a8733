package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

type diffFlags struct {
	service    console.ServiceFlags
	definition console.DefinitionFlags
	json       bool
}

func schemaDiffCommand(p *process) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW | FILE --form FORM | DEFINITION",
		Short: "Show what changed between two schema files, or between a schema and the live form",
		Long: `Diff compares two schema files, or a schema file with the live form, or a definition
with its live forms. For a definition it takes its schema, which it also compares
with the outputs, or without one the columns of its last run. For a live form it reads
the headings and a sample of the results, which takes a few requests. It ends with 65
if a change can break later runs, or programs that read the outputs; with 0 if none
can.` + besideDefinition,
		Example: `  formetl schema diff old.columns.yaml new.columns.yaml
  formetl schema diff form1.schema.yaml --form form1 --base-url https://fs1.example.com --account acme
  formetl schema diff feedback.yaml --json`,
		Args: console.Arguments(1, 2, "two schema files, or one schema file with --form, or a definition"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schemaDiff(cmd.Context(), p, cmd.Flags(), args, f)
		},
	}
	set := cmd.Flags()
	f.service.Register(set, "the definition's, or ")
	f.definition.RangeFlags.Register(set, "the definition's, or no limit")
	f.definition.RegisterVariables(set)
	set.StringArrayVar(&f.definition.Forms, "form", nil, "form to compare with; for a definition, compare only this form; repeatable")
	set.StringVar(&f.definition.State, "state", "", "folder or s3://bucket/prefix/ where requests are counted for the limits per minute and per day (default: the definition's, or formetl/ in your cache folder)")
	set.BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

// comparison is what schema diff --json prints for two schemas, or for a schema
// and a form.
type comparison struct {
	Was      string           `json:"was"`
	Is       string           `json:"is"`
	Form     string           `json:"form,omitempty"`
	Sampled  *int             `json:"sampled,omitempty"`         // how many results of the live form were looked at
	Listed   *bool            `json:"headings_listed,omitempty"` // the form's headings name items
	Breaking int              `json:"breaking"`
	Changes  []schemas.Change `json:"changes"`
}

func schemaDiff(ctx context.Context, p *process, set *pflag.FlagSet, files []string, f diffFlags) error {
	f.definition.KeyFile = f.service.KeyFile
	options, err := p.start(slog.LevelWarn, f.definition.Options)
	if err != nil {
		return err
	}
	list, err := compare(ctx, p, set, files, options, f)
	if err != nil {
		return err
	}
	breaking, changes := 0, 0
	var forms []string
	for i, c := range list {
		list[i].Changes = append([]schemas.Change{}, c.Changes...) // no changes are printed as [], not null
		changes += len(c.Changes)
		if n := schemas.Breaking(c.Changes); n > 0 {
			list[i].Breaking, forms = n, append(forms, c.Form)
			breaking += n
		}
	}
	if err := showComparisons(p, list, f.json); err != nil {
		return err
	}
	if breaking > 0 {
		if len(forms) < len(list) {
			f.definition.Forms = forms
		}
		var def definition.Definition
		if is, _ := definition.Is(files[0]); is {
			def.File, def.Given = files[0], f.definition.Given()
		}
		return &definition.Fault{
			Code: console.ExitData, Text: fmt.Sprintf("%d of %s would break later runs, or programs that read the outputs", breaking, plain.Plural(changes, "change")),
			Cure: "if the change is a mistake, undo it; if it is meant and the schema says it, give the output another path, or run `" + def.Command("run", "--full") + "`, which replaces it (results that the service has deleted are then gone)",
		}
	}
	return nil
}

// compare compares two schema files, or live forms with a schema file or a definition's schema.
func compare(ctx context.Context, p *process, set *pflag.FlagSet, files []string, o pipelines.Options, f diffFlags) (list []comparison, err error) {
	if len(files) == 2 {
		set.Visit(func(f *pflag.Flag) {
			if err == nil && !slices.Contains([]string{"json", "log-format", "log-level"}, f.Name) {
				err = console.Usagef("--%s does not apply, because two schema files are compared without asking the service: leave it out", f.Name)
			}
		})
		was, wrong := definition.LoadSchema(files[0], nil)
		is, other := definition.LoadSchema(files[1], nil)
		if err = cmp.Or(err, errors.Join(wrong, other)); err != nil {
			return nil, err
		}
		return []comparison{{Was: files[0], Is: files[1], Changes: schemas.Diff(was, is)}}, nil
	}
	def, schema, err := f.open(ctx, p, set, files[0], o)
	if err != nil {
		return nil, err
	}
	forms, err := pipelines.ListForms(ctx, def, o)
	if err != nil {
		return nil, err
	}
	for _, form := range forms {
		was, known, edits := files[0], schema, []schemas.Change(nil)
		def, err := def.For(form)
		if err != nil {
			return nil, err
		}
		if schema == nil {
			columns, err := upkeep.KnownColumns(ctx, def, o, form)
			if err == nil && columns == nil {
				err = upkeep.NoColumns(was, form)
			}
			if err != nil {
				return nil, err
			}
			if known, edits = columns.Schema, columns.Edits; columns.Origin == upkeep.OriginManifest {
				was += " (its last run)"
			}
		}
		d, err := upkeep.DiffLive(ctx, def, o, form, known)
		if err != nil {
			return nil, err
		}
		list = append(list, comparison{Was: was, Is: "form " + form, Form: form, Sampled: &d.Sampled, Listed: &d.Listed, Changes: append(edits, d.Changes...)})
	}
	return list, nil
}

// open reads a file. It returns the definition in it; or for a schema file the schema, and a
// definition made of the flags.
func (f *diffFlags) open(ctx context.Context, p *process, set *pflag.FlagSet, file string, o pipelines.Options) (def *definition.Definition, schema *schemas.Schema, err error) {
	isDefinition, err := definition.Is(file)
	switch {
	case err != nil:
		return nil, nil, err
	case isDefinition:
		if err := console.BesideDefinition(set, file); err != nil {
			return nil, nil, err
		}
		defs, err := p.load(ctx, &f.definition, []string{file}, withKey)
		if err != nil {
			return nil, nil, err
		}
		return defs[0], nil, nil
	case len(o.Forms) != 1:
		return nil, nil, console.Usagef("%s is a schema file: add one --form to compare it with that form, or a second schema file", file)
	}
	if err = console.CheckForm(o.Forms[0]); err == nil {
		def, err = p.define("schema", o.Forms[0], &f.service, f.definition.State)
	}
	if err != nil {
		return nil, nil, &console.CodeError{Code: console.ExitUsage, Err: err}
	}
	def.Names = schemas.ByLabel // as an export by the schema names what the schema lacks
	schema, err = definition.LoadSchema(file, nil)
	return def, schema, err
}

// showComparisons prints comparisons, and a summary of each on standard error.
func showComparisons(p *process, list []comparison, asJSON bool) error {
	if asJSON {
		return console.Show(p.stdout, true, struct {
			Comparisons []comparison `json:"comparisons"`
		}{list}, "")
	}
	for _, c := range list {
		text := ""
		if len(c.Changes) > 0 {
			if len(list) > 1 {
				text = c.Is + "\n"
			}
			text += console.Columns("", c.rows())
		}
		if err := console.Print(p.stdout, []byte(text)); err != nil {
			return err
		}
		p.log.Tell(slog.LevelInfo, c.summary())
	}
	return nil
}

func (c comparison) rows() [][]string {
	return console.Rows([][]string{{"CHANGE", "COLUMN", "FROM", "WAS", "IS", "BREAKING"}}, c.Changes, func(x schemas.Change) []string {
		kind, was, is, breaking := string(x.Kind), x.Was, x.Is, ""
		if x.Key != "" && x.Key != "type" {
			kind += " " + x.Key
		}
		if x.Label != "" {
			label := strconv.Quote(plain.Line(x.Label))
			if x.Kind == schemas.ColumnRemoved {
				was += " " + label
			} else {
				is += " " + label
			}
		}
		if x.Count > 0 {
			is += " (" + plain.Plural(x.Count, "value") + ")"
		}
		if x.Breaking {
			breaking = "breaking"
		}
		return []string{kind, x.Column, x.From, was, is, breaking}
	})
}

func (c comparison) summary() string {
	s := fmt.Sprintf("%s and %s: no changes", plain.Line(c.Was), plain.Line(c.Is))
	if n := len(c.Changes); n > 0 {
		s = fmt.Sprintf("%s and %s: %s, %d breaking", plain.Line(c.Was), plain.Line(c.Is), plain.Plural(n, "change"), c.Breaking)
	}
	if c.Sampled == nil {
		return s
	}
	if !*c.Listed {
		return s + " (from " + plain.Plural(*c.Sampled, "result") + " only, because the service lists no headings; a question that is gone above may just have no answer in these results)"
	}
	return s + " (from the headings and " + plain.Plural(*c.Sampled, "result") + ")"
}
