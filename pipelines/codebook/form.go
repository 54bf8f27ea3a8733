package codebook

import (
	"slices"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Form is what a run saw of a form.
type Form struct {
	Columns []schemas.Column  // that the run gives its rows
	Labels  map[string]string // the headings of the service by id; nil where none came
	Stats   transform.Stats   // of all results that the run read
}

// gone makes a function that tells whether an item is gone from the form. It is where
// the service's headings list items and not this one, though it had a label. An item
// that never had a label may be there.
//
// A heading does not say whether it is about an item. It is where a column or a
// result has an item of that id.
func (f Form) gone() func(from schemas.Source, label string) bool {
	listed := func(from schemas.Source) bool {
		_, listed := f.Labels[from.ID]
		return listed && from.Kind == schemas.FromItem
	}
	items := slices.ContainsFunc(f.Columns, func(c schemas.Column) bool { return listed(c.From) })
	for from := range f.Stats.Seen {
		items = items || listed(from)
	}
	for from := range f.Stats.Ignored {
		items = items || listed(from)
	}
	return func(from schemas.Source, label string) bool {
		return from.Kind == schemas.FromItem && items && label != "" && !listed(from)
	}
}
