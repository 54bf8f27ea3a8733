package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
	"github.com/formetl/formetl/schemas/nearest"
)

type ddlFlags struct {
	flags.Definition
	dialect, table, only, list string
	options                    ddl.Options
}

func schemaDDLCommand(p *process) *cobra.Command {
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
		Args: flags.Arguments(1, 1, "one schema file or definition, such as feedback.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error { return schemaDDL(cmd.Context(), p, args[0], f) },
	}
	set := cmd.Flags()
	f.Register(set)
	set.StringVar(&f.dialect, "dialect", "", strings.Join(ddl.Names(), ", "))
	set.StringVar(&f.table, "table", "", "name of the table, database.schema.table where it is elsewhere (default: the schema's or form's name)")
	set.StringVar(&f.only, "only", "", "table, load, or for Redshift manifest (default: table and load)")
	set.StringVar(&f.options.Location, "location", "", "where the engine finds the output, such as gs://bucket/lake/form1/, in place of its path")
	set.StringVar(&f.list, "list", "", "only the table of this list's child output (explode: true)")
	set.BoolVar(&f.options.Glob, "glob", false, "find a dataset's parts by a pattern, which stays right after later runs")
	set.StringVar(&f.options.IAMRole, "iam-role", "", "ARN of the role that Redshift reads S3 by (default: the cluster's default role)")
	set.StringVar(&f.options.Integration, "integration", "", "name of the storage integration that Snowflake reads by (default formetl)")
	return cmd
}

func schemaDDL(ctx context.Context, p *process, file string, f ddlFlags) error {
	d, err := f.check()
	if err != nil {
		return err
	}
	options, err := p.start(slog.LevelWarn, f.Options)
	if err != nil {
		return err
	}
	definition, err := definition.Is(file)
	if err != nil {
		return err
	}
	var sql []byte
	if definition {
		sql, err = ddlOfDefinition(ctx, p, d, file, f, options)
	} else {
		sql, err = ddlOfSchema(d, file, f)
	}
	if err != nil {
		return err
	}
	return show.Print(p.stdout, sql)
}

func (f *ddlFlags) check() (*ddl.Dialect, error) {
	d := ddl.Named(f.dialect)
	switch {
	case f.dialect == "":
		return nil, errors.New("--dialect is missing: give " + strings.Join(ddl.Names(), ", "))
	case d == nil:
		return nil, fmt.Errorf("--dialect %q: give %s%s", f.dialect, strings.Join(ddl.Names(), ", "), nearest.Hint(f.dialect, ddl.Names()))
	case !slices.Contains([]string{"", "table", "load", "manifest"}, f.only):
		return nil, fmt.Errorf("--only %q: give table, load or manifest", f.only)
	case f.only == "manifest" && d.Name != "redshift":
		return nil, fmt.Errorf("--only manifest is for --dialect redshift, not %s", d.Name)
	case f.table != "" && slices.Contains(strings.Split(f.table, "."), ""):
		return nil, fmt.Errorf("--table %q: give a name, or names divided by single dots", f.table)
	}
	return d, nil
}

// name is the table's name; without --table it follows a schema's or a form's.
func (f *ddlFlags) name(after string) []string {
	if f.table == "" {
		return []string{schemas.Snake(after)}
	}
	return strings.Split(f.table, ".")
}

// ddlOfSchema returns the statements for the table of a schema file. Such a file
// names no outputs, so there are none that load it.
func ddlOfSchema(d *ddl.Dialect, file string, f ddlFlags) ([]byte, error) {
	if f.only == "load" || f.only == "manifest" {
		return nil, exit.Usagef("--only %s: %s is a schema file and names no outputs; give the definition", f.only, file)
	}
	schema, err := definition.LoadSchema(file, nil)
	if err != nil {
		return nil, err
	}
	sql, err := d.Create(ddl.Table{Name: f.name(strings.TrimSuffix(schema.Name, ".schema")), Columns: schema.Columns})
	return []byte(sql), err
}

