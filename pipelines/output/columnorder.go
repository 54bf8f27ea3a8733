package output

import (
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// ordered sorts a dataset's columns in the order of its manifest, with new ones
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

// withOlder adds the columns that only the earlier manifest has. It keeps that
// manifest's order and puts new columns last.
func withOlder(columns, before []load.Column) []load.Column {
	all, places := slices.Clone(before), placesOf(before)
	for _, c := range columns {
		if i, ok := places[c.From]; ok {
			all[i] = c
		} else {
			all = append(all, c)
		}
	}
	return all
}

// placesOf returns the index of each column of a manifest, by the column's source.
func placesOf(columns []load.Column) map[string]int {
	places := make(map[string]int, len(columns))
	for i, c := range columns {
		places[c.From] = i
	}
	return places
}
