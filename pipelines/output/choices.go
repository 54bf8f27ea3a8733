package output

import (
	"fmt"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// The formats that show lists in several ways.
const (
	csvFormat  = "csv"
	xlsxFormat = "xlsx"
)

// shown are the output's columns for the windows: the run's as its format shows
// them, with the choices that lists have columns for; or those of a child
// output. seen is what the rows of the windows hold; before is the manifest of
// the last run, nil where there was none.
func (e encoding) shown(windows []*reading.Window, seen map[schemas.Source]transform.Seen, before *load.Manifest) ([]schemas.Column, error) {
	columns := e.snapshot.Columns(windows)
	if most := e.snapshot.Schema.MostColumns(); len(columns) > most { // windows that were taken over have some, too
		return nil, &transform.ColumnsError{Columns: len(columns), Max: most}
	}
	known := codebook.BySource(before)
	if e.out.Exploded() {
		return ChildColumns(columns, e.out.Explode)
	}
	for i := range columns {
		c := &columns[i]
		if e.format.Name != csvFormat && e.format.Name != xlsxFormat {
			c.ListAs, c.Choices = "", nil // what they do not change does not make parts anew
			continue
		}
		if c.ListAs != schemas.ListColumns {
			continue
		}
		var err error
		if c.Choices, err = e.choices(*c, seen[c.From], before, known); err != nil {
			return nil, err
		}
	}
	return e.ordered(columns, before), nil
}

// choices are those that a list has columns for: the declared ones, those that
// the last run had, and new ones by their values. So columns keep their order,
// and equal results give equal bytes whatever windows they were read in.
func (e encoding) choices(c schemas.Column, seen transform.Seen, before *load.Manifest, known map[string]*load.Column) ([]string, error) {
	all := slices.Clone(c.Choices)
	if e.remembers(before) {
		if was := known[c.From.String()]; was != nil {
			all = append(all, was.Choices...)
		}
	}
	fresh := make([]string, 0, len(seen.Choices))
	for value := range seen.Choices {
		fresh = append(fresh, value)
	}
	slices.Sort(fresh)
	all = distinct(append(all, fresh...))
	if seen.Many || len(all) > transform.MostChoices {
		return nil, &ChoicesError{Column: c.Name}
	}
	return all, nil
}

// remembers tells whether a manifest's choices are those that this run goes on
// from. A single file is written anew: its choices stay where the same
// definition is run again, not those of an export, whose file depends on what
// it was asked for alone.
func (e encoding) remembers(m *load.Manifest) bool {
	return m != nil && !e.job.Full && (e.out.Dataset() || e.job.Def.File != "" && m.Form == e.job.Form)
}

// distinct leaves each text where it stands first.
func distinct(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// ChoicesError is a list of more different values than CSV has columns for. It
// is a data error (exit code 65).
type ChoicesError struct{ Column string }

// Error names the column, the bound and the ways out.
func (e *ChoicesError) Error() string {
	return fmt.Sprintf("column %s (list_as: columns) holds more than %d different values, or long ones: they are no choices that a file can have columns for; write list_as: joined or json, or explode: true",
		e.Column, transform.MostChoices)
}
