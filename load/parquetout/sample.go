package parquetout

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The sample that decides on dictionaries is the first rows of the part. It
// ends at sampleRows rows or sampleBytes bytes of values. It does not depend on
// batches, so that equal rows give equal files.
const (
	sampleRows  = 8192
	sampleBytes = 16 << 20
)

// cardinality counts the distinct values of a column's sample. Its strings
// point into the batches, which the encoder keeps until the sample is complete.
type cardinality struct {
	values  int // number of values that are not null
	stored  int // bytes of the distinct values, as a dictionary stores them
	plain   int // bytes of all values
	strings map[string]struct{}
	numbers map[uint64]struct{} // numbers, days and instants by their bits
}

// pays tells whether the column gets a dictionary. On average each distinct value
// must occur at least four times, and the dictionary must halve the bytes. zstd
// compresses values that repeat less often just as well, in less time than a hash
// table takes. A sample also has fewer distinct values than the whole part.
func (c *cardinality) pays() bool {
	distinct := len(c.strings) + len(c.numbers)
	if c.values == 0 || distinct*4 > c.values {
		return false
	}
	indexes := c.values * bits.Len(uint(distinct-1)) / 8
	return (c.stored+indexes)*2 <= c.plain
}

// count returns a function that counts the value of one row and returns its size
// in bytes. Of a list it counts each element. Booleans and wide decimals never get
// a dictionary. Booleans are single bits; for wide decimals see signedType.
func (c *cardinality) count(arr arrow.Array) func(row int) int {
	switch a := arr.(type) {
	case *array.String:
		return func(row int) int { return note(c, c.strings, a.Value(row), 4+a.ValueLen(row)) }
	case *array.Int64:
		return func(row int) int { return note(c, c.numbers, uint64(a.Value(row)), 8) }
	case *array.Float64:
		return func(row int) int { return note(c, c.numbers, math.Float64bits(a.Value(row)), 8) }
	case *array.Date32:
		return func(row int) int { return note(c, c.numbers, uint64(a.Value(row)), 4) }
	case *array.Timestamp:
		return func(row int) int { return note(c, c.numbers, uint64(a.Value(row)), 8) }
	case *array.Decimal128:
		if wide(a.DataType().(*arrow.Decimal128Type)) {
			return func(int) int { return 16 }
		}
		return func(row int) int { return note(c, c.numbers, a.Value(row).LowBits(), 8) }
	case *array.List:
		return c.list(a)
	default:
		return func(int) int { return 1 }
	}
}

func (c *cardinality) list(a *array.List) func(row int) int {
	values := a.ListValues()
	element := c.count(values)
	return func(row int) int {
		n := 0
		start, end := a.ValueOffsets(row)
		for i := int(start); i < int(end); i++ {
			if values.IsValid(i) {
				n += element(i)
			}
		}
		return n
	}
}

// note counts the value v of size bytes, and returns size. seen holds the distinct values so far.
func note[T comparable](c *cardinality, seen map[T]struct{}, v T, size int) int {
	c.values++
	c.plain += size
	if _, known := seen[v]; !known {
		seen[v] = struct{}{}
		c.stored += size
	}
	return size
}

// sample counts values until it has sampleRows rows or sampleBytes bytes.
type sample struct {
	columns []*cardinality
	rows    int
	bytes   int
}

func newSample(columns int) *sample {
	s := &sample{columns: make([]*cardinality, columns)}
	for i := range s.columns {
		s.columns[i] = &cardinality{strings: map[string]struct{}{}, numbers: map[uint64]struct{}{}}
	}
	return s
}

// add counts the batch's rows until the sample is full, and tells whether it is full.
func (s *sample) add(batch arrow.RecordBatch) bool {
	count := make([]func(int) int, len(s.columns))
	for i, arr := range batch.Columns() {
		count[i] = s.columns[i].count(arr)
	}
	for row := range int(batch.NumRows()) {
		if s.full() {
			break
		}
		s.rows++
		for i, arr := range batch.Columns() {
			if arr.IsValid(row) {
				s.bytes += count[i](row)
			}
		}
	}
	return s.full()
}

func (s *sample) full() bool { return s.rows >= sampleRows || s.bytes >= sampleBytes }

// dictionary returns, for each column, whether it gets a dictionary.
func (s *sample) dictionary() []bool {
	pays := make([]bool, len(s.columns))
	for i, c := range s.columns {
		pays[i] = c.pays()
	}
	return pays
}
