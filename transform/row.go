package transform

import "github.com/formetl/formetl/extract/page"

// row is the current result: its cells by column, and the helpers that read the cells' values.
type row struct {
	page        *page.Page
	number      int64      // number of the row, from 1
	gathered    []gathered // the row's cells, by column
	next        []int32    // for each cell of the result, the next cell of its column, or -1
	crowded     bool       // a column that takes one value has several
	clock       clock
	cloak       cloak
	emptyAsNull bool
	pending     []outcome
}

// gathered locates the row's cells of one column. The cells are linked through row.next.
type gathered struct {
	list       bool  // the column takes several values
	row        int64 // number of the row that the other fields are about
	head, tail int32 // indices of the first and the last cell
	values     int32 // number of values in all these cells
}

// gather links the cells of a result by column.
func (r *row) gather(cells []page.Cell, fields *fieldMap) {
	r.number++
	r.crowded = false
	if len(cells) > len(r.next) {
		r.next = make([]int32, 2*len(cells))
	}
	for k, c := range cells {
		at := fields.at[c.Field]
		if at < 0 {
			fields.ignored[^at].n++
			continue
		}
		g := &r.gathered[at]
		r.next[k] = -1
		if g.row != r.number {
			g.row, g.head, g.values = r.number, int32(k), c.Values
		} else {
			r.next[g.tail] = int32(k)
			g.values += c.Values
		}
		g.tail = int32(k)
		if g.values > 1 && !g.list {
			r.crowded = true
		}
	}
}

// appendPlain writes the row's only string, or null, from the page to the column. It returns
// the string's size in bytes.
func (r *row) appendPlain(c *column, g *gathered, cells []page.Cell) (size int) {
	if g.row == r.number && g.values == 1 {
		k := g.head
		for cells[k].Values == 0 { // elements without a value are skipped
			k = r.next[k]
		}
		if v := r.page.Value(cells[k], 0); len(v) > 0 || !r.emptyAsNull {
			v = r.valueOf(c, v)
			c.texts.BinaryBuilder.Append(v)
			return 16 + len(v)
		}
	}
	c.texts.AppendNull()
	return 8
}
