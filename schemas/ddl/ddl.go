// Package ddl writes SQL for schemas: a CREATE TABLE with comments for each of five
// dialects, and the statements that load what a run wrote.
//
// Every identifier is quoted and spelled as in the files, so that no reserved word
// and no character breaks a statement. The statements can be run again: they
// create a table that is missing, and loading replaces all its rows or none. An
// output holds each result once, so a full reload is always right.
//
//   - DuckDB, PostgreSQL and Redshift: the files go to a temporary table, and from
//     there in one transaction. Readers see the old rows until it commits.
//   - BigQuery: the files go to a second table, and from there in one transaction.
//   - Snowflake: the files go to a temporary table, and from there by one INSERT
//     OVERWRITE. That is within a block that ends at the first error.
//
// Some clients continue after a failed statement: DuckDB's, snowsql, and psql
// without ON_ERROR_STOP. So the old rows are deleted only after the files were
// loaded, by a statement that fails if loading failed. BigQuery runs a
// script as one.
//
// The statements name the parts that the manifest lists. So they load one whole
// run, and fail if a later run has replaced a part. With Options.Glob they name a
// pattern, which also finds the parts of later runs. That is right only if no run
// commits meanwhile: `_SUCCESS` then has the same bytes before and after.
//
// The package does not connect to an engine. Begin reading with Dialect.Load.
package ddl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// Table is the table that the statements create and load.
type Table struct {
	Name    []string // the names of the database and the schema, if given, then the table's own
	Comment string
	Columns []schemas.Column // dropped ones (pii: drop) are left out
	// List is the list column whose elements are the rows, or "" if each row is a result.
	List string
}

// Written describes an output and what runs have written to it.
type Written struct {
	Path        string // the file, or a dataset's folder with a slash at its end; absolute, or with a scheme
	Format      string // csv, ndjson, json, parquet, …
	Compression string // around a text format: "", none, gzip or zstd
	Profile     string // of CSV
	Hive        bool   // parts lie in folders dt=…
	Refuse      string // why the output must not be loaded, or ""

	Known   bool             // the fields below come from a manifest
	Columns []schemas.Column // names and types of the output's columns
	Parts   []Part

	Endpoint, Region string // of an s3:// path; "" means AWS's own and the default
}

// Part is a data object of an output.
type Part struct {
	Path  string // below a dataset's folder; "" for the single file itself
	Bytes int64
	Rows  int64
	// Leading is how many of the output's first columns the part of a dataset has, in the
	// same order. It is 0 if its columns are not the first ones, or in another order.
	Leading int
}

// Dataset tells whether the output is a folder of parts.
func (w Written) Dataset() bool { return strings.HasSuffix(w.Path, "/") }

// Options are settings of the statements that do not depend on the outputs.
type Options struct {
	Glob        bool   // name datasets by a pattern instead of their parts
	IAMRole     string // Redshift's role, "" for the cluster's default one
	Integration string // Snowflake's storage integration, "" for formetl
	// Form and Location are flags of the command. They appear in commands in comments.
	Form, Location string
}

// Dialect writes one engine's SQL.
type Dialect struct {
	Name string // as --dialect spells it

	quote func(string) string // quotes an identifier
	text  func(string) string // makes a string literal
	limit limits
	types types
	// constraint returns what follows a column's type, with a blank before it.
	constraint func(t Table, c schemas.Column) string
	// columnComment and tableComment are the formats of comments within CREATE
	// TABLE. If they are "", comments have statements of their own.
	columnComment, tableComment string

	formats []string // formats that the engine loads, the best first
	load    func(d *Dialect, s *script, t Table, w Written, o Options)
	exact   bool                   // the engine reads a list of parts but no pattern
	byPlace bool                   // the engine takes a part's columns by position, and does not check their names
	refuse  func(w Written) string // returns why an output cannot be loaded, or ""; nil: never
}

// Dialects returns all dialects.
func Dialects() []*Dialect {
	return []*Dialect{duckDB(), postgres(), snowflake(), bigQuery(), redshift()}
}

// Names returns the names of all dialects.
func Names() []string {
	return each(Dialects(), func(d *Dialect) string { return d.Name })
}

