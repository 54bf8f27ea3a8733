package parquetout

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/formetl/formetl/load/internal/rows"
)

// The first rows of a part decide on its dictionaries. The encoder buffers them
// until there are bufferRows rows or bufferBytes bytes of values. Then it looks at a
// quarter of them, but at least at leastSample and at most at mostSample. They are
// spread evenly. None of this depends on batches, so that equal rows give equal files.
const (
	bufferRows  = 4096
	bufferBytes = 16 << 20
	leastSample = 128
	mostSample  = 1024
)

// buffer measures the rows at the beginning of a part.
type buffer struct {
	rows  int
	bytes int
}

// add counts the batch's rows until the buffer is full, and tells whether it is full.
func (b *buffer) add(batch arrow.RecordBatch) bool {
	n := int(batch.NumRows())
	if all := sizeOf(batch, 0, n); b.bytes+all < bufferBytes {
		b.rows, b.bytes = min(b.rows+n, bufferRows), b.bytes+all
		return b.rows == bufferRows
	}
	for row := range n {
		b.rows++
		b.bytes += sizeOf(batch, row, row+1)
		if b.rows == bufferRows || b.bytes >= bufferBytes {
			return true
		}
	}
	return false
}

// sizeOf returns about how many bytes the rows [from, to) of the batch take.
func sizeOf(batch arrow.RecordBatch, from, to int) int {
	n := 0
	for _, arr := range batch.Columns() {
		n += sizeOfArray(arr, from, to)
	}
	return n
}

func sizeOfArray(arr arrow.Array, from, to int) int {
	if from == to {
		return 0
	}
	switch a := arr.(type) {
	case *array.String:
		return 4*(to-from) + a.ValueOffset(to-1) + a.ValueLen(to-1) - a.ValueOffset(from)
	case *array.List:
		first, _ := a.ValueOffsets(from)
		_, end := a.ValueOffsets(to - 1)
		return sizeOfArray(a.ListValues(), int(first), int(end))
	case *array.Boolean:
		return to - from
	case *array.Date32:
		return 4 * (to - from)
	case *array.Decimal128:
		return 16 * (to - from)
	default:
		return 8 * (to - from)
	}
}

// dictionaries returns, for each column, whether it gets a dictionary. The pieces
// hold n rows. It forgets what c has counted before.
func (c *cardinality) dictionaries(columns int, pieces []rows.Piece, n int) []bool {
	pays := make([]bool, columns)
	size := min(n, max(leastSample, min(n/4, mostSample)))
	sample := make([][]int, len(pieces)) // the rows of each piece
	for k, at, base := 0, 0, 0; k < size; k++ {
		row := sampled(k, n, size)
		for row >= base+pieces[at].To-pieces[at].From {
			base += pieces[at].To - pieces[at].From
			at++
		}
		sample[at] = append(sample[at], pieces[at].From+row-base)
	}
	for i := range pays {
		c.reset()
		for at, rows := range sample {
			c.count(pieces[at].Batch.Column(i), rows)
		}
		pays[i] = c.pays(n, size)
	}
	return pays
}

// sampled returns the k-th row of a sample of size rows out of n. Each of size equal
// stretches gives one row, from a place that differs between stretches. So values
// that repeat every few rows do not mislead.
func sampled(k, n, size int) int {
	from, to := k*n/size, (k+1)*n/size
	return from + int(uint32(k)*2654435761>>16)%(to-from)
}

// cardinality counts the distinct values of a column's sample, by their hashes. Two
// values with one hash of 64 bits count as one: only the choice of a dictionary depends
// on it.
type cardinality struct {
	values int     // number of values that are not null
	seen   int     // number of distinct values
	once   int     // number of values that occur once
	stored int     // bytes of the distinct values, as a dictionary stores them
	plain  int     // bytes of all values
	table  []entry // its length is a power of two; at most half of it is used
}

// entry is a place of the table for one distinct value.
type entry struct {
	hash  uint64 // 0 where the place is free
	twice bool   // the value occurs more than once
}

