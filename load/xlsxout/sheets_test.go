package xlsxout_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/xlsxout"
)

// encode returns the workbook of a batch with sheets of that many rows.
func encode(t *testing.T, batch arrow.RecordBatch, o load.EncodeOptions, maxRows int64) []byte {
	t.Helper()
	var out bytes.Buffer
	e, err := xlsxout.NewWithin(&out, batch.Schema(), o, maxRows)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Write(batch), e.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// one returns a batch of one row and column.
func one(t arrow.DataType, set func(array.Builder)) arrow.RecordBatch {
	return loadtest.Build(memory.NewGoAllocator(), loadtest.Columns("v", t), 1, func(b array.Builder, _, _ int) { set(b) })
}

// TestCells tells which values are numbers, booleans and text.
func TestCells(t *testing.T) {
	text := func(s string) arrow.RecordBatch {
		return one(arrow.BinaryTypes.String, func(b array.Builder) { b.(*array.StringBuilder).Append(s) })
	}
	integer := func(n int64) arrow.RecordBatch {
		return one(arrow.PrimitiveTypes.Int64, func(b array.Builder) { b.(*array.Int64Builder).Append(n) })
	}
	float := func(f float64) arrow.RecordBatch {
		return one(arrow.PrimitiveTypes.Float64, func(b array.Builder) { b.(*array.Float64Builder).Append(f) })
	}
	decimal := func(n int64, scale int32) arrow.RecordBatch {
		return one(&arrow.Decimal128Type{Precision: 20, Scale: scale}, func(b array.Builder) {
			b.(*array.Decimal128Builder).Append(decimal128.FromI64(n))
		})
	}
	date := func(y int, m time.Month, d int) arrow.RecordBatch {
		return one(arrow.FixedWidthTypes.Date32, func(b array.Builder) {
			b.(*array.Date32Builder).Append(arrow.Date32FromTime(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)))
		})
	}
	at := func(utc time.Time) arrow.RecordBatch {
		return one(loadtest.Timestamp(), func(b array.Builder) { b.(*array.TimestampBuilder).Append(arrow.Timestamp(utc.UnixMicro())) })
	}
	for i, c := range []struct {
		batch      arrow.RecordBatch
		kind, want string
	}{
		{text("=1+1"), "inlineStr", "=1+1"},
		{text("00123"), "inlineStr", "00123"},
		{text(""), "inlineStr", ""},
		{text("-5"), "inlineStr", "-5"},
		{integer(999_999_999_999_999), "", "999999999999999"},
		{integer(1_000_000_000_000_000), "inlineStr", "1000000000000000"},
		{integer(math.MinInt64), "inlineStr", "-9223372036854775808"},
		{float(0.30000000000000004), "", "0.30000000000000004"},
		{float(math.NaN()), "inlineStr", "NaN"},
		{float(math.Inf(-1)), "inlineStr", "-Infinity"},
		{float(math.MaxFloat64), "inlineStr", "1.7976931348623157e+308"},
		{decimal(-150, 2), "", "-1.50"},
		{decimal(123_456_789_012_345, 2), "", "1234567890123.45"},
		{decimal(1_234_567_890_123_456, 2), "inlineStr", "12345678901234.56"},
		{decimal(1_234_567_890_123_400, 2), "", "12345678901234.00"},
		{decimal(-1_234_567_890_123_456, 16), "inlineStr", "-0.1234567890123456"},
		{decimal(123_456_789_012_345, 18), "", "0.000123456789012345"},
		{one(arrow.FixedWidthTypes.Boolean, func(b array.Builder) { b.(*array.BooleanBuilder).Append(true) }), "b", "1"},
		{date(1900, 3, 1), "", "61"},
		{date(1900, 2, 28), "inlineStr", "1900-02-28"},
		{date(2026, 1, 2), "", "46024"},
		{date(9999, 12, 31), "", "2958465"},
		{at(time.Date(2026, 1, 2, 18, 0, 0, 0, time.UTC)), "", "46024.5"}, // noon in Chicago
		{at(time.Date(1880, 1, 1, 12, 0, 0, 0, time.UTC)), "inlineStr", "1880-01-01 06:09:24"},
		{at(time.Date(2026, 1, 2, 18, 0, 0, 1000, time.UTC)), "inlineStr", "2026-01-02 12:00:00.000001"},
	} {
		file := encode(t, c.batch, load.EncodeOptions{Zone: loadtest.Chicago()}, 10)
		rows, err := sheet(file, 1, 1)
		if err != nil || len(rows) != 2 || rows[1][0] == nil {
			t.Fatalf("case %d: %v, %v", i, rows, err)
		}
		got := rows[1][0]
		if shown := got.Value + got.text(); got.Kind != c.kind || shown != c.want {
			t.Errorf("case %d: %q of type %q, not %q of %q", i, shown, got.Kind, c.want, c.kind)
		}
		c.batch.Release()
	}
}