func ddlOfDefinition(ctx context.Context, p *process, d *ddl.Dialect, file string, f ddlFlags, options account.Options) ([]byte, error) {
	defs, err := p.load(ctx, &f.Definition, []string{file}, withoutKey)
	if err != nil {
		return nil, err
	}
	s := &columnSource{process: p, flags: f.Definition, file: file, options: options, def: defs[0]}
	forms, err := s.forms(ctx)
	if err != nil {
		return nil, err
	}
	if len(forms) > 1 && (f.table != "" || f.options.Location != "" || f.only == "manifest") {
		return nil, exit.Usagef("--table, --location and --only manifest are for one form, and the definition has %d; choose one by --form", len(forms))
	}
	var sql bytes.Buffer
	for _, form := range forms {
		if len(forms) > 1 {
			f.options.Form = form
		}
		tables, err := s.tables(ctx, form, f)
		if err != nil {
			return nil, err
		}
		if f.only == "manifest" {
			tables = tables[:1] // one manifest is one file
		}
		for _, t := range tables {
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
func (s *columnSource) tables(ctx context.Context, form string, f ddlFlags) ([]ddlTable, error) {
	columns, err := s.columns(ctx, form)
	if err != nil {
		return nil, err
	}
	left, err := infer.LookAtOutputs(ctx, s.def, s.options, form)
	if err != nil {
		return nil, err
	}
	all, err := infer.LaterColumns(s.def, columns.Schema.Columns, left)
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
		output, err := writtenAt(l, f.options.Location)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Path, err)
		}
		tables[at].outputs = append(tables[at].outputs, output)
	}
	if len(tables) == 0 {
		return nil, exit.Usagef("--list %q: no list of that name has a child output (explode: true)", f.list)
	}
	return tables, nil
}

// write appends what --only asks for.
func (f *ddlFlags) write(sql *bytes.Buffer, d *ddl.Dialect, t ddl.Table, outputs []ddl.Written) error {
	if f.only == "manifest" {
		manifest, err := d.Manifest(outputs)
		if errors.Is(err, ddl.ErrNoManifest) {
			return exit.Usagef("--only manifest: %w", err)
		}
		if err != nil {
			return err
		}
		sql.Write(manifest)
		return nil
	}
	var parts []string
	if f.only != "load" {
		text, err := d.Create(t)
		if err != nil {
			return err
		}
		parts = append(parts, text)
	}
	if f.only != "table" {
		text, err := d.Load(t, outputs, f.options)
		if err != nil {
			return err
		}
		parts = append(parts, text)
	}
	sql.WriteString(strings.Join(parts, "\n"))
	return nil
}

// writtenAt is what lies at an output, as statements need to know it. A location
// takes the place of the path where both are a file or both are a dataset.
func writtenAt(l infer.Left, location string) (ddl.Written, error) {
	w := ddl.Written{
		Path: l.Path, Format: l.Format, Compression: l.Compression, Profile: l.Profile,
		Hive: l.Partition != definition.PartitionNone, Known: l.Manifest != nil,
	}
	switch {
	case location != "" && strings.HasSuffix(location, "/") == w.Dataset():
		w.Path = l.At(location)
	case l.S3 != nil:
		w.Endpoint, w.Region = l.S3.Endpoint, l.S3.Region
	}
	if strings.Contains(l.Path, "{run_id}") {
		w.Refuse = "each run has a place of its own; write a path without {run_id}"
	}
	if l.Database != nil {
		w.Refuse = "it is a table, which runs load themselves"
	}
	if l.Manifest == nil {
		return w, nil
	}
	for _, c := range l.Manifest.Schema {
		t, err := schemas.ParseType(c.Type)
		if err != nil {
			return w, err
		}
		w.Columns = append(w.Columns, schemas.Column{Name: c.Name, Type: t})
	}
	leading := load.LeadingColumns(l.Manifest.Schema)
	for _, p := range l.Manifest.Parts {
		if p.Rows == 0 && w.Dataset() {
			continue // all its results were rejected: there is nothing to load
		}
		part := ddl.Part{Path: p.Path, Bytes: p.Bytes, Rows: p.Rows, Leading: leading[p.Columns]}
		if p.Columns != "" && part.Leading == 0 {
			part.Leading = ddl.OtherColumns
		}
		if !w.Dataset() {
			part.Path = ""
		}
		w.Parts = append(w.Parts, part)
	}
	return w, nil
}
