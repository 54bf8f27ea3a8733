package postgres

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
)

// TestValues: the server shows the values that were loaded.
func TestValues(t *testing.T) {
	schema := loadtest.Columns("id", arrow.PrimitiveTypes.Int64,
		"text", arrow.BinaryTypes.String, "float", arrow.PrimitiveTypes.Float64, "bool", arrow.FixedWidthTypes.Boolean, "date", arrow.FixedWidthTypes.Date32,
		"at", loadtest.Timestamp(), "price", &arrow.Decimal128Type{Precision: 12, Scale: 2}, "list", loadtest.ListOf(arrow.BinaryTypes.String), "dates", loadtest.ListOf(arrow.FixedWidthTypes.Date32))
	batch := loadtest.Build(memory.DefaultAllocator, schema, 3, func(b array.Builder, _, row int) {
		if _, id := b.(*array.Int64Builder); !id && row == 2 {
			b.AppendNull()
			return
		}
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append([]int64{1, 1 << 62, 7}[row])
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
	b := newBench(t, nil)
	l := b.loadOf(b.table, answers{1: "", 1 << 62: "", 7: ""}, "january", false)
	columns := append(make([]load.Column, 0, schema.NumFields()), load.Column{Name: "id", From: "result_id"})
	for _, f := range schema.Fields()[1:] {
		columns = append(columns, load.Column{Name: f.Name})
	}
	l.Manifest.Schema = columns
	l.Rows = []load.TableRows{{Columns: columns, Schema: schema, Each: func(_ context.Context, visit func(arrow.RecordBatch) error) error { return visit(batch) }}}
	if _, err := b.carry(b.table, l); err != nil {
		t.Fatal(err)
	}
	want := "1|NUL �, � and é|-0.5|t|1970-01-01|1970-01-01 00:00:00.000001+00|-10000.05|{\"a,b\",\"\\\"{}\\\\\",\"NULL\",NULL}|{2026-01-01}\n" +
		"7||||||||\n" +
		"4611686018427387904||1e+300|f|0001-01-01|2025-12-31 23:59:59.999999+00|1000000000.00|{}|{1970-01-01}"
	if got := b.query("SET timezone = 'UTC'; SELECT * FROM forms.feedback ORDER BY id"); got != "SET\n"+want && got != want {
		t.Errorf("the table holds\n%s\nwant\n%s", got, want)
	}
}

// TestLists: the rows of an exploded list change with those of the results.
func TestLists(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct {
		of      answers
		colours map[int64][]string
		full    bool
		want    string
	}{
		{answers{1: "a", 2: "b"}, map[int64][]string{1: {"red", "blue"}, 2: {"green"}}, false, "1 1 red, 1 2 blue, 2 1 green"},
		{answers{1: "a", 2: "b"}, map[int64][]string{1: {"red"}, 2: {"green", "grey"}}, false, "1 1 red, 2 1 green, 2 2 grey"},
		{answers{2: "b"}, map[int64][]string{2: {"green", "black"}}, false, "2 1 green, 2 2 black"},
		{answers{2: "b", 3: "c"}, map[int64][]string{3: {"pink"}}, true, "3 1 pink"},
	} {
		if _, err := b.carry(b.table, withLists(b.loadOf(b.table, c.of, "january", c.full), c.colours)); err != nil {
			t.Fatal(err)
		}
		if got := b.query("SELECT string_agg(concat_ws(' ', id, position, colour), ', ' ORDER BY id, position) FROM forms.feedback__colours"); got != c.want {
			t.Errorf("the lists are %s, want %s", got, c.want)
		}
	}
}
