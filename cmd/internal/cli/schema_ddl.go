package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/internal/nearest"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
)

type ddlFlags struct {
	definitionFlags
	dialect, table, only, location, list string
	options                              ddl.Options
}

func (a *app) schemaDDLCommand() *cobra.Command {
	var f ddlFlags
	cmd := &cobra.Command{
		Use:   "ddl SCHEMA|DEFINITION --dialect DIALECT",
		Short: "Write SQL that makes a table and loads it with what a run wrote",
		Long: `Ddl writes CREATE TABLE for a schema file, or for the columns of a definition,
and for a definition the statements that load what its runs wrote, from the
output that suits the engine best. Identifiers are quoted and keep their
spelling. All of it can be run again: loading replaces the table's rows, whole
or not at all. Only columns that nobody has written down cost requests.

Parts are named as the manifest lists them: write the statements anew after each
run, or give --glob.`,
		Example: `  formetl schema ddl feedback.schema.yaml --dialect postgres
  formetl schema ddl feedback.yaml --dialect duckdb | duckdb -bail lake.db
  formetl schema ddl feedback.yaml --dialect bigquery --table project.forms.feedback --location gs://bucket/lake/feedback/
  formetl schema ddl feedback.yaml --dialect redshift --only manifest | aws s3 cp - s3://bucket/lake/feedback.redshift-manifest.json`,
		Args: oneSchemaOrDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return a.schemaDDL(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.StringVar(&f.dialect, "dialect", "", strings.Join(ddl.Names(), ", "))
	flags.StringVar(&f.table, "table", "", "name of the table, database.schema.table where it is elsewhere (default: the schema's or form's name)")
	flags.StringVar(&f.only, "only", "", "table, load, or for Redshift manifest (default: table and load)")
	flags.StringVar(&f.location, "location", "", "where the engine finds the output, such as gs://bucket/lake/form1/, in place of its path")
	flags.StringVar(&f.list, "list", "", "only the table of this list's child output (explode: true)")
	flags.BoolVar(&f.options.Glob, "glob", false, "find a dataset's parts by a pattern, which stays right after later runs")
	flags.StringVar(&f.options.IAMRole, "iam-role", "", "ARN of the role that Redshift reads S3 by (default: the cluster's default role)")
	flags.StringVar(&f.options.Integration, "integration", "", "name of the storage integration that Snowflake reads by (default formetl)")
	return cmd
}

func oneSchemaOrDefinition(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &usageError{fmt.Errorf("%s takes one schema file or definition, such as feedback.yaml; %d were given", cmd.CommandPath(), len(args))}
}

func (a *app) schemaDDL(ctx context.Context, file string, f ddlFlags) error {
	d, err := f.check()
	if err != nil {
		return err
	}
	options, err := f.definitionFlags.options()
	if err != nil {
		return err
	}
	if _, err := a.beginWith(levelWarn, &options); err != nil {
		return err
	}
	isDefinition, err := definition.Is(file)
	if err != nil {
		return err
	}
	var sql []byte
	if isDefinition {
		sql, err = a.ddlOfDefinition(ctx, d, file, f, options)
	} else {
		sql, err = ddlOfSchema(d, file, f)
	}
	if err != nil {
		return err
	}
	return a.print(sql)
}

// check tells whether the flags go together.
func (f *ddlFlags) check() (*ddl.Dialect, error) {
	d := ddl.Named(f.dialect)
	switch {
	case f.dialect == "":
		return nil, errors.New("--dialect is missing: give " + strings.Join(ddl.Names(), ", "))
	case d == nil:
		text := fmt.Sprintf("--dialect %q: give %s", f.dialect, strings.Join(ddl.Names(), ", "))
		if near := nearest.Word(f.dialect, ddl.Names()); near != "" {
			text += "; did you mean " + near + "?"
		}
		return nil, errors.New(text)
	case !slices.Contains([]string{"", "table", "load", "manifest"}, f.only):
		return nil, fmt.Errorf("--only %q: give table, load or manifest", f.only)
	case f.only == "manifest" && d.Name != "redshift":
		return nil, fmt.Errorf("--only manifest is for --dialect redshift, not %s", d.Name)
	case f.table != "" && slices.Contains(strings.Split(f.table, "."), ""):
		return nil, fmt.Errorf("--table %q: give a name, or names divided by single dots", f.table)
	}
	return d, nil
}

// name is the table's name, after a schema or a form where none was given.
func (f *ddlFlags) name(after string) []string {
	if f.table == "" {
		return []string{schemas.Snake(after)}
	}
	return strings.Split(f.table, ".")
}

// ddlOfSchema makes the table of a schema file, which knows no outputs.
func ddlOfSchema(d *ddl.Dialect, file string, f ddlFlags) ([]byte, error) {
	if f.only == "load" || f.only == "manifest" {
		return nil, &usageError{fmt.Errorf("--only %s: %s is a schema file and names no outputs; give the definition", f.only, file)}
	}
	schema, err := definition.LoadSchema(file)
	if err != nil {
		return nil, err
	}
	sql, err := d.Create(ddl.Table{Name: f.name(strings.TrimSuffix(schema.Name, ".schema")), Columns: schema.Columns})
	return []byte(sql), err
}

// ddlOfDefinition makes the tables of a definition's forms.
func (a *app) ddlOfDefinition(ctx context.Context, d *ddl.Dialect, file string, f ddlFlags, options pipelines.Options) ([]byte, error) {
	defs, err := f.load(a, []string{file}, withoutSecrets)
	if err != nil {
		return nil, err
	}
	s := &columnsOf{a: a, flags: showFlags{definitionFlags: f.definitionFlags}, files: []string{file}, options: options, def: defs[0]}
	forms, err := s.forms(ctx)
	if err != nil {
		return nil, err
	}
	if len(forms) > 1 && (f.table != "" || f.location != "" || f.only == "manifest") {
		return nil, &usageError{fmt.Errorf("--table, --location and --only manifest are for one form, and the definition has %d; choose one by --form", len(forms))}
	}
	var sql bytes.Buffer
	f.options.Location = f.location
	for _, form := range forms {
		if len(forms) > 1 {
			f.options.Form = form
		}
		tables, err := s.tables(ctx, form, f)
		if err != nil {
			return nil, err
		}
		for i, t := range tables {
			if f.only == "manifest" && i > 0 {
				break // one manifest is one file
			}
			if sql.Len() > 0 {
				sql.WriteByte('\n')
			}
			if err := f.write(&sql, d, t.Table, t.outputs); err != nil {
				return nil, err
			}
		}
	}
	return sql.Bytes(), nil
}

// ddlTable is a table and the outputs that it can be loaded from.
type ddlTable struct {
	ddl.Table
	outputs []ddl.Written
}

// tables are a form's table and, behind it, those of its child outputs; or, with
// --list, one of these.
func (s *columnsOf) tables(ctx context.Context, form string, f ddlFlags) ([]ddlTable, error) {
	columns, err := s.of(ctx, form)
	if err != nil {
		return nil, err
	}
	left, err := pipelines.LookAtOutputs(ctx, s.def, s.options, form)
	if err != nil {
		return nil, err
	}
	all, err := pipelines.LaterColumns(s.def, columns.Schema.Columns, left)
	if err != nil {
		return nil, err
	}
	var tables []ddlTable
	for _, l := range left {
		if f.list != "" && l.List != f.list {
			continue
		}
		at := slices.IndexFunc(tables, func(t ddlTable) bool { return t.List == l.List })
		if at < 0 {
			t := ddlTable{Table: ddl.Table{Name: f.name(form), Comment: "Results of the form " + form, List: l.List}}
			if l.List != "" {
				t.Name[len(t.Name)-1] += "__" + l.List
				t.Comment = "The list " + l.List + " of the results of the form " + form
			}
			if t.Columns, err = l.Columns(all); err != nil {
				return nil, err
			}
			at, tables = len(tables), append(tables, t)
		}
		output, err := writtenAt(l, f.location)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Path, err)
		}
		tables[at].outputs = append(tables[at].outputs, output)
	}
	if len(tables) == 0 {
		return nil, &usageError{fmt.Errorf("--list %q: no list of that name has a child output (explode: true)", f.list)}
	}
	return tables, nil
}

// write appends what --only asks for.
func (f *ddlFlags) write(sql *bytes.Buffer, d *ddl.Dialect, t ddl.Table, outputs []ddl.Written) error {
	if f.only == "manifest" {
		manifest, err := d.Manifest(outputs)
		if errors.Is(err, ddl.ErrNoManifest) {
			return &usageError{fmt.Errorf("--only manifest: %w", err)}
		}
		if err != nil {
			return err
		}
		sql.Write(manifest)
		return nil
	}
	if f.only != "load" {
		text, err := d.Create(t)
		if err != nil {
			return err
		}
		sql.WriteString(text)
	}
	if f.only == "" {
		sql.WriteByte('\n')
	}
	if f.only != "table" {
		text, err := d.Load(t, outputs, f.options)
		if err != nil {
			return err
		}
		sql.WriteString(text)
	}
	return nil
}
