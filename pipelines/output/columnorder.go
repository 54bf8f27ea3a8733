package output

import (
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// ordered puts a dataset's columns in the order of its manifest, new ones behind
// them. Older parts have that order, and some loaders take columns by position.
// A single file is written anew in the order of the schema, and so is what
// replaces a whole dataset.
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

// withOlder adds to columns of a dataset those that only older parts have,
// where the manifest before has them.
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

// placesOf are the places of a manifest's columns by their sources.
func placesOf(columns []load.Column) map[string]int {
	places := make(map[string]int, len(columns))
	for i, c := range columns {
		places[c.From] = i
	}
	return places
}
