package parquetout

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"
)

// The first rows of a part decide on its dictionaries. The encoder buffers whole steps
// until there are firstRows rows or firstBytes bytes of values. Then it looks at a
// quarter of them, but at least at leastSample and at most at mostSample. They are
// spread evenly.
//
// A part of fewer than fewRows rows and less than firstBytes has no dictionaries. Where a
// dataset is divided by day, many such parts are written, and to fill a hash table and write a
// page more for each column took a sixth of the processors' time, for a fifth of the size.
const (
	firstRows   = 4096
	firstBytes  = 8 << 20
	fewRows     = 1000
	leastSample = 128
	mostSample  = 1024
)

// dictionaries returns, for each column, whether it gets a dictionary, by a sample of the
// batches' rows. bytes is how many bytes all values of the batches take.
func dictionaries(schema *arrow.Schema, batches []arrow.RecordBatch, bytes int) []bool {
	n := 0
	for _, b := range batches {
		n += int(b.NumRows())
	}
	if n < fewRows && bytes < firstBytes {
		return nil
	}
	size := min(n, max(leastSample, min(n/4, mostSample)))
	sample := make([][]int, len(batches)) // indices of the sampled rows of each batch
	for k, at, base := 0, 0, 0; k < size; k++ {
		row := sampled(k, n, size)
		for row >= base+int(batches[at].NumRows()) {
			base += int(batches[at].NumRows())
			at++
		}
		sample[at] = append(sample[at], row-base)
	}
	pays := make([]bool, schema.NumFields())
	t := tally{often: make(map[uint64]bool, size)}
	for i := range pays {
		clear(t.often)
		t = tally{often: t.often}
		for at, rows := range sample {
			t.count(batches[at].Column(i), rows)
		}
		pays[i] = t.pays(n, size)
	}
	return pays
}

// sampled returns the index of the k-th row of a sample of size rows out of n. The n rows are
// divided into size equal stretches. Each gives one row, from a place that differs between
// stretches. So values that repeat every few rows do not mislead.
func sampled(k, n, size int) int {
	from, to := k*n/size, (k+1)*n/size
	return from + int(uint32(k)*2654435761>>16)%(to-from)
}

// tally counts the distinct values of a column's sample.
type tally struct {
	values int             // number of values that are not null
	plain  int             // bytes of all values
	stored int             // bytes of the distinct values, as a dictionary stores them
	once   int             // number of values that occur once
	often  map[uint64]bool // whether a value, by its bits or hash, occurs more than once
}

// pays tells whether a column gets a dictionary, by a sample of sampled rows out of n. On
// average each distinct value must occur at least four times, and the dictionary must halve
// the bytes. zstd compresses values that repeat less often just as well, in less time than a
// hash table takes.
//
// The number of distinct values in all n rows is estimated as Charikar and others
// do (GEE, PODS 2000). Values seen more than once are all there are of their kind.
// Values seen once stand for sqrt(n/sampled) values each.
func (t *tally) pays(n, sampled int) bool {
	seen := len(t.often)
	if seen == 0 {
		return false
	}
	distinct := seen - t.once + int(float64(t.once)*math.Sqrt(float64(n)/float64(sampled)))
	values := t.values * n / sampled
	if distinct*4 > values {
		return false
	}
	indexes := values * bits.Len(uint(distinct-1)) / 8
	return (t.stored*distinct/seen+indexes)*2 <= t.plain*n/sampled
}

// count counts the values of an array's rows, or each element of their lists. Booleans never
// get a dictionary, so count skips them.
func (t *tally) count(arr arrow.Array, rows []int) {
	note := func(size int, bits func(row int) uint64) {
		for _, row := range rows {
			if arr.IsValid(row) {
				t.note(bits(row), size)
			}
		}
	}
	switch a := arr.(type) {
	case *array.String:
		for _, row := range rows {
			if a.IsValid(row) {
				t.note(xxh3.HashString(a.Value(row)), 4+a.ValueLen(row))
			}
		}
	case *array.Int64:
		note(8, func(row int) uint64 { return uint64(a.Value(row)) })
	case *array.Float64:
		note(8, func(row int) uint64 { return math.Float64bits(a.Value(row)) })
	case *array.Date32:
		note(4, func(row int) uint64 { return uint64(a.Value(row)) })
	case *array.Timestamp:
		note(8, func(row int) uint64 { return uint64(a.Value(row)) })
	case *array.Decimal128:
		note(8, func(row int) uint64 { return a.Value(row).LowBits() })
	case *array.List:
		var elements []int
		for _, row := range rows {
			start, end := a.ValueOffsets(row)
			for i := start; i < end; i++ {
				elements = append(elements, int(i))
			}
		}
		t.count(a.ListValues(), elements)
	}
}

// note counts a value that takes size bytes, by its bits or its hash.
func (t *tally) note(bits uint64, size int) {
	t.values++
	t.plain += size
	again, seen := t.often[bits]
	switch {
	case !seen:
		t.often[bits] = false
		t.stored += size
		t.once++
	case !again:
		t.often[bits] = true
		t.once--
	}
}
