package output

import (
	"fmt"
	"maps"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// shown returns the output's columns for the windows. A child output has its own
// columns. Other outputs have the run's columns as their format shows them, with the choices
// for which a list (list_as: columns) has columns. seen holds the values in the windows' rows.
func (p *place) shown(windows []*reading.Window, seen map[schemas.Source]transform.Seen) ([]schemas.Column, error) {
	columns := reconcile.Columns(p.snapshot.Schema, p.snapshot.Labels, windows)
	if most := p.snapshot.Schema.MostColumns(); len(columns) > most { // windows from a checkpoint also added columns
		return nil, &transform.ColumnsError{Columns: len(columns), Max: most}
	}
	if p.out.Exploded() {
		return ChildColumns(columns, p.out.Explode)
	}
	known := bySource(p.manifest)
	for i := range columns {
		c := &columns[i]
		if !p.format.Cells {
			c.ListAs = "" // unused here; parts would only look changed
		}
		if c.ListAs != schemas.ListColumns {
			c.Choices = nil // likewise
			continue
		}
		var err error
		if c.Choices, err = p.choices(*c, seen[c.From], known[c.From.String()]); err != nil {
			return nil, err
		}
	}
	return p.job.selected(p.ordered(columns), p.out.Select), nil
}

// selected returns the columns that come from the sources, in the order of sources. It returns
// all columns if sources is nil. A column is there even if no result has it.
func (j *Job) selected(columns []schemas.Column, sources []schemas.Source) []schemas.Column {
	if sources == nil {
		return columns
	}
	var some []schemas.Column
	for _, from := range sources {
		if at := slices.IndexFunc(columns, func(c schemas.Column) bool { return c.From == from }); at >= 0 {
			some = append(some, columns[at])
		} else if from.Kind == schemas.FromOther || j.Def.Schema == nil { // no result has it
			some = append(some, (&schemas.Schema{Columns: columns}).Late(from, transform.DefaultType(from), "", j.Def.Names))
		}
	}
	return some
}

// choices returns the choices for which a list (list_as: columns) has columns: the declared
// ones, then those of the last run, then new ones in alphabetical order. So columns keep their
// order, and equal results give equal bytes, whatever windows they were read in.
func (p *place) choices(c schemas.Column, seen transform.Seen, was *load.Column) ([]string, error) {
	all := slices.Clone(c.Choices)
	if was != nil && p.remembers() {
		all = append(all, was.Choices...)
	}
	all = once(append(all, slices.Sorted(maps.Keys(seen.Choices))...))
	if seen.Many || len(all) > transform.MostChoices {
		return nil, &definition.Fault{
			Code: 65, Text: fmt.Sprintf(
				"column %s has list_as: columns, which makes a column for each value, but it has more than %d different values, or very long ones", c.Name, transform.MostChoices),
			Cure: "in the schema, write list_as: joined (all values in one column) or explode: true (a table of its own); if people typed some values themselves, list the form's choices in choices: and write other: column",
		}
	}
	return all, nil
}

// once takes away the choices that stand in the list before.
func once(choices []string) []string {
	met := make(map[string]bool, len(choices))
	return slices.DeleteFunc(choices, func(choice string) bool {
		again := met[choice]
		met[choice] = true
		return again
	})
}

// remembers tells whether this run keeps the choices of the last run. A dataset
// keeps them. A single file keeps them if the same definition runs again. The
// file of an export does not, because it depends only on the export's range.
func (p *place) remembers() bool {
	return !p.job.Full && (p.out.Dataset() || p.job.Def.File != "" && p.manifest.Form == p.job.Form)
}

// ordered sorts a dataset's columns in the order of its manifest, with new columns
// last. Older parts have that order, and some loaders take columns by position.
// A single file keeps the order of the schema, and so does a dataset that is
// replaced as a whole.
func (p *place) ordered(columns []schemas.Column) []schemas.Column {
	if p.manifest == nil || p.job.Full || !p.out.Dataset() {
		return columns
	}
	places := placesOf(p.manifest.Schema)
	at := func(c schemas.Column) int {
		if i, ok := places[c.From.String()]; ok {
			return i
		}
		return len(p.manifest.Schema)
	}
	slices.SortStableFunc(columns, func(a, b schemas.Column) int { return at(a) - at(b) })
	return columns
}

// placesOf returns the index of each column of a manifest, by the column's source.
func placesOf(columns []load.Column) map[string]int {
	places := make(map[string]int, len(columns))
	for i, c := range columns {
		places[c.From] = i
	}
	return places
}
