package loadtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

func caseNoRows(t encoderTest) {
	schema := AllTypes()
	t.compare(t.encode(schema), schema, nil)
}

func caseAllNull(t encoderTest) {
	t.roundTrip(Build(t.mem, AllTypes(), 100, func(b array.Builder, _, _ int) { b.AppendNull() }))
}

func caseHostileStrings(t encoderTest) {
	text := t.hostile()
	schema := Columns("id", arrow.PrimitiveTypes.Int64, "first", arrow.BinaryTypes.String,
		"list", ListOf(arrow.BinaryTypes.String), "last", arrow.BinaryTypes.String)
	t.roundTrip(Build(t.mem, schema, len(text), func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.StringBuilder:
			b.Append(text[row])
		case *array.ListBuilder:
			b.Append(true)
			elements := b.ValueBuilder().(*array.StringBuilder)
			elements.Append(text[row])
			elements.Append(text[len(text)-1-row])
		}
	}))
}

func caseLists(t encoderTest) {
	schema := Columns("strings", ListOf(arrow.BinaryTypes.String), "numbers", ListOf(arrow.PrimitiveTypes.Int64),
		"id", arrow.PrimitiveTypes.Int64)
	lengths := []int{-1, 0, 1, 2, 1000, -1, 0, 0, 1}
	t.roundTrip(Build(t.mem, schema, len(lengths), func(b array.Builder, _, row int) {
		list, ok := b.(*array.ListBuilder)
		if !ok {
			b.(*array.Int64Builder).Append(int64(row))
			return
		}
		if lengths[row] < 0 {
			list.AppendNull()
			return
		}
		list.Append(true)
		for i := range lengths[row] {
			switch e := list.ValueBuilder().(type) {
			case *array.StringBuilder:
				appendOrNull(e, i%5 == 3, fmt.Sprintf("v%d|", i))
			case *array.Int64Builder:
				e.Append(int64(-i))
			}
		}
	}))
}

func appendOrNull(b *array.StringBuilder, null bool, s string) {
	if null {
		b.AppendNull()
		return
	}
	b.Append(s)
}

// HostileNames returns column names that have broken a reader or a writer.
func HostileNames() []string {
	return []string{
		"\uFEFFbom", "a.b", "a,b", `q"uote`, "new\nline", "cr\r\nlf", " lead", "trail ", "=1+1", "😀", "ünïcode", "שם",
		"a/b", `back\slash`, "list.element", "list", "element", "key_value", "schema", "SELECT", "'", "`", "#", "0", "A", "a",
		"\u2028", strings.Repeat("long ", 100), "tab\tname", "{}", "[0]", "$x", "%s", "x;y", "null",
	}
}

func caseNames(t encoderTest) {
	names := HostileNames()
	fields := make([]arrow.Field, 0, len(names))
	for i, name := range names {
		kind := arrow.PrimitiveTypes.Int64
		if i%3 == 0 {
			kind = ListOf(arrow.BinaryTypes.String)
		}
		fields = append(fields, arrow.Field{Name: name, Type: kind, Nullable: true})
	}
	t.roundTrip(t.random(arrow.NewSchema(fields, nil), 20, 3))
}

func caseWide(t encoderTest) {
	fields := make([]arrow.Field, 0, 300)
	kinds := Scalars()
	for i := range 300 {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", 300-i), Type: kinds[i%len(kinds)], Nullable: true})
	}
	t.roundTrip(t.random(arrow.NewSchema(fields, nil), 50, 4))
}

func caseLongStrings(t encoderTest) {
	schema := Columns("id", arrow.PrimitiveTypes.Int64, "text", arrow.BinaryTypes.String)
	long := strings.Repeat("0123456789abcde\n", 1<<16)
	if most := t.limits.MaxText; most > 0 {
		long = long[:most]
	}
	t.roundTrip(Build(t.mem, schema, 5, func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.StringBuilder:
			b.Append(long[row:])
		}
	}))
}

func caseDecimals(t encoderTest) {
	var fields []arrow.Field
	for p := int32(1); p <= 38; p++ {
		for _, s := range []int32{0, p / 2, p} {
			fields = append(fields, arrow.Field{
				Name: fmt.Sprintf("d%d_%d_%d", p, s, len(fields)), Type: &arrow.Decimal128Type{Precision: p, Scale: s}, Nullable: true,
			})
		}
	}
	schema := arrow.NewSchema(fields, nil)
	t.roundTrip(Build(t.mem, schema, 6, func(b array.Builder, column, row int) {
		d := b.(*array.Decimal128Builder)
		most := Digits(fields[column].Type.(*arrow.Decimal128Type).Precision)
		d.Append([]decimal128.Num{most, most.Negate(), {}, decimal128.FromI64(1), decimal128.FromI64(-1), decimal128.FromI64(9)}[row])
	}))
}

func caseTimestamps(t encoderTest) {
	moments := []time.Time{
		time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1883, 11, 18, 17, 0, 0, 0, time.UTC), // local mean time: an offset with seconds
		time.Date(1850, 6, 1, 12, 0, 0, 1000, time.UTC),
		time.Date(2026, 3, 8, 7, 59, 59, 0, time.UTC), // the last second before the spring change
		time.Date(2026, 3, 8, 8, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC), // the repeated hour, first pass
		time.Date(2026, 11, 1, 7, 30, 0, 0, time.UTC), // second pass
		time.Date(2026, 7, 1, 12, 0, 0, 500000000, time.UTC),
		time.Date(2026, 7, 1, 12, 0, 0, 1000, time.UTC),
		time.Date(1, 1, 1, 12, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	schema := Columns("at", Timestamp(), "id", arrow.PrimitiveTypes.Int64)
	t.roundTrip(Build(t.mem, schema, len(moments), func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(moments[row].UnixMicro()))
		}
	}))
}

func caseDates(t encoderTest) {
	days := []arrow.Date32{-719162, -1, 0, 1, 19782, 2932896, 11016, -25567}
	schema := Columns("day", arrow.FixedWidthTypes.Date32, "days", ListOf(arrow.FixedWidthTypes.Date32))
	t.roundTrip(Build(t.mem, schema, len(days), func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Date32Builder:
			b.Append(days[row])
		case *array.ListBuilder:
			b.Append(true)
			b.ValueBuilder().(*array.Date32Builder).AppendValues(days[row:], nil)
		}
	}))
}

func caseManyRows(t encoderTest) {
	schema := Columns("id", arrow.PrimitiveTypes.Int64, "status", arrow.BinaryTypes.String,
		"tags", ListOf(arrow.BinaryTypes.String))
	t.roundTrip(Build(t.mem, schema, t.many(70_000), func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.StringBuilder:
			b.Append([]string{"Complete", "Incomplete", ""}[row%3])
		case *array.ListBuilder:
			if row%7 == 0 {
				b.AppendNull()
				return
			}
			b.Append(true)
			for i := range row % 7 % 3 * 2 {
				b.ValueBuilder().(*array.StringBuilder).Append([]string{"a", "b"}[i%2])
			}
		}
	}))
}

// caseChange writes a column that begins with a few repeated values. Then every
// value is different, more than a dictionary may hold.
func caseChange(t encoderTest) {
	schema := Columns("id", arrow.PrimitiveTypes.Int64, "text", arrow.BinaryTypes.String)
	pad := strings.Repeat("x", 100)
	rows := t.many(40_000)
	t.roundTrip(Build(t.mem, schema, rows, func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(min(row, rows/2)))
		case *array.StringBuilder:
			if row < rows/4 {
				b.Append("choice")
				return
			}
			b.Append(fmt.Sprint(pad, row))
		}
	}))
}