// Named returns the dialect of that name, or nil if there is none.
func Named(name string) *Dialect {
	for _, d := range Dialects() {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// written returns the table without the columns that are not in outputs.
func (t Table) written() Table {
	t.Columns = (&schemas.Schema{Columns: t.Columns}).Written()
	return t
}

// Create returns the statements that create the table. The error is an
// *UnfitError if the engine cannot hold the table.
func (d *Dialect) Create(t Table) (string, error) {
	t = t.written()
	if err := d.check(t); err != nil {
		return "", err
	}
	var s script
	end := ")"
	about := d.text(plain.Line(t.Comment))
	if d.tableComment != "" && t.Comment != "" {
		end += fmt.Sprintf(d.tableComment, about)
	}
	s.items("CREATE TABLE IF NOT EXISTS "+d.path(t.Name)+" (", each(t.Columns, func(c schemas.Column) string {
		line := d.typed(c) + d.constraint(t, c)
		if d.columnComment != "" {
			line += fmt.Sprintf(d.columnComment, d.text(comment(c)))
		}
		return line
	}), end+";")
	if d.tableComment != "" {
		return s.String(), nil
	}
	if t.Comment != "" {
		s.line("COMMENT ON TABLE %s IS %s;", d.path(t.Name), about)
	}
	for _, c := range t.Columns {
		s.line("COMMENT ON COLUMN %s.%s IS %s;", d.path(t.Name), d.quote(c.Name), d.text(comment(c)))
	}
	return s.String(), nil
}

// Load returns the statements that load the table from the output that suits the
// engine best. SQL comments in them say why the other outputs are not loaded. The
// error is an *UnfitError if the engine cannot hold or cannot load the table.
func (d *Dialect) Load(t Table, outputs []Written, o Options) (string, error) {
	t = t.written()
	if err := d.check(t); err != nil {
		return "", err
	}
	var s script
	best := d.best(t, outputs)
	for i, w := range outputs {
		if why := d.refusal(t, w); why != "" {
			s.note("%s (%s) is not loaded: %s", w.Path, w.Format, why)
		} else if i != best {
			s.note("%s", w.notLoaded(outputs[best]))
		}
	}
	if best < 0 {
		s.note("There is nothing to load the table %s from.", strings.Join(t.Name, "."))
		return s.String(), nil
	}
	w := outputs[best]
	if err := d.inPlace(w, strings.Join(t.Name, ".")); err != nil {
		return "", err
	}
	o.Glob = o.Glob && !d.exact
	w.Columns = w.inParts()
	t, left := inFiles(t, w)
	if len(t.Columns) == 0 {
		s.note("%s has none of the table's columns: there is nothing to load.", w.Path)
		return s.String(), nil
	}
	for _, name := range left {
		s.note("The column %s is not in the files yet and stays null.", name)
	}
	switch {
	case !w.Known:
		s.note("No run has written %s yet.", w.Path)
	case w.Dataset() && o.Glob:
		s.note("Right while no run commits: %s_SUCCESS has the same bytes before and after.", w.Path)
	}
	d.load(d, &s, t, w, o)
	return s.String(), nil
}

// best returns the index of the output to load, or -1 if there is none. A single file holds
// only the range of the last run. So it is not chosen if a dataset beside it has other rows.
func (d *Dialect) best(t Table, outputs []Written) int {
	other := func(w Written) bool {
		return slices.ContainsFunc(outputs, func(set Written) bool {
			return set.Dataset() && d.refusal(t, set) == "" && set.differs(w)
		})
	}
	best := -1
	for i, w := range outputs {
		if d.refusal(t, w) != "" || !w.Dataset() && other(w) {
			continue
		}
		if best < 0 || slices.Index(d.formats, w.Format) < slices.Index(d.formats, outputs[best].Format) {
			best = i
		}
	}
	return best
}

// refusal returns why an output cannot be loaded, or "" if it can.
func (d *Dialect) refusal(t Table, w Written) string {
	switch {
	case w.Refuse != "":
		return w.Refuse
	case !slices.Contains(d.formats, w.Format):
		return fmt.Sprintf("%s statements here read %s; add such an output to the definition", d.Name, strings.Join(d.formats, " or "))
	case w.Profile == "excel":
		return "the profile excel changes values for spreadsheets; write profile: strict"
	case w.Format == "csv" && slices.ContainsFunc(t.Columns, func(c schemas.Column) bool { return c.ListAs == schemas.ListColumns }):
		return "it shows a list as columns (list_as: columns); write NDJSON or Parquet beside it"
	case d.refuse != nil:
		return d.refuse(w)
	}
	return ""
}

// inFiles returns the table with only the columns that the files have, in the
// files' order. left are the names of the columns that the files lack.
func inFiles(t Table, w Written) (in Table, left []string) {
	if !w.Known {
		return t, nil
	}
	missing := map[string]schemas.Column{}
	for _, c := range t.Columns {
		missing[c.Name] = c
	}
	in = t
	in.Columns = nil
	for _, written := range w.Columns {
		if c, ok := missing[written.Name]; ok {
			in.Columns = append(in.Columns, c)
			delete(missing, c.Name)
		}
	}
	for _, c := range t.Columns {
		if _, ok := missing[c.Name]; ok {
			left = append(left, c.Name)
		}
	}
	return in, left
}

func isID(c schemas.Column) bool   { return c.From.Kind == schemas.FromResultID }
func isList(c schemas.Column) bool { return c.Type.Kind == schemas.List }

// required tells whether a column is never null.
func required(c schemas.Column) bool { return c.Required || isID(c) }

// notNull returns the constraint of a column that is never null, as most engines write it.
func notNull(_ Table, c schemas.Column) string {
	if required(c) {
		return " NOT NULL"
	}
	return ""
}

// path returns the quoted name of a table.
func (d *Dialect) path(names []string) string { return strings.Join(each(names, d.quote), ".") }

// beside returns the quoted name of a second table that helps to load t.
func (d *Dialect) beside(t Table) string {
	last := len(t.Name) - 1
	return d.path(append(slices.Clone(t.Name[:last]), t.Name[last]+besideSuffix))
}

const besideSuffix = "__load"

// column returns the column's quoted name.
func (d *Dialect) column(c schemas.Column) string { return d.quote(c.Name) }

// typed returns the column's quoted name and its type.
func (d *Dialect) typed(c schemas.Column) string { return d.quote(c.Name) + " " + d.types.of(c.Type) }

// each returns the result of text for each element of list.
func each[T any](list []T, text func(T) string) []string {
	texts := make([]string, len(list))
	for i, element := range list {
		texts[i] = text(element)
	}
	return texts
}