// What does not fit below a heading goes on in another sheet, in order, and
// the same rows give the same bytes each time.
func TestFurtherSheets(t *testing.T) {
	batch := loadtest.Random(memory.NewGoAllocator(), loadtest.Columns("a", arrow.PrimitiveTypes.Int64, "b", arrow.FixedWidthTypes.Boolean), 25, 3)
	defer batch.Release()
	file := encode(t, batch, load.EncodeOptions{}, 11)
	var got [][]string
	for number, want := range []int{10, 10, 5} {
		rows, err := sheet(file, number+1, 2)
		if err != nil || len(rows) != want+1 || rows[0][0].text() != "a" || rows[0][1].text() != "b" {
			t.Fatalf("sheet %d: %d rows, %v", number+1, len(rows), err)
		}
		for _, row := range rows[1:] {
			line := []string{loadtest.Null, loadtest.Null}
			for i, c := range row {
				if c != nil {
					if line[i], err = valueOf(batch.Schema().Field(i).Type, *c); err != nil {
						t.Fatal(err)
					}
				}
			}
			got = append(got, line)
		}
	}
	if diff := loadtest.Differs(batch.Schema(), loadtest.Text(batch), got); diff != "" {
		t.Error(diff)
	}
	book, err := part(file, "xl/workbook.xml")
	for _, name := range []string{`name="Results"`, `name="Results 2"`, `name="Results 3"`} {
		if err != nil || !bytes.Contains(book, []byte(name)) {
			t.Errorf("the workbook has no sheet %s: %v", name, err)
		}
	}
	for range 5 {
		if again := encode(t, batch, load.EncodeOptions{}, 11); !bytes.Equal(file, again) {
			t.Fatal("the same rows gave other bytes")
		}
	}
}

// TestLook holds what people see besides the cells.
func TestLook(t *testing.T) {
	schema := loadtest.Columns("id", arrow.PrimitiveTypes.Int64, "a heading of thirty characters", arrow.BinaryTypes.String, "text", arrow.BinaryTypes.String)
	batch := loadtest.Build(memory.NewGoAllocator(), schema, 3, func(b array.Builder, _, _ int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(7)
		case *array.StringBuilder:
			b.Append(strings.Repeat("x", 20) + "\n" + strings.Repeat("y", 100))
		}
	})
	defer batch.Release()
	file := encode(t, batch, load.EncodeOptions{}, 100)
	data, err := part(file, "xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`ySplit="1"`, `state="frozen"`, `<col min="1" max="1" width="12"`, `<col min="2" max="2" width="32"`, `<col min="3" max="3" width="20"`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("the sheet has no %s: %.700s", want, data)
		}
	}
	rows, err := sheet(file, 1, 3)
	if err != nil || rows[0][0].Style == rows[1][0].Style {
		t.Errorf("the heading looks like the rows: %v", err)
	}
}

