package parquetout

// keptBytes is the size of the largest slice that is kept for the next file.
const keptBytes = 1 << 20

// memory holds slices that the pages of a column are made in. With many small parts
// most of the work would be to allocate and clear them.
type memory struct {
	definitions, repetitions, values []byte
	numbers, rows                    []int64
	ids                              []int32
	texts                            map[string]int32 // of a dictionary
}

// fileMemory is what a file needs besides its rows: memory for each column, for the
// sample, and for one page and its compression.
type fileMemory struct {
	columns []memory
	sample  *cardinality
	pages   *pageWriter
	zstd    *zstdCodec // nil for files of other compressions
}

// kept holds the memory of closed files for later ones. A column gets the memory of the
// same column of another file, because with that of any column all would grow to the
// largest. A sync.Pool would lose the memory before the next file asks for it: a part
// takes longer than the garbage collector takes to empty the pool.
var kept = make(chan *fileMemory, mostKept)

// mostKept is how many files' memory is kept, of two to four megabytes each.
const mostKept = 4

// takeMemory returns the memory of a closed file, or new memory.
func takeMemory() *fileMemory {
	select {
	case m := <-kept:
		return m
	default:
		return &fileMemory{sample: newCardinality(), pages: newPageWriter()}
	}
}

// keepMemory gives the memory of a file to later files. Its columns must not be used
// again.
func keepMemory(m *fileMemory, columns []*column) {
	m.columns = make([]memory, len(columns))
	for i, c := range columns {
		m.columns[i] = c.memory()
	}
	m.pages.keep()
	select {
	case kept <- m:
	default:
	}
}

// column returns the memory of the i-th column.
func (m *fileMemory) column(i int) memory {
	if i < len(m.columns) {
		return m.columns[i]
	}
	return memory{}
}

// memory returns the memory of the column.
func (c *column) memory() memory {
	m := memory{
		definitions: keepable(c.page.definitions, 1), repetitions: keepable(c.page.repetitions, 1),
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
		m.ids, m.texts = keepable(d.all, 4), d.keepable()
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
