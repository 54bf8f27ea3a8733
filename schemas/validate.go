package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a schema, and its place.
type Problem struct {
	Column int    // index into Schema.Columns; -1 for the schema's own keys
	Key    string // the key in a schema file: name, from, type, on_error, unknown, empty, max_rejects, max_columns, columns
	Text   string // what is wrong and what to do
}

// Error returns the place of the problem in the schema, and what is wrong.
func (p Problem) Error() string {
	if p.Column < 0 {
		return p.Key + ": " + p.Text
	}
	return fmt.Sprintf("columns[%d].%s: %s", p.Column, p.Key, p.Text)
}

// InvalidError says why a schema cannot be used. It has at least one problem,
// in the order of the columns. Column and Key of a problem let a reader of
// schema files find its line.
type InvalidError struct{ Problems []Problem }

// Error returns all problems of the schema, one on each line.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Validate returns an *InvalidError with everything that is wrong with the
// schema, or nil. It refuses names that differ only in case, because DuckDB and
// most warehouses treat them as equal.
func (s *Schema) Validate() error {
	v := validator{schema: s, names: map[string]int{}, sources: map[Source]int{}, hasID: s.Find(Source{Kind: FromResultID}) >= 0}
	v.ownRules(s)
	for i, c := range s.Columns {
		v.column(i, c, s.Columns)
	}
	if len(v.problems) == 0 {
		return nil
	}
	return &InvalidError{v.problems}
}

type validator struct {
	schema   *Schema
	names    map[string]int // for each lower-case name, the first column that has it
	sources  map[Source]int
	hasID    bool // some column holds the result's id
	problems []Problem
}

func (v *validator) add(column int, key, format string, args ...any) {
	v.problems = append(v.problems, Problem{column, key, fmt.Sprintf(format, args...)})
}

func (v *validator) ownRules(s *Schema) {
	v.oneOf(-1, "unknown", string(s.Unknown), string(UnknownAdd), string(UnknownIgnore), string(UnknownFail))
	v.oneOf(-1, "empty", string(s.Empty), string(EmptyKeep), string(EmptyAsNull))
	if s.MaxColumns < 0 {
		v.add(-1, "max_columns", "must be 1 or more, not %d", s.MaxColumns)
	}
	if s.MaxRejects < 0 {
		v.add(-1, "max_rejects", "must be 0 or more, not %d", s.MaxRejects)
	}
	if len(s.Written()) > 0 || s.Unknown != UnknownIgnore && s.Unknown != UnknownFail {
		return
	}
	none := "no columns"
	if len(s.Columns) > 0 {
		none = "only columns with pii: drop"
	}
	v.add(-1, "columns", "there is nothing to write (%s, and unknown: %s); list columns, or set unknown: add", none, s.Unknown)
}

func (v *validator) column(i int, c Column, all []Column) {
	if c.Name == "" {
		v.add(i, "name", "a column needs a name")
	} else if first, dup := v.names[strings.ToLower(c.Name)]; dup {
		if all[first].Name == c.Name {
			v.add(i, "name", "the column from %s has the name %q too; give one of them another name", all[first].From, c.Name)
		} else {
			v.add(i, "name", "the name %q differs from %q (the column from %s) only in upper and lower case, which DuckDB and most warehouses ignore; change one of them", c.Name, all[first].Name, all[first].From)
		}
	} else {
		v.names[strings.ToLower(c.Name)] = i
	}
	v.source(i, c, all)
	if err := c.Type.Validate(); err != nil {
		v.add(i, "type", "%v", err)
	} else if c.From.Kind == FromResultID && c.Type.Kind != Int64 && c.Type.Kind != String {
		v.add(i, "type", "the result's id is a whole number; use the type int64 or string, not %s", c.Type)
	} else if c.From.Kind == FromOther && c.Type.Kind != String {
		v.add(i, "type", "what people typed is text; use the type string, not %s", c.Type)
	}
	v.oneOf(i, "on_error", string(c.OnError), string(OnErrorFail), string(OnErrorReject), string(OnErrorSetNull))
	v.rules(i, c)
}

func (v *validator) source(i int, c Column, all []Column) {
	if _, err := ParseSource(c.From.String()); err != nil {
		v.add(i, "from", "%v", err)
		return
	}
	if first, dup := v.sources[c.From]; dup {
		v.add(i, "from", "column %[2]q has the source %[1]s already; leave one of the two columns out", c.From, all[first].Name)
		return
	}
	v.sources[c.From] = i
}

// oneOf reports a word that is not one of those allowed. It accepts "", which means a default.
func (v *validator) oneOf(column int, key, got string, allowed ...string) {
	if got != "" && !slices.Contains(allowed, got) {
		v.add(column, key, "unknown value %q; use one of %s", got, strings.Join(allowed, ", "))
	}
}
