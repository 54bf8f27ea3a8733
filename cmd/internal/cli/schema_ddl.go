package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
	"github.com/formetl/formetl/schemas/plain"
)

type ddlFlags struct {
	console.DefinitionFlags
	dialect, table string
}

func schemaDDLCommand(p *process) *cobra.Command {
	var f ddlFlags
	cmd := &cobra.Command{
		Use:   "ddl SCHEMA|DEFINITION --dialect DIALECT",
		Short: "Print SQL that creates a table, or a view for DuckDB",
		Long: `Ddl prints CREATE TABLE for a schema file, or for the columns of a definition. For a
definition and DuckDB it prints a view over the files that runs write, so you need not
load them. Names are quoted and keep their spelling. You can run the SQL more than once.
It asks the service only if neither a schema nor an earlier run gives the columns: then
it reads a sample of the results, those of --from and --to if you give them.`,
		Example: `  formetl schema ddl feedback.columns.yaml --dialect postgres
  formetl schema ddl feedback.yaml --dialect duckdb | duckdb lake.db
  formetl schema ddl feedback.yaml --dialect bigquery --table project.forms.feedback`,
		Args: console.Arguments(1, 1, "one schema file or definition, such as feedback.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error { return schemaDDL(cmd.Context(), p, args[0], f) },
	}
	set := cmd.Flags()
	f.RegisterForms(set)
	f.RegisterKey(set, ", instead of the definition's reference")
	set.StringVar(&f.dialect, "dialect", "", "which database the SQL is for: "+strings.Join(ddl.Names(), ", "))
	set.StringVar(&f.table, "table", "", "name of the table, or database.schema.table (default: the name of the schema or form)")
	return cmd
}

func schemaDDL(ctx context.Context, p *process, file string, f ddlFlags) error {
	d, err := f.check()
	if err != nil {
		return err
	}
	isDefinition, err := definition.Is(file)
	if err != nil {
		return err
	}
	var sql []byte
	if isDefinition {
		sql, err = ddlOfDefinition(ctx, p, d, file, f)
	} else {
		sql, err = ddlOfSchema(p, d, file, f)
	}
	if err != nil {
		return err
	}
	return console.Print(p.stdout, sql)
}

func (f *ddlFlags) check() (*ddl.Dialect, error) {
	d := ddl.Named(f.dialect)
	switch {
	case f.dialect == "":
		return nil, errors.New("no dialect: add --dialect with one of " + strings.Join(ddl.Names(), ", "))
	case d == nil:
		return nil, fmt.Errorf("--dialect %q: give one of %s%s", f.dialect, strings.Join(ddl.Names(), ", "), plain.Hint(f.dialect, ddl.Names()))
	case f.table != "" && slices.Contains(strings.Split(f.table, "."), ""):
		return nil, fmt.Errorf("--table %q: give a name, or names separated by single dots, such as forms.feedback", f.table)
	}
	return d, nil
}

// name returns the table's name: --table, or a name made of after, a schema's or a form's name.
func (f *ddlFlags) name(after string) []string {
	if f.table == "" {
		return []string{schemas.Snake(after)}
	}
	return strings.Split(f.table, ".")
}

// nameOf returns the name of a form's table: the table into which runs load, if there is one.
func (f *ddlFlags) nameOf(def *definition.Definition, d *ddl.Dialect, form string) []string {
	for _, out := range def.Outputs {
		if at, err := definition.ExpandPath(out.Path, def.PathValues(form, "")); err == nil && out.Database != nil && out.Database.Kind == d.Name && f.table == "" {
			return strings.SplitN(path.Base(at), ".", 2)
		}
	}
	return f.name(form)
}

// ddlOfSchema returns the statements for the table of a schema file. Because a schema file names
// no outputs, there are no files that a view could read, and the result is never a view.
func ddlOfSchema(p *process, d *ddl.Dialect, file string, f ddlFlags) ([]byte, error) {
	if _, err := p.start(slog.LevelWarn, f.Options); err != nil {
		return nil, err
	}
	schema, err := definition.LoadSchema(file, nil)
	if err != nil {
		return nil, err
	}
	sql, err := d.Create(ddl.Table{Name: f.name(strings.TrimSuffix(schema.Name, ".schema")), Columns: schema.Columns})
	return []byte(sql), err
}

func ddlOfDefinition(ctx context.Context, p *process, d *ddl.Dialect, file string, f ddlFlags) ([]byte, error) {
	defs, options, err := p.openOutputs(ctx, &f.DefinitionFlags, []string{file}, withoutKey)
	if err != nil {
		return nil, err
	}
	forms, err := pipelines.ListForms(ctx, defs[0], options)
	if err != nil {
		return nil, err
	}
	if len(forms) > 1 && f.table != "" {
		return nil, console.Usagef("--table is for one form, and the definition has %d (%s): choose one with --form, or leave out --table", len(forms), plain.Few(forms, 5))
	}
	var statements []string
	err = p.eachForm(ctx, &f.DefinitionFlags, defs[0], options, forms, func(def *definition.Definition, form string, columns *upkeep.FormColumns) error {
		var lists []schemas.Source // lists with statements; the empty source: results
		for _, list := range listsOf(def, columns.Schema) {
			if slices.Contains(lists, list) {
				continue
			}
			lists = append(lists, list)
			table, err := ddlTableOf(list, form, f.nameOf(def, d, form), columns.Schema)
			if err != nil {
				return err
			}
			sql, err := tableOrView(d, table, def, form, list)
			if err != nil {
				return err
			}
			statements = append(statements, sql)
		}
		return nil
	})
	return []byte(strings.Join(statements, "\n")), err
}

// listsOf returns the exploded lists of the outputs and the list of uploaded files, and for each output the empty source, which
// stands for the table of its results.
func listsOf(def *definition.Definition, schema *schemas.Schema) (lists []schemas.Source) {
	for _, out := range def.Outputs {
		lists = append(lists, out.Explode)
		if out.Database == nil {
			continue
		}
		for _, c := range schema.Columns {
			if c.Explode {
				lists = append(lists, c.From)
			}
		}
		if def.Files != nil {
			lists = append(lists, definition.FileRows(out).Explode)
		}
	}
	return lists
}

// ddlTableOf returns the table of a form's results; with a list, the table of the list's child
// output.
func ddlTableOf(list schemas.Source, form string, name []string, schema *schemas.Schema) (ddl.Table, error) {
	t := ddl.Table{Name: name, Comment: "Results of the form " + form, Columns: schema.Columns}
	if list == (schemas.Source{}) {
		return t, nil
	}
	element, what := load.FilesTable, "The uploaded files"
	if at := schema.Find(list); at >= 0 {
		element = schema.Columns[at].Name
		what = "The list " + element
	}
	t.Name[len(t.Name)-1] += "__" + element
	t.Comment = what + " of the results of the form " + form
	if t.Key = 2; list.Kind == schemas.FromFile { // the result's id and the position; or the id, item and n
		t.Key = 3
	}
	var err error
	t.Columns, err = output.ChildColumns(schema.Columns, list)
	return t, err
}

// tableOrView returns a view if the dialect is DuckDB's and a view can read an output; otherwise
// a table.
func tableOrView(d *ddl.Dialect, t ddl.Table, def *definition.Definition, form string, list schemas.Source) (string, error) {
	best, rank := -1, 0
	for i, out := range def.Outputs {
		format := slices.Index(ddl.ViewFormats(), out.Format)
		if format < 0 || out.Explode != list || out.Database != nil || !out.Lasting() || out.Profile == "excel" || hasChoices(out, t.Columns) {
			continue
		}
		if !out.Dataset() { // a single file holds only the range of one run
			format += len(ddl.ViewFormats())
		}
		if best < 0 || format < rank {
			best, rank = i, format
		}
	}
	if d.Name == "duckdb" && best < 0 && list == (schemas.Source{}) {
		return "", &transport.Error{Code: console.ExitConfig, Problem: def.File + " has no output that DuckDB can load", Remedy: `add one to the definition under load:, such as {path: "lake/{form}/", format: parquet}`}
	}
	if d.Name != "duckdb" || best < 0 {
		return d.Create(t)
	}
	out := def.Outputs[best]
	path, err := definition.ExpandPath(out.Path, def.PathValues(form, ""))
	if err != nil {
		return "", err
	}
	files := ddl.Files{Path: path, Format: out.Format, Extension: "." + out.Format, Folders: out.Partition != definition.PartitionNone}
	if out.Format != "parquet" {
		files.Extension += load.CompressionExtension(out.Compression)
	}
	if s3 := out.S3; s3 != nil {
		files.Endpoint, files.Region, files.PathStyle = s3.Endpoint, s3.Region, s3.PathStyle
	}
	return ddl.View(t, files)
}

// hasChoices tells whether an output writes a list as one column for each choice.
func hasChoices(out definition.Output, columns []schemas.Column) bool {
	return out.Format == "csv" && slices.ContainsFunc(columns, func(c schemas.Column) bool { return c.ListAs == schemas.ListColumns })
}
