// Package ddl writes SQL for schemas: a CREATE TABLE with comments for each
// of six dialects, and the statements that load what a run wrote.
//
// Every identifier is quoted, so that no reserved word and no character breaks
// a statement, and keeps the spelling that it has in the files. What is written
// can be run again: the table is created where it is not there, and loading
// replaces its rows by those of the output, whole or not at all. An output
// holds each result once, so a full reload is always right.
//
//   - DuckDB, PostgreSQL and Redshift: the files go to a temporary table, and
//     from there in one transaction. Readers see the old rows until it commits.
//   - BigQuery: the same by a table beside it.
//   - Snowflake: the files go to a temporary table, and from there by one INSERT
//     OVERWRITE, within a block that ends at the first error.
//   - ClickHouse, which has no transactions: the files go to a table beside it,
//     which then changes places with the table (EXCHANGE TABLES).
//
// Some clients go on after a statement that failed: DuckDB's, snowsql, psql
// without ON_ERROR_STOP. So nothing is deleted before the files were loaded,
// and what takes the old rows away fails where that did. ClickHouse's client
// stops, and BigQuery runs a script as one.
//
// The statements name the parts that the manifest lists. That is exact: they
// load one whole run, and fail where a later run has replaced a part. With
// Options.Glob they name a pattern, which stays true after later runs and is
// right only while none commits: `_SUCCESS` has the same bytes before and after.
package ddl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/schemas"
)

// Table is a table to be made.
type Table struct {
	Name    []string // the last is the table's own, those before say where it is: database, schema
	Comment string
	Columns []schemas.Column // dropped ones (pii: drop) are left out
	// List is the list whose elements the rows are, "" where each row is a
	// result.
	List string
}

// Written is an output as a run left it.
type Written struct {
	Path        string // the file, or a dataset's folder with a slash at its end; absolute, or with a scheme
	Format      string // csv, ndjson, json, parquet, …
	Compression string // around a text format: "", none, gzip or zstd
	Profile     string // of CSV
	Hive        bool   // parts lie in folders dt=…
	Refuse      string // why nothing is loaded from it, "" where it may be

	Known   bool             // what follows is of a manifest
	Columns []schemas.Column // their names and types
	Parts   []Part

	Endpoint, Region string // of an s3:// path, "" for AWS's own and the default
}

// Part is a data object of an output.
type Part struct {
	Path  string // below a dataset's folder; "" for the single file itself
	Bytes int64
	Rows  int64
	// Leading is how many of the output's columns the part has, where they are
	// the first ones in the same order; 0 where that is not known, OtherColumns
	// where it has others.
	Leading int
}

// OtherColumns marks a part whose columns are not the output's first ones, or
// not in the same order.
const OtherColumns = -1

// Dataset tells whether the output is a folder of parts.
func (w Written) Dataset() bool { return strings.HasSuffix(w.Path, "/") }

// Options are what the statements need to know beyond the outputs.
type Options struct {
	Glob        bool   // name datasets by a pattern instead of their parts
	IAMRole     string // Redshift's role, "" for the cluster's default one
	Integration string // Snowflake's storage integration, "" for formetl
	// Form and Location are what the command was told, "" where nothing, for
	// commands in comments.
	Form, Location string
}

// Dialect writes one engine's SQL.
type Dialect struct {
	Name string // as --dialect spells it

	quote func(string) string // an identifier
	text  func(string) string // a string literal
	limit limits
	// formats are those that the engine loads, the best first.
	formats []string
	create  func(d *Dialect, s *script, t Table)
	load    func(d *Dialect, s *script, t Table, w Written, o Options)
	exact   bool                   // reads a list of parts and no pattern
	byPlace bool                   // takes a part's columns by position, and does not check their names
	refuse  func(w Written) string // why an output cannot be loaded, "" where it can; nil: always ""
}

// Dialects are all that there are.
func Dialects() []*Dialect {
	return []*Dialect{duckDB(), postgres(), snowflake(), bigQuery(), redshift(), clickHouse()}
}

// Names are the names of all dialects.
func Names() []string {
	dialects := Dialects()
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.Name
	}
	return names
}

// Named gives the dialect of a name, nil if there is none.
func Named(name string) *Dialect {
	for _, d := range Dialects() {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// written is the table without the columns that are not in outputs.
func (t Table) written() Table {
	t.Columns = (&schemas.Schema{Columns: t.Columns}).Written()
	return t
}

// Create gives the statements that make the table. The error is an
// *UnfitError where the engine cannot hold it.
func (d *Dialect) Create(t Table) (string, error) {
	t = t.written()
	if err := d.check(t); err != nil {
		return "", err
	}
	s := &script{}
	d.create(d, s, t)
	return s.String(), nil
}

// Load gives the statements that load the table from the output that suits the
// engine best. Comments say why the others are left out. The error is an
// *UnfitError where the engine cannot hold the table.
func (d *Dialect) Load(t Table, outputs []Written, o Options) (string, error) {
	t = t.written()
	if err := d.check(t); err != nil {
		return "", err
	}
	s := &script{}
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
	d.load(d, s, t, w, o)
	return s.String(), nil
}

// best is the index of the output to load, -1 where there is none. A single
// file has the range of the last run alone: one that does not hold as much as a
// dataset beside it is not chosen.
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

// refusal says why an output is not loaded, "" where it can be.
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

// inFiles is the table with the columns that the files have, in the files'
// order, and the names of those that they lack.
func inFiles(t Table, w Written) (in Table, left []string) {
	if !w.Known {
		return t, nil
	}
	in = t
	in.Columns = nil
	byName, has := map[string]schemas.Column{}, map[string]bool{}
	for _, written := range w.Columns {
		has[written.Name] = true
	}
	for _, c := range t.Columns {
		byName[c.Name] = c
		if !has[c.Name] {
			left = append(left, c.Name)
		}
	}
	for _, written := range w.Columns {
		if c, ok := byName[written.Name]; ok {
			in.Columns = append(in.Columns, c)
		}
	}
	return in, left
}

// required tells whether a column is never null.
func required(c schemas.Column) bool { return c.Required || c.From.Kind == schemas.FromResultID }

// notNull is the constraint of a column, with a blank before it.
func notNull(c schemas.Column) string {
	if required(c) {
		return " NOT NULL"
	}
	return ""
}

// table is the table's quoted name.
func (d *Dialect) table(t Table) string { return d.path(t.Name) }

// beside is the quoted name of a table that helps to load another one.
func (d *Dialect) beside(t Table) string {
	last := len(t.Name) - 1
	return d.path(append(slices.Clone(t.Name[:last]), t.Name[last]+besideSuffix))
}

const besideSuffix = "__load"

func (d *Dialect) path(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = d.quote(n)
	}
	return strings.Join(quoted, ".")
}

// names are the columns' quoted names.
func (d *Dialect) names(t Table) []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = d.quote(c.Name)
	}
	return names
}

// each makes a line for each column.
func each(t Table, line func(schemas.Column) string) []string {
	lines := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		lines[i] = line(c)
	}
	return lines
}

// resultID is the name of the column that holds the result's id, "" where
// there is none.
func resultID(t Table) string {
	for _, c := range t.Columns {
		if c.From.Kind == schemas.FromResultID {
			return c.Name
		}
	}
	return ""
}
