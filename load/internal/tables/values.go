package tables

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
)

// RowReader reads rows back from their bytes. It gives int64, float64, bool, string, and
// lists as []any. What they look like to a driver says Values.
type RowReader struct {
	Line   []byte // of the header
	Header Header
	in     *bufio.Reader
	reads  []reads
	value  []byte
	row    []any
}

// Values makes the values of a driver of those that have no type of their own in Go.
type Values struct {
	Date      func(days int32) any
	Timestamp func(micros int64) any
	Decimal   func(unscaled *big.Int, precision, scale int32) any
}

// reads makes a value of its bytes.
type reads func(b []byte) (any, error)

// NewRowReader begins to read rows.
func NewRowReader(in *bufio.Reader, d *Dialect, values Values) (*RowReader, error) {
	line, err := ReadHeader(in)
	if err != nil {
		return nil, err
	}
	h, err := DecodeHeader(line)
	if err != nil {
		return nil, ErrRows
	}
	r := &RowReader{Line: line, Header: h, in: in, row: make([]any, len(h.Columns))}
	for _, c := range h.Columns {
		t, err := d.Types.Parse(c.Type)
		if err != nil {
			return nil, err
		}
		r.reads = append(r.reads, values.reads(t))
	}
	return r, nil
}

// Next returns the next row, which is valid until the next call. It returns io.EOF behind the
// last one.
func (r *RowReader) Next() ([]any, error) {
	fields, err := readInt(r.in, 2)
	switch {
	case err != nil:
		return nil, err
	case fields == -1:
		if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
			return nil, ErrRows
		}
		return nil, io.EOF
	case int(fields) != len(r.reads):
		return nil, ErrRows
	}
	for i, read := range r.reads {
		length, err := readInt(r.in, 4)
		if err != nil || length < -1 {
			return nil, ErrRows
		}
		if length == -1 {
			r.row[i] = nil
			continue
		}
		value, err := r.bytes(length)
		if err != nil {
			return nil, ErrRows
		}
		if r.row[i], err = read(value); err != nil {
			return nil, err
		}
	}
	return r.row, nil
}

// bytes reads a value's bytes. Memory for a long one is taken as its bytes come, because a
// length may be wrong.
func (r *RowReader) bytes(length int64) ([]byte, error) {
	if length > flushAt {
		var long bytes.Buffer
		_, err := io.CopyN(&long, r.in, length)
		return long.Bytes(), err
	}
	if r.value == nil {
		r.value = make([]byte, flushAt)
	}
	_, err := io.ReadFull(r.in, r.value[:length])
	return r.value[:length], err
}

// reads returns what reads the values of a type.
func (v Values) reads(t arrow.DataType) reads {
	switch t := t.(type) {
	case *arrow.Int64Type:
		return sized(8, func(b []byte) any { return int64(binary.BigEndian.Uint64(b)) }) //nolint:gosec // the bits are kept
	case *arrow.Float64Type:
		return sized(8, func(b []byte) any { return math.Float64frombits(binary.BigEndian.Uint64(b)) })
	case *arrow.BooleanType:
		return sized(1, func(b []byte) any { return b[0] == 1 })
	case *arrow.Date32Type:
		return sized(4, func(b []byte) any { return v.Date(int32(binary.BigEndian.Uint32(b)) + epochDays) }) //nolint:gosec // the bits are kept
	case *arrow.TimestampType:
		return sized(8, func(b []byte) any { return v.Timestamp(int64(binary.BigEndian.Uint64(b)) + epochMicros) }) //nolint:gosec // the bits are kept
	case *arrow.Decimal128Type:
		return func(b []byte) (any, error) {
			unscaled, err := readNumeric(b, t.Scale)
			return v.Decimal(unscaled, t.Precision, t.Scale), err
		}
	case *arrow.ListType:
		return listReads(v.reads(t.Elem()))
	}
	return func(b []byte) (any, error) { return string(b), nil }
}

// sized reads values of a fixed length.
func sized(length int, value func(b []byte) any) reads {
	return func(b []byte) (any, error) {
		if len(b) != length {
			return nil, ErrRows
		}
		return value(b), nil
	}
}

// listReads reads lists, which are arrays of one dimension, or of none.
func listReads(element reads) reads {
	const head, dimension = 12, 8
	return func(b []byte) (any, error) {
		list := []any{}
		if len(b) == head {
			return list, nil
		}
		if len(b) < head+dimension {
			return nil, ErrRows
		}
		for b = b[head+dimension:]; len(b) > 0; {
			if len(b) < 4 {
				return nil, ErrRows
			}
			length := int(int32(binary.BigEndian.Uint32(b))) //nolint:gosec // the bits are kept
			b = b[4:]
			if length == -1 {
				list = append(list, nil)
				continue
			}
			if length < 0 || length > len(b) {
				return nil, ErrRows
			}
			value, err := element(b[:length])
			if err != nil {
				return nil, err
			}
			list, b = append(list, value), b[length:]
		}
		return list, nil
	}
}

// readNumeric reads a numeric as appendNumeric writes it, and returns its unscaled value.
func readNumeric(b []byte, scale int32) (*big.Int, error) {
	const head = 8
	if len(b) < head || len(b) != head+2*int(binary.BigEndian.Uint16(b)) {
		return new(big.Int), ErrRows
	}
	digits, weight := int(binary.BigEndian.Uint16(b)), int(int16(binary.BigEndian.Uint16(b[2:]))) //nolint:gosec // the bits are kept
	n, base := new(big.Int), big.NewInt(numericBase)
	for i := range digits {
		n.Mul(n, base)
		n.Add(n, big.NewInt(int64(binary.BigEndian.Uint16(b[head+2*i:]))))
	}
	// The last digit counts 10,000 to the power of weight - digits + 1.
	power := (weight-digits+1)*numericDecimals + int(scale)
	ten := big.NewInt(10)
	if power >= 0 {
		n.Mul(n, ten.Exp(ten, big.NewInt(int64(power)), nil))
	} else {
		n.Quo(n, ten.Exp(ten, big.NewInt(int64(-power)), nil))
	}
	if binary.BigEndian.Uint16(b[4:]) == numericNegative {
		n.Neg(n)
	}
	return n, nil
}
