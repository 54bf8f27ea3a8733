package parquetout

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// values holds those values of an open page that are not null.
type values interface {
	gathered
	ordered
	// encode writes the page over dst and returns it.
	encode(dst []byte) ([]byte, error)
}

// gathered takes values until the page is full.
type gathered interface {
	// add appends the rows [from, to) of arr, without nulls. It returns how many
	// bytes they take in PLAIN encoding, lengths of texts included.
	add(arr arrow.Array, from, to int) int
	// size returns the bytes that the page holds.
	size() int
	// reset removes all values.
	reset()
}

// ordered gives what the page index says of the order of values.
type ordered interface {
	// bounds returns the least and the greatest value, in PLAIN encoding without
	// lengths. They are valid until the next call of any method.
	bounds() (least, greatest []byte)
	// compare orders two bounds.
	compare(a, b []byte) int
}

// newValues returns the values of a scalar type in PLAIN encoding. They are kept in m.
func newValues(t arrow.DataType, m memory) values {
	switch t := t.(type) {
	case *arrow.StringType:
		return &texts{data: m.values}
	case *arrow.BooleanType:
		return &booleans{bits: m.values}
	case *arrow.Decimal128Type:
		if wide(t) {
			return &decimals{width: decimalBytes(int(t.Precision)), data: m.values}
		}
	}
	return &numbers{numeric: numericOf(t), all: m.numbers}
}

// validity tells which rows of an array are not null.
type validity struct {
	bits   []byte // nil: all are
	offset int
}

func validityOf(arr arrow.Array) validity {
	if arr.NullN() == 0 {
		return validity{}
	}
	return validity{bits: arr.NullBitmapBytes(), offset: arr.Data().Offset()}
}

func (v validity) at(row int) bool { return v.bits == nil || bitutil.BitIsSet(v.bits, v.offset+row) }

// texts holds strings in PLAIN encoding: the length in four bytes, then the bytes.
type texts struct{ data []byte }

func (v *texts) add(arr arrow.Array, from, to int) int {
	a, valid, before := arr.(*array.String), validityOf(arr), len(v.data)
	for row := from; row < to; row++ {
		if valid.at(row) {
			v.data = appendText(v.data, a.Value(row))
		}
	}
	return len(v.data) - before
}

func appendText(dst []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(text))), text...)
}

func (v *texts) size() int { return len(v.data) }

func (v *texts) encode(dst []byte) ([]byte, error) { return append(dst[:0], v.data...), nil }

func (v *texts) bounds() (least, greatest []byte) {
	for data := v.data; len(data) > 0; {
		end := 4 + int(binary.LittleEndian.Uint32(data))
		text := data[4:end]
		if len(data) == len(v.data) {
			least, greatest = text, text
		}
		switch {
		case string(text) < string(least):
			least = text
		case string(text) > string(greatest):
			greatest = text
		}
		data = data[end:]
	}
	return least, greatest
}

func (v *texts) compare(a, b []byte) int { return bytes.Compare(a, b) }

func (v *texts) reset() { v.data = v.data[:0] }

// numeric says how numbers are stored. Between Arrow and Parquet every number is
// kept as the bits of an int64.
type numeric struct {
	width int  // in bytes
	float bool // the bits are those of a float64
}

func numericOf(t arrow.DataType) numeric {
	switch t := t.(type) {
	case *arrow.Int64Type, *arrow.TimestampType:
		return numeric{width: 8}
	case *arrow.Float64Type:
		return numeric{width: 8, float: true}
	case *arrow.Date32Type:
		return numeric{width: 4}
	case *arrow.Decimal128Type:
		if t.Precision <= 9 {
			return numeric{width: 4}
		}
		return numeric{width: 8}
	}
	panic(fmt.Sprintf("parquet: no column has the type %s", t))
}

// appendNumber appends the number n in PLAIN encoding.
func (k numeric) appendNumber(dst []byte, n int64) []byte {
	if k.width == 4 {
		return binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(n))
}

// appendNumbers appends all the numbers in PLAIN encoding.
func (k numeric) appendNumbers(dst []byte, all []int64) []byte {
	for _, n := range all {
		dst = k.appendNumber(dst, n)
	}
	return dst
}

