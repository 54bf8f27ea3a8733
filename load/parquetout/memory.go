package parquetout

import "sync"

// keptBytes is the size of the largest slice that is kept for the next file.
const keptBytes = 1 << 20

// memory holds slices that the pages of a column are made in. With many small parts
// most of the work would be to allocate and clear them.
type memory struct {
	definitions, repetitions, values, pages []byte
	numbers, rows                           []int64
	ids                                     []int32
}

// kept holds the memory of closed files, as *[]memory with one for each column. A
// column gets the memory of the same column of another file. With that of any column
// all would grow to the largest. The garbage collector empties it.
var kept sync.Pool

// takeMemory returns memory for n columns, of a closed file if there is one.
func takeMemory(n int) []memory {
	all := make([]memory, n)
	if of, ok := kept.Get().(*[]memory); ok {
		copy(all, *of)
	}
	return all
}

// keepMemory gives the memory of a file's columns to later files. The columns must
// not be used again.
func keepMemory(columns []*column) {
	all := make([]memory, len(columns))
	for i, c := range columns {
		all[i] = c.memory()
	}
	kept.Put(&all)
}

// memory returns the memory of the column.
func (c *column) memory() memory {
	m := memory{
		definitions: keepable(c.page.definitions, 1), repetitions: keepable(c.page.repetitions, 1), pages: keepable(c.chunk.pages, 1),
	}
	switch v := c.plain.(type) {
	case *texts:
		m.values = keepable(v.data, 1)
	case *booleans:
		m.values = keepable(v.bits, 1)
	case *decimals:
		m.values = keepable(v.data, 1)
	case *numbers:
		m.numbers = keepable(v.all, 8)
	}
	switch d := c.dict.(type) {
	case *textDictionary:
		m.ids = keepable(d.all, 4)
	case *numberDictionary:
		m.ids, m.rows = keepable(d.all, 4), keepable(d.rows, 8)
	}
	return m
}

// keepable returns the slice without its values, or nil if it is too large. A value
// has size bytes.
func keepable[T byte | int32 | int64](s []T, size int) []T {
	if cap(s)*size > keptBytes {
		return nil
	}
	return s[:0]
}