// A text that a cell cannot hold, counted in UTF-16 units, is an error that does not show it.
func TestTooLongText(t *testing.T) {
	for text, fits := range map[string]bool{
		strings.Repeat("ä", 32_767): true, strings.Repeat("x", 32_768): false,
		strings.Repeat("😀", 16_383): true, strings.Repeat("😀", 16_384): false,
	} {
		batch := one(arrow.BinaryTypes.String, func(b array.Builder) { b.(*array.StringBuilder).Append(text) })
		e, err := xlsxout.New(&bytes.Buffer{}, batch.Schema(), load.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = e.Write(batch)
		if fits != (err == nil) || !fits && (!errors.Is(err, load.ErrData) || strings.Contains(err.Error(), "xxx")) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
		batch.Release()
	}
}

// The error of a text that does not fit names the row as the sheet numbers it,
// the sheet where there are several, and the result where its id is known.
func TestTooLongTextsPlace(t *testing.T) {
	from := func(source string) arrow.Metadata {
		return arrow.MetadataFrom(map[string]string{"formetl.from": source})
	}
	for name, c := range map[string]struct {
		id   arrow.DataType
		from string
		row  int
		want string
	}{
		"the first row":  {arrow.PrimitiveTypes.Int64, "result_id", 0, `column "t", row 2 (result 1000): `},
		"the last row":   {arrow.PrimitiveTypes.Int64, "result_id", 9, `column "t", row 11 (result 1009): `},
		"another sheet":  {arrow.PrimitiveTypes.Int64, "result_id", 10, `column "t", row 2 of sheet "Results 2" (result 1010): `},
		"an id as text":  {arrow.BinaryTypes.String, "result_id", 1, `column "t", row 3 (result "1001"): `},
		"no id":          {arrow.PrimitiveTypes.Int64, "item:1", 1, `column "t", row 3: `},
		"the id is null": {arrow.PrimitiveTypes.Int64, "result_id", 5, `column "t", row 7: `},
	} {
		schema := arrow.NewSchema([]arrow.Field{
			{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: from("item:7")},
			{Name: "id", Type: c.id, Nullable: true, Metadata: from(c.from)},
			{Name: "t", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: from("item:2")},
		}, nil)
		batch := loadtest.Build(memory.NewGoAllocator(), schema, 12, func(b array.Builder, column, row int) {
			switch b := b.(type) {
			case *array.Int64Builder:
				if row == 5 {
					b.AppendNull()
					return
				}
				b.Append(int64(1000*column + row))
			case *array.StringBuilder:
				switch {
				case column == 1:
					b.Append(fmt.Sprint(1000 + row))
				case row == c.row:
					b.Append(strings.Repeat("x", 32_768))
				default:
					b.Append("short")
				}
			}
		})
		e, err := xlsxout.NewWithin(&bytes.Buffer{}, schema, load.EncodeOptions{}, 11)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(e.Write(batch), e.Close()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v has no %s", name, err, c.want)
		}
		batch.Release()
	}
}

// Rows are written as they come, so that memory does not grow with them.
func TestStreams(t *testing.T) {
	needs.Slow(t)
	schema := loadtest.Columns("text", arrow.BinaryTypes.String)
	batch := loadtest.Build(memory.NewGoAllocator(), schema, 1000, func(b array.Builder, _, row int) {
		b.(*array.StringBuilder).Append(fmt.Sprint(strings.Repeat("words ", 1500), row))
	})
	defer batch.Release()
	var out bytes.Buffer
	e, err := xlsxout.New(&out, schema, load.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		before := out.Len()
		if err := e.Write(batch); err != nil || out.Len() == before {
			t.Fatalf("%d bytes are written, %v", out.Len(), err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := sheet(out.Bytes(), 1, 1)
	if err != nil || len(rows) != 3001 || !strings.HasSuffix(rows[3000][0].text(), " 999") {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// TestLists: lists are shown as the fields' metadata say.
func TestLists(t *testing.T) {
	list := loadtest.ListOf(arrow.BinaryTypes.String)
	field := func(name, as, choices string) arrow.Field {
		return arrow.Field{Name: name, Type: list, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{"formetl.list_as": as, "formetl.choices": choices})}
	}
	schema := arrow.NewSchema([]arrow.Field{field("j", "joined", ""), field("s", "json", ""), field("c", "columns", `[["red","c_red"],["blue","c_blue"]]`)}, nil)
	rows := [][]string{{"red", "blue"}, {"blue"}, nil, {""}}
	batch := loadtest.Build(memory.NewGoAllocator(), schema, len(rows), func(b array.Builder, _, row int) {
		b.(*array.ListBuilder).Append(rows[row] != nil)
		for _, e := range rows[row] {
			b.(*array.ListBuilder).ValueBuilder().(*array.StringBuilder).Append(e)
		}
	})
	defer batch.Release()
	file := encode(t, batch, load.EncodeOptions{}, 100)
	got, err := sheet(file, 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range [][]string{
		{"j", "s", "c_red", "c_blue"},
		{"red|blue", `["red","blue"]`, "1", "1"},
		{"blue", `["blue"]`, "0", "1"},
		{"-", "-", "-", "-"},
		{"", `[""]`, "0", "0"},
	} {
		shown := make([]string, 4)
		for i, c := range got[r] {
			if shown[i] = "-"; c != nil {
				shown[i] = c.Value + c.text()
			}
		}
		if !slices.Equal(shown, want) {
			t.Errorf("row %d is %q, not %q", r, shown, want)
		}
	}
}

func TestTooManyColumns(t *testing.T) {
	fields := make([]arrow.Field, 16_385)
	for i := range fields {
		fields[i] = arrow.Field{Name: fmt.Sprint("c", i), Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	}
	_, err := xlsxout.New(&bytes.Buffer{}, arrow.NewSchema(fields, nil), load.EncodeOptions{})
	if !errors.Is(err, load.ErrData) {
		t.Errorf("16,385 columns give %v", err)
	}
	if _, err := xlsxout.New(&bytes.Buffer{}, arrow.NewSchema(fields[:3], nil), load.EncodeOptions{Compression: "zstd"}); err == nil {
		t.Error("a compression is taken")
	}
}
