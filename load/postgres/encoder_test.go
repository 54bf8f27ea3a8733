package postgres

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load/internal/tables"
	"github.com/formetl/formetl/load/loadtest"
)

// identified adds a column with the result's id in front.
func identified(schema *arrow.Schema) *arrow.Schema {
	return arrow.NewSchema(append([]arrow.Field{idField("id")}, schema.Fields()...), nil)
}

// copied encodes a batch, which it releases, and copies it into a new table by the server.
func copied(t testing.TB, d *Destination, table string, batch arrow.RecordBatch) (line []byte) {
	t.Helper()
	line, rows, _ := bytes.Cut(encoded(t, batch), []byte("\n"))
	h, err := tables.DecodeHeader(append(line, '\n'))
	if err != nil {
		t.Fatal(err)
	}
	err = d.with(t.Context(), "test", "", func(s *session) error {
		s.Table.Name = table
		if err := s.Fit(t.Context(), h); err != nil {
			return err
		}
		_, err := s.conn.CopyFrom(t.Context(), bytes.NewReader(rows), "COPY "+s.Table.String()+" FROM STDIN (FORMAT binary)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// The server shows the values that were encoded.
func TestValues(t *testing.T) {
	database := server.Database(t)
	d := open(t, database, "forms.values")
	schema := identified(loadtest.Columns(
		"text", arrow.BinaryTypes.String, "float", arrow.PrimitiveTypes.Float64, "bool", arrow.FixedWidthTypes.Boolean, "date", arrow.FixedWidthTypes.Date32,
		"at", loadtest.Timestamp(), "price", &arrow.Decimal128Type{Precision: 12, Scale: 2}, "list", loadtest.ListOf(arrow.BinaryTypes.String), "dates", loadtest.ListOf(arrow.FixedWidthTypes.Date32)))
	batch := loadtest.Build(memory.DefaultAllocator, schema, 3, func(b array.Builder, _, row int) {
		if _, id := b.(*array.Int64Builder); !id && row == 2 {
			b.AppendNull()
			return
		}
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append([]int64{-1, 1 << 62, 7}[row])
		case *array.StringBuilder:
			b.Append([]string{"NUL \x00, \xff and é", ""}[row])
		case *array.Float64Builder:
			b.Append([]float64{-0.5, 1e300}[row])
		case *array.BooleanBuilder:
			b.Append(row == 0)
		case *array.Date32Builder:
			b.Append([]arrow.Date32{0, -719162}[row])
		case *array.TimestampBuilder:
			b.Append([]arrow.Timestamp{1, 1_767_225_599_999_999}[row])
		case *array.Decimal128Builder:
			b.Append([]decimal128.Num{decimal128.FromI64(-1_000_005), decimal128.FromI64(1_000_000_000_00)}[row])
		case *array.ListBuilder:
			b.Append(true)
			switch v := b.ValueBuilder().(type) {
			case *array.StringBuilder:
				if row == 0 {
					v.AppendValues([]string{"a,b", `"{}\`, "NULL"}, nil)
					v.AppendNull()
				}
			case *array.Date32Builder:
				v.Append(arrow.Date32(20_454 * (1 - row)))
			}
		}
	})
	copied(t, d, "values", batch)
	want := "-1|NUL \uFFFD, \uFFFD and é|-0.5|t|1970-01-01|1970-01-01 00:00:00.000001+00|-10000.05|{\"a,b\",\"\\\"{}\\\\\",\"NULL\",NULL}|{2026-01-01}\n" +
		"4611686018427387904||1e+300|f|0001-01-01|2025-12-31 23:59:59.999999+00|1000000000.00|{}|{1970-01-01}\n7||||||||"
	if got := query(t, database, `SELECT * FROM forms.values ORDER BY id = 7, id`); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Decimals of every precision and scale are what the server takes them for.
func TestNumeric(t *testing.T) {
	database := server.Database(t)
	d := open(t, database, "forms.numeric")
	var fields []any
	var kinds []*arrow.Decimal128Type
	for precision := int32(1); precision <= 38; precision++ {
		for _, scale := range []int32{0, 1, precision / 2, precision - 1, precision} {
			if scale > precision {
				continue
			}
			kind := &arrow.Decimal128Type{Precision: precision, Scale: scale}
			fields, kinds = append(fields, "d"+big.NewInt(int64(len(kinds))).String(), kind), append(kinds, kind)
		}
	}
	schema := identified(loadtest.Columns(fields...))
	value := func(precision int32, row int) decimal128.Num {
		most := loadtest.Digits(precision)
		return []decimal128.Num{most, most.Negate(), {}, decimal128.FromI64(1), decimal128.FromI64(-9), loadtest.Digits((precision + 1) / 2)}[row]
	}
	const rows = 6
	batch := loadtest.Build(memory.DefaultAllocator, schema, rows, func(b array.Builder, column, row int) {
		if id, ok := b.(*array.Int64Builder); ok {
			id.Append(int64(row))
			return
		}
		b.(*array.Decimal128Builder).Append(value(kinds[column-1].Precision, row))
	})
	copied(t, d, "numeric", batch)
	for row := range rows {
		got := bytes.Split([]byte(query(t, database, "SELECT * FROM forms.numeric WHERE id = "+big.NewInt(int64(row)).String())), []byte("|"))
		for i, kind := range kinds {
			if want := value(kind.Precision, row).ToString(kind.Scale); string(got[i+1]) != want {
				t.Errorf("%s in row %d is %s, want %s", kind, row, got[i+1], want)
			}
		}
	}
}