// bounds returns the least and the greatest of the numbers. What is not a number
// (NaN) counts for neither. If there is no number at all, the bounds are infinite,
// because then they hold for every reader.
func (k numeric) bounds(all []int64) (least, greatest int64) {
	if !k.float {
		least, greatest = all[0], all[0]
		for _, n := range all {
			least, greatest = min(least, n), max(greatest, n)
		}
		return least, greatest
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, n := range all {
		if f := math.Float64frombits(uint64(n)); f == f {
			lo, hi = min(lo, f), max(hi, f)
		}
	}
	if lo > hi {
		lo, hi = hi, lo
	}
	return int64(math.Float64bits(lo)), int64(math.Float64bits(hi))
}

func (k numeric) compare(a, b []byte) int {
	switch {
	case k.float:
		return cmp.Compare(float64Of(a), float64Of(b))
	case k.width == 4:
		return cmp.Compare(int32(binary.LittleEndian.Uint32(a)), int32(binary.LittleEndian.Uint32(b)))
	default:
		return cmp.Compare(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	}
}

func float64Of(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// numbers holds numbers until their page ends.
type numbers struct {
	numeric
	all   []int64
	bound [2][8]byte
}

func (v *numbers) add(arr arrow.Array, from, to int) int {
	before := len(v.all)
	v.all = appendRows(v.all, arr, from, to)
	return v.width * (len(v.all) - before)
}

func (v *numbers) size() int { return v.width * len(v.all) }

func (v *numbers) encode(dst []byte) ([]byte, error) { return v.appendNumbers(dst[:0], v.all), nil }

func (v *numbers) bounds() (least, greatest []byte) {
	lo, hi := v.numeric.bounds(v.all)
	return v.appendNumber(v.bound[0][:0], lo), v.appendNumber(v.bound[1][:0], hi)
}

func (v *numbers) reset() { v.all = v.all[:0] }

// appendRows appends the rows [from, to) of an array of numbers, without nulls.
func appendRows(dst []int64, arr arrow.Array, from, to int) []int64 {
	valid := validityOf(arr)
	switch a := arr.(type) {
	case *array.Int64:
		return appendInts(dst, a.Int64Values(), valid, from, to)
	case *array.Timestamp:
		return appendInts(dst, a.TimestampValues(), valid, from, to)
	case *array.Date32:
		return appendInts(dst, a.Date32Values(), valid, from, to)
	case *array.Float64:
		for row, f := range a.Float64Values()[from:to] {
			if valid.at(from + row) {
				dst = append(dst, int64(math.Float64bits(f)))
			}
		}
		return dst
	case *array.Decimal128:
		for row, n := range a.Values()[from:to] {
			if valid.at(from + row) {
				dst = append(dst, int64(n.LowBits()))
			}
		}
		return dst
	}
	panic(fmt.Sprintf("parquet: no column has the type %s", arr.DataType()))
}

func appendInts[T ~int32 | ~int64](dst []int64, src []T, valid validity, from, to int) []int64 {
	for row, n := range src[from:to] {
		if valid.at(from + row) {
			dst = append(dst, int64(n))
		}
	}
	return dst
}

// booleans holds one bit for each value.
type booleans struct {
	bits []byte
	n    int
	some [2]bool // whether there is a false, and a true
}

func (v *booleans) add(arr arrow.Array, from, to int) int {
	a, valid, before := arr.(*array.Boolean), validityOf(arr), v.n
	for row := from; row < to; row++ {
		if !valid.at(row) {
			continue
		}
		if v.n%8 == 0 {
			v.bits = append(v.bits, 0)
		}
		if a.Value(row) {
			v.bits[v.n/8] |= 1 << (v.n % 8)
			v.some[1] = true
		} else {
			v.some[0] = true
		}
		v.n++
	}
	return v.n - before
}

func (v *booleans) size() int { return len(v.bits) }

func (v *booleans) encode(dst []byte) ([]byte, error) { return append(dst[:0], v.bits...), nil }

func (v *booleans) bounds() (least, greatest []byte) {
	least, greatest = []byte{0}, []byte{0}
	if !v.some[0] {
		least[0] = 1
	}
	if v.some[1] {
		greatest[0] = 1
	}
	return least, greatest
}

func (v *booleans) compare(a, b []byte) int { return cmp.Compare(a[0], b[0]) }

func (v *booleans) reset() { v.bits, v.n, v.some = v.bits[:0], 0, [2]bool{} }

// decimals holds decimals that do not fit into an INT64, in two's complement of
// width bytes, the highest byte first.
type decimals struct {
	width int
	data  []byte
}

func (v *decimals) add(arr arrow.Array, from, to int) int {
	a, valid, before := arr.(*array.Decimal128), validityOf(arr), len(v.data)
	for row := from; row < to; row++ {
		if valid.at(row) {
			v.data = appendBigEndian(v.data, a.Value(row), v.width)
		}
	}
	return len(v.data) - before
}

func (v *decimals) size() int { return len(v.data) }

func (v *decimals) encode(dst []byte) ([]byte, error) { return append(dst[:0], v.data...), nil }

func (v *decimals) bounds() (least, greatest []byte) {
	least, greatest = v.data[:v.width], v.data[:v.width]
	for at := v.width; at < len(v.data); at += v.width {
		n := v.data[at : at+v.width]
		switch {
		case compareSigned(n, least) < 0:
			least = n
		case compareSigned(n, greatest) > 0:
			greatest = n
		}
	}
	return least, greatest
}

func (v *decimals) compare(a, b []byte) int { return compareSigned(a, b) }

func (v *decimals) reset() { v.data = v.data[:0] }

// appendBigEndian appends the lowest width bytes (1 to 16) of n in two's
// complement, the highest byte first.
func appendBigEndian(dst []byte, n decimal128.Num, width int) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(n.HighBits()))
	binary.BigEndian.PutUint64(b[8:], n.LowBits())
	return append(dst, b[16-width:]...)
}

// compareSigned compares two's complement numbers of one width.
func compareSigned(a, b []byte) int {
	if (a[0]^b[0])&0x80 == 0 {
		return bytes.Compare(a, b)
	}
	if a[0]&0x80 != 0 {
		return -1
	}
	return 1
}
