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

// kept holds the memory of closed files. The garbage collector empties it.
var kept sync.Pool

// takeMemory returns memory of a closed file, or none.
func takeMemory() memory {
	if m, ok := kept.Get().(*memory); ok {
		return *m
	}
	return memory{}
}

// keep gives the column's memory to later files. The column must not be used again.
func (c *column) keep() {
	m := &memory{
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
	kept.Put(m)
}

// keepable returns the slice without its values, or nil if it is too large. A value
// has size bytes.
func keepable[T byte | int32 | int64](s []T, size int) []T {
	if cap(s)*size > keptBytes {
		return nil
	}
	return s[:0]
}