// leastTable is enough for the smallest sample of a column that is no list. A table of
// more than mostTable places, which long lists take, is not kept for the next column.
const (
	leastTable = 2 * leastSample
	mostTable  = 8 * mostSample
)

func newCardinality() *cardinality { return &cardinality{table: make([]entry, leastTable)} }

// reset forgets what was counted.
func (c *cardinality) reset() {
	if len(c.table) > mostTable {
		c.table = make([]entry, leastTable)
	}
	clear(c.table)
	*c = cardinality{table: c.table}
}

// pays tells whether the column gets a dictionary, by sampled of n rows. On average
// each distinct value must occur at least four times, and the dictionary must halve
// the bytes. zstd compresses values that repeat less often just as well, in less
// time than a hash table takes.
//
// The number of distinct values in all n rows is estimated as Charikar and others
// do (GEE, PODS 2000). Values seen more than once are all there are of their kind.
// Values seen once stand for sqrt(n/sampled) values each.
func (c *cardinality) pays(n, sampled int) bool {
	if c.seen == 0 {
		return false
	}
	distinct := c.seen - c.once + int(float64(c.once)*math.Sqrt(float64(n)/float64(sampled)))
	values := c.values * n / sampled
	if distinct*4 > values {
		return false
	}
	indexes := values * bits.Len(uint(distinct-1)) / 8
	return (c.stored*distinct/c.seen+indexes)*2 <= c.plain*n/sampled
}

// count counts the values of rows, or each element of their lists. Types that never get
// a dictionary have no values here.
func (c *cardinality) count(arr arrow.Array, rows []int) {
	valid := validityOf(arr)
	note := func(of func(row int) (hash uint64, size int)) {
		for _, row := range rows {
			if valid.at(row) {
				c.note(of(row))
			}
		}
	}
	switch a := arr.(type) {
	case *array.String:
		note(func(row int) (uint64, int) { return xxh3.HashString(a.Value(row)), 4 + a.ValueLen(row) })
	case *array.Int64:
		note(func(row int) (uint64, int) { return scatter(uint64(a.Value(row))), 8 })
	case *array.Float64:
		note(func(row int) (uint64, int) { return scatter(math.Float64bits(a.Value(row))), 8 })
	case *array.Date32:
		note(func(row int) (uint64, int) { return scatter(uint64(a.Value(row))), 4 })
	case *array.Timestamp:
		note(func(row int) (uint64, int) { return scatter(uint64(a.Value(row))), 8 })
	case *array.Decimal128:
		if !wide(a.DataType().(*arrow.Decimal128Type)) {
			note(func(row int) (uint64, int) { return scatter(a.Value(row).LowBits()), 8 })
		}
	case *array.List:
		var elements []int
		for _, row := range rows {
			start, end := a.ValueOffsets(row)
			for i := start; i < end && valid.at(row); i++ {
				elements = append(elements, int(i))
			}
			if len(elements) >= mostSample {
				c.count(a.ListValues(), elements)
				elements = elements[:0]
			}
		}
		c.count(a.ListValues(), elements)
	}
}

// scatter spreads the bits of a number, as the finalizer of SplitMix64 does. No two
// numbers become one.
func scatter(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// note counts a value of size bytes by its hash.
func (c *cardinality) note(hash uint64, size int) {
	c.values++
	c.plain += size
	e := c.place(max(hash, 1))
	switch {
	case e.hash == 0:
		e.hash = max(hash, 1)
		c.stored += size
		c.once++
		if c.seen++; 2*c.seen > len(c.table) {
			c.grow()
		}
	case !e.twice:
		e.twice = true
		c.once--
	}
}

// place returns the entry of a hash, or the free one that it is to take.
func (c *cardinality) place(hash uint64) *entry {
	for i := hash; ; i++ {
		if e := &c.table[i&uint64(len(c.table)-1)]; e.hash == hash || e.hash == 0 {
			return e
		}
	}
}

// grow doubles the table.
func (c *cardinality) grow() {
	old := c.table
	c.table = make([]entry, 2*len(old))
	for _, e := range old {
		if e.hash != 0 {
			*c.place(e.hash) = e
		}
	}
}
