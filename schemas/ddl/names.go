package ddl

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// limits are what an engine of SQL can hold.
type limits struct {
	columns  int                 // most columns of a table, 0 for no limit
	bytes    int                 // most bytes of a name, 0 for no limit
	runes    int                 // most characters of a name, 0 for no limit
	scale    int32               // most digits after the point of a decimal, 0 for no limit
	reserved []string            // names that no column can have, even quoted
	problem  func(string) string // returns what else is wrong with a column's name; nil: nothing
}

// maxParts is how many parts a table's name may have: database, schema and table.
const maxParts = 3

// UnfitError describes a table that an engine cannot hold.
type UnfitError struct {
	Dialect  string
	Table    string
	Problems []string
}

// maxShown is how many problems an UnfitError shows at most.
const maxShown = 10

// Error returns the problems of the table and what to do.
func (e *UnfitError) Error() string {
	shown := e.Problems
	more := ""
	if len(shown) > maxShown {
		more = fmt.Sprintf("\n  and %d more", len(shown)-maxShown)
		shown = shown[:maxShown]
	}
	return fmt.Sprintf("%s cannot create the table %s:\n  %s%s",
		e.Dialect, e.Table, strings.Join(shown, "\n  "), more)
}

// ExitCode is 65, because the fault is in the schema and not in the call.
func (e *UnfitError) ExitCode() int { return 65 }

// Hint says what to change.
func (e *UnfitError) Hint() string {
	return "change the names or types in the schema file, or remove columns there; then run the same command again"
}

// check returns an *UnfitError if the engine cannot hold the table, otherwise nil.
func (d *Dialect) check(t Table) error {
	e := &UnfitError{Dialect: d.Name, Table: plain.Line(strings.Join(t.Name, "."))}
	add := func(format string, args ...any) { e.Problems = append(e.Problems, fmt.Sprintf(format, args...)) }
	l := d.limit
	switch {
	case len(t.Columns) == 0:
		add("it has no columns")
	case l.columns > 0 && len(t.Columns) > l.columns:
		add("it has %d columns, but a table can have at most %d", len(t.Columns), l.columns)
	}
	if len(t.Name) > maxParts {
		add("its name has more than %d parts separated by dots", maxParts)
	}
	for _, name := range t.Name {
		if problem := l.length(name); problem != "" {
			add("its name %q %s", name, problem)
		}
	}
	for _, c := range t.Columns {
		if problem := l.column(c.Name); problem != "" {
			add("column %q %s", c.Name, problem)
		}
		if c.Type.Kind == schemas.Decimal && l.scale > 0 && c.Type.Scale > l.scale {
			add("column %q is %s, but a decimal can have at most %d digits after the point", c.Name, c.Type, l.scale)
		}
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// length returns what is wrong with a name's length or bytes, or "".
func (l limits) length(name string) string {
	switch {
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return "is not valid UTF-8, or contains a zero byte"
	case strings.TrimFunc(name, unicode.IsSpace) == "":
		return "is empty"
	case l.bytes > 0 && len(name) > l.bytes:
		return fmt.Sprintf("is longer than %d bytes", l.bytes)
	case l.runes > 0 && utf8.RuneCountInString(name) > l.runes:
		return fmt.Sprintf("is longer than %d characters", l.runes)
	}
	return ""
}

// column returns what is wrong with a column's name for the engine, or "".
func (l limits) column(name string) string {
	if problem := l.length(name); problem != "" {
		return problem
	}
	if slices.Contains(l.reserved, name) {
		return "has a name that the database keeps for its own columns"
	}
	if l.problem != nil {
		return l.problem(name)
	}
	return ""
}
