package jsonapi

import (
	"cmp"
	"slices"
)

// Form is what a request can learn of a form.
type Form struct {
	Directory, Name, Description string
	Closed                       bool
	Results                      int // stored

	Items   []Item
	Groups  map[string]string // labels of composite items, by id
	Labels  map[string]map[string]string
	View    func(id string) (columns []string, ok bool)
	Has     func(column string) bool // tells a meta or an item of the form or its results
	IsItem  func(column string) bool // tells an item of the form or its results
	Read    func(Selection) Page
	Choices func(item string) []string // labels seen of an item that declares none
}

// Item is one question. Choices are the labels of its choices in order; nil
// means that it has none to choose from.
type Item struct {
	ID, Type, Label string
	Position        int
	Choices         []string
}

// Meta is one piece of information about a result, as API v1 gives it.
type Meta struct{ ID, Value string }

// Answer is the answer to one item. Several answers may have one id.
type Answer struct {
	ID, Type string
	Position int
	Values   []string
}

// Result is one stored result. Its dates are the account's wall clock.
type Result struct {
	ID    int64
	Metas []Meta
	Items []Answer
}

// values are those of all answers to an item.
func (r Result) values(item string) []string {
	var values []string
	for _, a := range r.Items {
		if a.ID == item {
			values = append(values, a.Values...)
		}
	}
	return values
}

// Page is what a selection holds: Each calls yield with the results of one
// page, in order.
type Page struct {
	Total         int // results of all pages
	Number, Limit int // as the service applied them
	Each          func(yield func(Result))
}

// The metas that this generation spells in its own way.
const (
	metaStatus = "result_status"
	metaStart  = "date_start"
	metaFinish = "date_finish"
	metaUpdate = "date_update"
)

func isDate(meta string) bool { return meta == metaStart || meta == metaFinish || meta == metaUpdate }

// choosing tells whether items of a type hold choices also where the form
// declares none.
func choosing(kind string) bool {
	return slices.Contains([]string{"checkbox", "radio", "select", "list", "dropdown"}, kind)
}

// several tells whether an answer to an item of a type may hold several choices. One
// without any is shown all the same: nothing was chosen.
func several(kind string) bool { return kind == "checkbox" || kind == "list" }

// Learns tells whether the labels of an item's choices are those that its
// answers have.
func Learns(it Item) bool { return len(it.Choices) == 0 && choosing(it.Type) }

// question is what the answers to one item have in common.
type question struct {
	Item
	chosen bool // its answers are choices
	file   bool // its answers are links

	// The last results that answered it, that did so twice, and that were written.
	seen, again, written int
}

// questions finds the items of a form by id.
type questions struct {
	form  *Form
	known map[string]*question
	count int // results looked at, from 1
}

func newQuestions(f *Form, ownPositions bool) *questions {
	q := &questions{form: f, known: make(map[string]*question, len(f.Items))}
	shared := make(map[string]int) // positions by top-level id
	for _, it := range f.Items {
		if least, ok := shared[top(it.ID)]; !ok || it.Position < least {
			shared[top(it.ID)] = it.Position
		}
	}
	for _, it := range f.Items {
		if composite := top(it.ID); composite != "" && !ownPositions {
			it.Position = shared[composite]
		}
		q.add(it)
	}
	return q
}

func (q *questions) add(it Item) *question {
	if Learns(it) {
		it.Choices = q.form.Choices(it.ID)
	}
	made := &question{Item: it, chosen: len(it.Choices) > 0 || choosing(it.Type), file: it.Type == "file"}
	q.known[it.ID] = made
	return made
}

// of returns the question that an answer belongs to. One that the form does
// not list is made of the answer itself.
func (q *questions) of(a Answer) *question {
	if known, ok := q.known[a.ID]; ok {
		return known
	}
	return q.add(Item{ID: a.ID, Type: a.Type, Position: a.Position})
}

// position is the place of a value among the choices. What is none of them is
// an "other" choice, which comes behind the last.
func (q *question) position(value string) (at int, other bool) {
	if i := slices.Index(q.Choices, value); i >= 0 {
		return i, false
	}
	return len(q.Choices), true
}

// sortedItems are the items of a form by position, each after its parents.
func sortedItems(f *Form, all *questions) []Item {
	items := make([]Item, 0, len(f.Items))
	for _, it := range f.Items {
		items = append(items, all.known[it.ID].Item)
	}
	own := make(map[string]int, len(f.Items)) // the form's own order settles ties
	for _, it := range f.Items {
		own[it.ID] = it.Position
	}
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(own[a.ID], own[b.ID]))
	})
	return items
}
