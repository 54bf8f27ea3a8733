// Package ddl writes SQL for schemas: a CREATE TABLE with comments for each of five
// dialects, and for DuckDB a view over the files that runs wrote.
//
// Every identifier is quoted and spelled as in the files, so that no reserved word
// and no character breaks a statement. The statements can be run again.
//
// The package does not connect to an engine. Begin reading with Dialect.Create.
package ddl

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// Table is the table or view that the statements create.
type Table struct {
	Name    []string // the names of the database and the schema, if given, then the table's own
	Comment string
	Columns []schemas.Column // the table's columns; dropped ones (pii: drop) are left out
	Key     int              // the first so many columns tell the rows of a list or of files apart; 0 for a table of results
}

// Dialect writes the SQL of one engine.
type Dialect struct {
	Name string // the dialect's name, as --dialect spells it

	quote func(string) string // quotes an identifier
	text  func(string) string // makes a string literal
	limit limits
	types types
	keys  bool // tables of lists and of files have a primary key
	// constraint returns the SQL that follows a column's type, with a blank before it.
	constraint func(t Table, c schemas.Column) string
	// columnComment and tableComment are the formats of comments within CREATE
	// TABLE. If they are "", comments have statements of their own.
	columnComment, tableComment string
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
	lines := each(t.Columns, func(c schemas.Column) string {
		line := d.quote(c.Name) + " " + d.types.of(c.Type) + d.constraint(t, c)
		if d.columnComment != "" {
			line += fmt.Sprintf(d.columnComment, d.text(comment(c)))
		}
		return line
	})
	if d.keys && t.Key > 0 {
		lines = append(lines, "PRIMARY KEY ("+strings.Join(each(t.Columns[:t.Key], func(c schemas.Column) string { return d.quote(c.Name) }), ", ")+")")
	}
	s.items("CREATE TABLE IF NOT EXISTS "+d.path(t.Name)+" (", lines, end+";")
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

// notNull returns the constraint of a column that is never null, as most engines write it.
func notNull(_ Table, c schemas.Column) string {
	if c.Required || c.From.Kind == schemas.FromResultID {
		return " NOT NULL"
	}
	return ""
}

// path returns the quoted name of a table.
func (d *Dialect) path(names []string) string { return strings.Join(each(names, d.quote), ".") }

// each returns the results of text for all elements of list.
func each[T any](list []T, text func(T) string) []string {
	texts := make([]string, len(list))
	for i, element := range list {
		texts[i] = text(element)
	}
	return texts
}
