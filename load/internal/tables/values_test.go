package tables

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load/loadtest"
)

func testValues() Values {
	return Values{
		Date:      func(days int32) any { return arrow.Date32(days) },
		Timestamp: func(micros int64) any { return arrow.Timestamp(micros) },
		Decimal:   func(unscaled *big.Int, _, _ int32) any { return decimal128.FromBigInt(unscaled) },
	}
}

// allRows returns the bytes of random rows of all types, and the rows as Arrow has them.
func allRows(t testing.TB) ([]byte, arrow.RecordBatch) {
	t.Helper()
	const rows = 50
	others := loadtest.Random(memory.DefaultAllocator, loadtest.AllTypes(), rows, 7)
	schema := identified(loadtest.AllTypes())
	id := loadtest.Build(memory.DefaultAllocator, arrow.NewSchema(schema.Fields()[:1], nil), rows, func(b array.Builder, _, row int) {
		b.(*array.Int64Builder).Append(int64(row))
	})
	batch := array.NewRecordBatch(schema, append([]arrow.Array{id.Column(0)}, others.Columns()...), rows)
	h, err := testDialect().HeaderOf(schema)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e := NewEncoder(&out, h.Encode())
	if err := errors.Join(e.Write(batch), e.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), batch
}

// Rows come back as they were.
func TestRowReader(t *testing.T) {
	data, batch := allRows(t)
	r, err := NewRowReader(bufio.NewReader(bytes.NewReader(data)), testDialect(), testValues())
	if err != nil {
		t.Fatal(err)
	}
	for row := range int(batch.NumRows()) {
		values, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		for i, column := range batch.Columns() {
			if (values[i] == nil) != column.IsNull(row) {
				t.Fatalf("row %d: %s is %v", row, batch.ColumnName(i), values[i])
			}
			var want any
			switch a := column.(type) {
			case *array.Int64:
				want = a.Value(row)
			case *array.Boolean:
				want = a.Value(row)
			case *array.Date32:
				want = a.Value(row)
			case *array.Timestamp:
				want = a.Value(row)
			case *array.Decimal128:
				want = a.Value(row)
			case *array.String:
				want = strings.ReplaceAll(strings.ToValidUTF8(a.Value(row), "\uFFFD"), "\x00", "\uFFFD")
			default:
				continue // floats may be no number; the suites of databases compare lists
			}
			if values[i] != nil && values[i] != want {
				t.Errorf("row %d: %s is %v, want %v", row, batch.ColumnName(i), values[i], want)
			}
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last row comes %v", err)
	}
}

// Any bytes give rows or an error.
func FuzzRowReader(f *testing.F) {
	data, _ := allRows(f)
	f.Add(data)
	f.Add(twoRows(f))
	f.Fuzz(func(_ *testing.T, data []byte) {
		r, err := NewRowReader(bufio.NewReader(bytes.NewReader(data)), testDialect(), testValues())
		for err == nil {
			_, err = r.Next()
		}
	})
}
