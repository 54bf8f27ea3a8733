package parquetout

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go/format"
)

// column takes rows of an Arrow column into an open page, and keeps the finished
// pages of the open row group.
type column struct {
	list    bool
	kind    format.Type
	present byte // definition level of a scalar that is not null, or of an empty list
	page    page
	plain   values
	dict    dictionary // nil if the column has none
	chunk   chunk
}

// newColumn returns a column that uses the memory m.
func newColumn(f arrow.Field, withDictionary bool, m memory) *column {
	c := &column{}
	t := f.Type
	if list, ok := t.(*arrow.ListType); ok {
		c.list, t = true, list.Elem()
	}
	if f.Nullable {
		c.present = 1
	}
	c.kind = leafElement(f.Name, format.Optional, t).Type.V
	c.plain = newValues(t, m)
	c.page = page{values: c.plain, definitions: m.definitions, repetitions: m.repetitions}
	if withDictionary {
		c.dict = newDictionary(t, m)
		c.page.values = c.dict
	}
	return c
}

// deepest returns the definition level of a value that is not null.
func (c *column) deepest() byte {
	if c.list {
		return c.present + 2
	}
	return c.present
}

// repeats returns the repetition level of a list's second element.
func (c *column) repeats() byte {
	if c.list {
		return 1
	}
	return 0
}

// reset begins a new row group.
func (c *column) reset() {
	c.chunk = chunk{}
	if c.dict != nil {
		c.dict.forget()
		c.page.values = c.dict
	}
}

// add appends the rows [from, to) of arr to the open page. It returns how many
// bytes their values take in PLAIN encoding.
func (c *column) add(arr arrow.Array, from, to int) int {
	p := &c.page
	p.rows += to - from
	if list, ok := arr.(*array.List); ok {
		return c.addList(list, from, to)
	}
	p.count += to - from
	if c.present == 0 {
		return p.add(arr, from, to)
	}
	valid := validityOf(arr)
	for row := from; row < to; row++ {
		level := byte(0)
		if valid.at(row) {
			level = 1
		}
		p.definitions = append(p.definitions, level)
	}
	return p.add(arr, from, to)
}

// addList appends the rows [from, to) of a list column. The list has three levels:
// the list itself, which a nullable column makes optional, the repeated "list", and
// the optional "element".
func (c *column) addList(list *array.List, from, to int) int {
	p, bytes, before := &c.page, 0, len(c.page.definitions)
	first, next := 0, 0 // elements that are not yet added
	lists, elements := validityOf(list), validityOf(list.ListValues())
	for row := from; row < to; row++ {
		p.repetitions = append(p.repetitions, 0)
		if !lists.at(row) {
			p.definitions = append(p.definitions, 0)
			continue
		}
		start, end := list.ValueOffsets(row)
		if start == end {
			p.definitions = append(p.definitions, c.present)
			continue
		}
		for i := int(start); i < int(end); i++ {
			if i > int(start) {
				p.repetitions = append(p.repetitions, 1)
			}
			level := c.present + 1
			if elements.at(i) {
				level++
			}
			p.definitions = append(p.definitions, level)
		}
		if int(start) != next {
			bytes += p.add(list.ListValues(), first, next)
			first = int(start)
		}
		next = int(end)
	}
	bytes += p.add(list.ListValues(), first, next)
	p.count += len(p.definitions) - before
	return bytes
}

// full tells whether the page has reached pageBytes. A row counts as four bytes if
// it can be null, and as eight if it is a list, besides its levels and its values.
func (c *column) full() bool {
	p := &c.page
	n := p.size() + len(p.definitions) + len(p.repetitions)
	switch {
	case c.list:
		n += 8 * p.rows
	case c.present > 0:
		n += 4 * p.rows
	}
	return n >= pageBytes
}
