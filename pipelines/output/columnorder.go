package output

import (
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// ordered puts a dataset's columns in the order of its manifest, new ones
// behind them: older parts keep theirs, and some loaders take columns by
// position. A single file is written anew in the order of the schema, and so
// is what replaces a whole dataset.
func (e encoding) ordered(columns []schemas.Column, before *load.Manifest) []schemas.Column {
	if before == nil || e.job.Full || !e.out.Dataset() {
		return columns
	}
	place := make(map[string]int, len(before.Schema))
	for i, c := range before.Schema {
		place[c.From] = i
	}
	at := func(c schemas.Column) int {
		if i, ok := place[c.From.String()]; ok {
			return i
		}
		return len(before.Schema)
	}
	columns = slices.Clone(columns)
	slices.SortStableFunc(columns, func(a, b schemas.Column) int { return at(a) - at(b) })
	return columns
}

// withOlder adds to columns of a dataset those that only older parts have,
// where the manifest before has them.
func withOlder(columns, before []load.Column) []load.Column {
	now := make(map[string]load.Column, len(columns))
	for _, c := range columns {
		now[c.From] = c
	}
	all := make([]load.Column, 0, len(before)+len(columns))
	known := make(map[string]bool, len(before))
	for _, c := range before {
		known[c.From] = true
		if is, ok := now[c.From]; ok {
			c = is
		}
		all = append(all, c)
	}
	for _, c := range columns {
		if !known[c.From] {
			all = append(all, c)
		}
	}
	return all
}
