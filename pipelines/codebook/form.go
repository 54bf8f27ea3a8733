package codebook

import (
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Form is what a run saw of a form.
type Form struct {
	Columns []schemas.Column  // that the run gives its rows
	Labels  map[string]string // the headings of the service by id; nil where none came
	Stats   transform.Stats   // of all results that the run read
}

// headings are the labels of a form as the run got them.
type headings struct {
	labels map[string]string // by id; nil where no headings came
	items  bool              // items are among them
}

// headings tells whether the service's headings list items. A
// heading does not say itself whether it is about an item. It is known where a
// column or a result has an item of that id.
func (f Form) headings() headings {
	h := headings{labels: f.Labels}
	note := func(from schemas.Source) {
		if _, listed := h.labels[from.ID]; listed && from.Kind == schemas.FromItem {
			h.items = true
		}
	}
	for _, c := range f.Columns {
		note(c.From)
	}
	for from := range f.Stats.Seen {
		note(from)
	}
	for from := range f.Stats.Ignored {
		note(from)
	}
	return h
}

// lacks tells whether an item is gone from the form: the headings list items and
// not this one, though it had a label. An item that never had a label may be there.
func (h headings) lacks(from schemas.Source, label string) bool {
	_, listed := h.labels[from.ID]
	return from.Kind == schemas.FromItem && h.items && label != "" && !listed
}
