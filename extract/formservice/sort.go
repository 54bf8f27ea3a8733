package formservice

import (
	"cmp"
	"slices"
)

// key is a result's place in the order of a column.
type key[V cmp.Ordered] struct {
	value V
	id    int64
}

// best keeps the first of the keys that it is offered, in the order of a
// request: by value, then by id. Its keys are a heap whose root is the last.
type best[V cmp.Ordered] struct {
	keys []key[V]
	most int // so many are kept
	desc bool
}

// compare is negative where a comes before b.
func (b *best[V]) compare(a, c key[V]) int {
	order := cmp.Or(cmp.Compare(a.value, c.value), cmp.Compare(a.id, c.id))
	if b.desc {
		return -order
	}
	return order
}

// last returns the value that a further key must not come after, if there are
// as many keys as are kept.
func (b *best[V]) last() (value V, full bool) {
	if len(b.keys) < b.most {
		return value, false
	}
	return b.keys[0].value, true
}

// offer keeps a key if it is among the first so far.
func (b *best[V]) offer(k key[V]) {
	if len(b.keys) < b.most {
		b.keys = append(b.keys, k)
		b.rise(len(b.keys) - 1)
	} else if b.compare(k, b.keys[0]) < 0 {
		b.keys[0] = k
		b.sink()
	}
}

// rise moves the key at i up to its place in the heap.
func (b *best[V]) rise(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if b.compare(b.keys[i], b.keys[parent]) <= 0 {
			return
		}
		b.keys[i], b.keys[parent] = b.keys[parent], b.keys[i]
		i = parent
	}
}

// sink moves the root down to its place in the heap.
func (b *best[V]) sink() {
	for i := 0; ; {
		next := 2*i + 1
		if next >= len(b.keys) {
			return
		}
		if right := next + 1; right < len(b.keys) && b.compare(b.keys[right], b.keys[next]) > 0 {
			next = right
		}
		if b.compare(b.keys[next], b.keys[i]) <= 0 {
			return
		}
		b.keys[i], b.keys[next] = b.keys[next], b.keys[i]
		i = next
	}
}

// sorted returns the keys in order. Nothing can be offered after that.
func (b *best[V]) sorted() []key[V] {
	slices.SortFunc(b.keys, b.compare)
	return b.keys
}

// sorted returns the keys of the first results of the request, in its order,
// at most so many.
func (f *Form) sorted(q *resultsQuery, most int, s *scratch) []key[string] {
	top := best[string]{most: most, desc: q.desc}
	if q.sort == metaUpdate && !q.filters() {
		for _, k := range f.stored.updates(q, most) {
			top.offer(key[string]{q.momentText(k.value, s), k.id})
		}
		for c := f.stored.heldCursor(q.selection); ; c.step() {
			c.settle()
			id, ok := c.next()
			if !ok {
				return top.sorted()
			}
			r, _ := q.load(f, id, s)
			top.offer(key[string]{q.sortValue(r), id})
		}
	}
	items := q.filters() || !slices.Contains(generatedMetas(), q.sort)
	f.stored.walk(q.selection, 0, func(id int64) bool {
		if r, _ := q.read(f, id, s, items); q.accepts(r) {
			top.offer(key[string]{q.sortValue(r), id})
		}
		return true
	})
	return top.sorted()
}

// load finds a result as the request shows it; it is valid until s is used
// again.
func (q *resultsQuery) load(f *Form, id int64, s *scratch) (Result, bool) {
	return q.read(f, id, s, true)
}

// read is load, of a generated result with its items only if items is true.
func (q *resultsQuery) read(f *Form, id int64, s *scratch, items bool) (Result, bool) {
	r, ok := f.stored.read(id, s, items)
	if ok && q.lacks(id) {
		r.Metas = s.without(r.Metas, metaUpdate)
	}
	return r, ok
}

// lacks tells whether the result of that id is shown without its date_update.
func (q *resultsQuery) lacks(id int64) bool { return q.lack > 0 && id%int64(q.lack) == 0 }

// firstValue is the first value of a column, "" where there is none.
func firstValue(r Result, column string) string {
	if v, ok := r.Meta(column); ok {
		return v
	}
	for _, a := range r.Items {
		if a.ID == column && len(a.Values) > 0 {
			return a.Values[0]
		}
	}
	return ""
}
