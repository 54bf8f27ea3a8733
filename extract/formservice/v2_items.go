package formservice

import (
	"cmp"
	"slices"
)

// describe writes what Get Forms and Get Form say of a form.
func (c *jsonCall) describe(f *Form) {
	w := c.w
	link := "https://" + c.http.Host + "/" + c.server.account() + "/" + f.Directory + "/"
	w.open('{')
	w.member("directory", f.Directory)
	w.member("name", f.Name)
	w.member("description", f.Description)
	w.member("state", "open")
	w.key("publish")
	w.open('{')
	w.member("link", link)
	w.member("embed_code", `<iframe src="`+link+`" width="100%"></iframe>`)
	w.close('}')
	results := "resultsCount"
	if c.faults.on("v2-snake-stats") {
		results = "results_count"
	}
	w.key("stats")
	w.open('{')
	w.numberMember(results, int64(len(f.stored.records)))
	w.close('}')
	w.close('}')
}

// parents are the ids of the composite items that an item belongs to, the
// outermost first: 353 and 353-0 of 353-0-1.
func parents(id string) []string {
	var found []string
	for i := range len(id) {
		switch {
		case id[i] == '-' && i > 0 && id[i-1] != '-' && i+1 < len(id):
			found = append(found, id[:i])
		case id[i] < '0' || id[i] > '9':
			return nil
		}
	}
	return found
}

// top is the outermost composite item that an item belongs to, "" for none.
func top(id string) string {
	if p := parents(id); len(p) > 0 {
		return p[0]
	}
	return ""
}

// listItems writes the items of the form in order: each after its parents.
func (c *jsonCall) listItems(labels map[string]string) {
	w, f := c.w, c.form
	listed := make(map[string]bool, len(f.Items))
	for _, it := range f.Items {
		listed[it.ID] = true
	}
	sorted := sortedItems(f, newQuestions(f, c.faults.on("v2-own-positions")))
	children := make(map[string][]string)
	for _, it := range sorted {
		chain := append(parents(it.ID), it.ID)
		for i := 1; i < len(chain); i++ {
			siblings := children[chain[i-1]]
			if !slices.Contains(siblings, chain[i]) {
				children[chain[i-1]] = append(siblings, chain[i])
			}
		}
	}
	w.key("items")
	w.open('[')
	for _, it := range sorted {
		for _, parent := range parents(it.ID) {
			if !listed[parent] {
				listed[parent] = true
				c.item(Item{ID: parent, Index: it.Index, Label: f.Groups[parent]}, children[parent], labels)
			}
		}
		c.item(it, children[it.ID], labels)
	}
	w.close(']')
}

func (c *jsonCall) item(it Item, children []string, labels map[string]string) {
	w := c.w
	if own, ok := labels[it.ID]; ok {
		it.Label = own
	}
	w.open('{')
	if len(children) > 0 {
		w.key("children")
		w.open('[')
		for _, id := range children {
			w.text(id)
		}
		w.close(']')
	}
	w.member("id", it.ID)
	w.numberMember("position", int64(it.Index))
	w.member("label", it.Label)
	w.close('}')
}

// several tells whether an answer to an item of a type may hold several choices. One
// without any is shown all the same: nothing was chosen.
func several(kind string) bool { return kind == "checkbox" || kind == "list" }

// questions are the items of a form by id, with the positions that answers show.
type questions map[string]Item

func newQuestions(f *Form, ownPositions bool) questions {
	q := make(questions, len(f.Items))
	least := make(map[string]int) // positions by top-level id
	for _, it := range f.Items {
		if index, ok := least[top(it.ID)]; !ok || it.Index < index {
			least[top(it.ID)] = it.Index
		}
	}
	for _, it := range f.Items {
		if composite := top(it.ID); composite != "" && !ownPositions {
			it.Index = least[composite]
		}
		q[it.ID] = it
	}
	return q
}

// of returns the item that an answer belongs to. One that the form does not list is made of
// the answer itself.
func (q questions) of(a Answer) Item {
	if known, ok := q[a.ID]; ok {
		return known
	}
	return Item{ID: a.ID, Type: a.Type, Index: a.Index}
}

// position is the place of a value among the choices. What is none of them is
// an "other" choice, which comes behind the last.
func (it Item) position(value string) (at int, other bool) {
	if i := slices.Index(it.Choices, value); i >= 0 {
		return i, false
	}
	return len(it.Choices), true
}

// sortedItems are the items of a form by position, each after its parents.
func sortedItems(f *Form, all questions) []Item {
	items := slices.Clone(f.Items)
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(all[a.ID].Index, all[b.ID].Index), cmp.Compare(a.Index, b.Index))
	})
	for i, it := range items {
		items[i] = all[it.ID]
	}
	return items
}
