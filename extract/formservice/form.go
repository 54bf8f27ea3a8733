package formservice

import (
	"slices"
	"sync"
	"time"
)

// WallTime is the layout of dates, in parameters and in values: wall-clock
// time of the account's zone. Times in this package carry UTC as a vessel.
const WallTime = "2006-01-02 15:04:05"

// The metas that carry dates that the service itself reads or writes.
const (
	metaStatus = "result_status"
	metaStart  = "date_start"
	metaFinish = "date_finish"
	metaUpdate = "date_update"
)

// Item is one question of a form.
type Item struct {
	ID      string   // the API id: a number or, in a matrix, like "353-0-0"
	Type    string   // the type attribute: text, checkbox, …
	Index   int      // position on the form, from 1
	Label   string   // its heading; labels may repeat, be empty or hold line breaks
	Choices []string // the answers to choose from, where the type has them
}

// Meta is one piece of information about a result.
type Meta struct {
	ID    string
	Value string
}

// Answer is the answer to one item. Several answers of one result may have
// the same id. Type and Index, where left out, are those of the form's item.
type Answer struct {
	ID     string
	Type   string
	Index  int
	Values []string // none: <item …/>, without a value element
}

// Result is one stored result. An item that was not answered is missing from
// Items; an answer that is empty has the value "".
type Result struct {
	ID    int64
	Metas []Meta
	Items []Answer
}

// Meta returns the value of a meta and whether the result has it.
func (r Result) Meta(id string) (string, bool) {
	for _, m := range r.Metas {
		if m.ID == id {
			return m.Value, true
		}
	}
	return "", false
}

// Date returns the wall-clock time that date bounds look at, zero without one.
func (r Result) Date() time.Time {
	for _, id := range []string{metaFinish, metaStart} {
		v, _ := r.Meta(id)
		if at, err := time.Parse(WallTime, v); err == nil {
			return at
		}
	}
	return time.Time{}
}

// Values returns the values of all answers to an item, in order, and whether
// there is an answer at all.
func (r Result) Values(item string) (values []string, answered bool) {
	for _, a := range r.Items {
		if a.ID == item {
			values, answered = append(values, a.Values...), true
		}
	}
	return values, answered
}

// once returns the answers with each item once, which then has all its values.
func (r Result) once() (items []Answer) {
	at := make(map[string]int, len(r.Items))
	for _, a := range r.Items {
		if i, there := at[a.ID]; there {
			items[i].Values = append(slices.Clip(items[i].Values), a.Values...)
			continue
		}
		at[a.ID] = len(items)
		items = append(items, a)
	}
	return items
}

// column returns the values of a meta or an item, an empty one where there is none.
func (r Result) column(id string) []string {
	if v, ok := r.Meta(id); ok {
		return []string{v}
	}
	if values, _ := r.Values(id); len(values) > 0 {
		return values
	}
	return []string{""}
}

// Clone returns a copy that shares no slice with r.
func (r Result) Clone() Result {
	r.Metas = slices.Clone(r.Metas)
	r.Items = slices.Clone(r.Items)
	for i := range r.Items {
		r.Items[i].Values = slices.Clone(r.Items[i].Values)
	}
	return r
}

// SetMeta gives a meta a value, adding it where it is missing.
func (r *Result) SetMeta(id, value string) {
	for i := range r.Metas {
		if r.Metas[i].ID == id {
			r.Metas[i].Value = value
			return
		}
	}
	r.Metas = append(r.Metas, Meta{id, value})
}

// View is a Results View: a subset of the columns and, with conditions, of the
// results.
type View struct {
	ID      string
	Columns []string    // meta and item ids; nil: all
	Where   []Condition // all must hold; nil: every result
}

// AllData is the id of the view that shows everything; every form has it.
const AllData = "11"

// Form is one form with its results. The exported fields are read while
// requests are answered and must not be changed then; results may be inserted,
// updated, finished and deleted at any time. The zero value is a form without
// items and results.
type Form struct {
	ID          string // the id attribute; "": the directory
	Name        string
	Description string
	Directory   string // the <form> of the paths

	Items  []Item
	Metas  []string                     // the metas of the headings, in order; further ones may occur in results
	Views  []View                       // besides AllData
	Labels map[string]map[string]string // sets of custom labels: set id, then meta or item id
	Groups map[string]string            // labels of composite items, like "353" and "353-0"; "" where missing

	// Clock is the wall clock of the account, by which every insert, edit,
	// move and finish sets the meta date_update, in whole seconds. nil: results
	// are stored as they are given. See SetClock. It is called while the form
	// is locked, so it must not call the form's methods.
	Clock func() time.Time

	mu     sync.RWMutex
	stored stored
}

// stored is the results of a form and what was done to them.
type stored struct {
	generated *generated      // makes the contents of the results that it numbered; nil: none
	records   []record        // by ascending id
	top       int64           // the highest id ever given: ids are never given twice
	seen      map[string]bool // columns of results that Items and Metas do not list; true: an item
	changes   []Change
}

// NewForm returns a form that holds the given results. Results without an id
// are numbered from 1 on, or after the highest id before them. Results with
// the id of an earlier one are left out.
func NewForm(directory string, items []Item, results []Result) *Form {
	f := &Form{Directory: directory, Name: directory, Items: items}
	for _, r := range results {
		if _, err := f.Insert(r); err != nil {
			continue
		}
	}
	f.stored.changes = nil
	return f
}

// Len returns the number of results.
func (f *Form) Len() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.stored.records)
}

// Each calls yield with every result by ascending id until it returns false.
// The results are copies. The form must not be changed by yield.
func (f *Form) Each(yield func(Result) bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, r := range f.stored.records {
		if !yield(f.stored.result(r).Clone()) {
			return
		}
	}
}

// Get returns a copy of a result and whether there is one.
func (f *Form) Get(id int64) (Result, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.stored.load(id)
}

// load returns a copy of a result and whether there is one.
func (st *stored) load(id int64) (Result, bool) {
	i, ok := st.find(id)
	if !ok {
		return Result{}, false
	}
	return st.result(st.records[i]).Clone(), true
}

// result returns the result of a record, which nobody may change.
func (st *stored) result(r record) Result {
	if r.result == nil {
		return st.generated.result(r.id)
	}
	return *r.result
}

// item returns the form's item of that id.
func (f *Form) item(id string) (Item, bool) {
	for _, it := range f.Items {
		if it.ID == id {
			return it, true
		}
	}
	return Item{}, false
}

// hasColumn tells whether id is a meta or an item of the form or its results.
// A form with a clock has date_update, also before its first change.
func (f *Form) hasColumn(id string) bool {
	if id == metaUpdate && f.Clock != nil {
		return true
	}
	if _, ok := f.item(id); ok || slices.Contains(f.Metas, id) {
		return true
	}
	_, ok := f.stored.seen[id]
	return ok
}

// view returns the view of that id.
func (f *Form) view(id string) (View, bool) {
	for _, v := range f.Views {
		if v.ID == id {
			return v, true
		}
	}
	return View{ID: AllData}, id == AllData
}
