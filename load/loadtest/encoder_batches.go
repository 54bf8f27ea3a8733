package loadtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Timestamp is the type of all timestamps in formetl.
func Timestamp() arrow.DataType {
	return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
}

// Scalars returns one of each type that encoders take besides lists, with
// decimals of the three widths that Parquet stores differently.
func Scalars() []arrow.DataType {
	return []arrow.DataType{
		arrow.BinaryTypes.String,
		arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Float64,
		arrow.FixedWidthTypes.Boolean,
		arrow.FixedWidthTypes.Date32,
		Timestamp(),
		&arrow.Decimal128Type{Precision: 9, Scale: 2},
		&arrow.Decimal128Type{Precision: 18, Scale: 0},
		&arrow.Decimal128Type{Precision: 25, Scale: 5},
		&arrow.Decimal128Type{Precision: 38, Scale: 10},
	}
}

// ListOf returns the list type as formetl makes it: nullable elements in a
// field named "element".
func ListOf(t arrow.DataType) arrow.DataType {
	return arrow.ListOfField(arrow.Field{Name: "element", Type: t, Nullable: true})
}

// AllTypes returns a schema with every scalar and a list of every scalar, all
// nullable, in an order that is not the order of their names.
func AllTypes() *arrow.Schema {
	scalars := Scalars()
	fields := make([]arrow.Field, 0, 2*len(scalars))
	for i, t := range scalars {
		fields = append(
			fields,
			arrow.Field{Name: fmt.Sprintf("z%d", i), Type: t, Nullable: true},
			arrow.Field{Name: fmt.Sprintf("a%d", i), Type: ListOf(t), Nullable: true},
		)
	}
	return arrow.NewSchema(fields, nil)
}

// Columns returns a schema of nullable columns: name, type, name, type.
func Columns(namesAndTypes ...any) *arrow.Schema {
	fields := make([]arrow.Field, 0, len(namesAndTypes)/2)
	for i := 0; i+1 < len(namesAndTypes); i += 2 {
		fields = append(fields, arrow.Field{
			Name: namesAndTypes[i].(string), Type: namesAndTypes[i+1].(arrow.DataType), Nullable: true,
		})
	}
	return arrow.NewSchema(fields, nil)
}

// HostileStrings returns strings that have broken a reader or a writer of one
// of the formats somewhere. All are valid UTF-8.
func HostileStrings() []string {
	return []string{
		"", " ", "  both ends  ", "\t", "\n", "\r", "\r\n", "a\nb", "a\r\nb", "a\rb", "trailing\n",
		`"`, `""`, `a"b`, `"quoted"`, ",", "a,b", `","`, ";", "'", "''", "|", `\`, `\|`, `\\`, `a|b\c`, `\N`, `\.`, `\n`,
		"]]>", "&amp;", "&amp;amp;", "<b>", "<!-- x -->", "NULL", "null", "NaN", "nan", "inf", "true", "None", "NA", "N/A", "-",
		"=1+1", "+49 30 123", "-5", "@SUM(A1)", "=HYPERLINK(\"http://x\",\"y\")", "\t=1", "\r=1", "'=1",
		"007", "00", "1e5", "0x10", "1_000", "2026-01-01", "12:30", "2026-03-08T02:30:00-06:00", "#1", "# comment", "--", "//",
		"😀", "👩‍👩‍👧‍👦", "שלום", "مرحبا ١٢٣", "\u202Eevil\u202C", "日本語テキスト", "e\u0301", "\u2028", "a\u2029b", "\u0085",
		"\uFEFF", "\uFEFFstart", "in\uFEFFside", "\uFFFD", "\u00A0", "\u200B", "\u007F", "\u0001\u001F", "\U0010FFFF", "\uE000",
		strings.Repeat("x", 7), strings.Repeat("x", 8), strings.Repeat("x", 9) + `"`, strings.Repeat("ü", 33),
		"1234567,", "12345678,", "123456789\n", `{"a":[1,2]}`, "[]", "{}", "%20", "a=b&c=d", "$(rm -rf /)", "`x`", "../../etc/passwd",
	}
}

// Build returns a batch of the schema with that many rows; fill appends one
// element to the builder of a column.
func Build(mem memory.Allocator, schema *arrow.Schema, rows int, fill func(b array.Builder, column, row int)) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for row := range rows {
		for column, field := range b.Fields() {
			fill(field, column, row)
		}
	}
	return b.NewRecordBatch()
}

// Random returns a batch of random values, one in ten null; the same seed
// gives the same batch.
func Random(mem memory.Allocator, schema *arrow.Schema, rows int, seed uint64) arrow.RecordBatch {
	return randomOf(mem, schema, rows, seed, HostileStrings())
}

func randomOf(mem memory.Allocator, schema *arrow.Schema, rows int, seed uint64, texts []string) arrow.RecordBatch {
	r := rand.New(rand.NewPCG(seed, 1))
	return Build(mem, schema, rows, func(b array.Builder, _, _ int) { appendRandom(b, r, texts) })
}

func appendRandom(b array.Builder, r *rand.Rand, texts []string) {
	if r.IntN(10) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(texts[r.IntN(len(texts))])
	case *array.Int64Builder:
		b.Append(int64(r.Uint64()))
	case *array.Float64Builder:
		b.Append(randomFloat(r))
	case *array.BooleanBuilder:
		b.Append(r.IntN(2) == 0)
	case *array.Date32Builder:
		b.Append(arrow.Date32(r.IntN(80_000) - 40_000))
	case *array.TimestampBuilder:
		us := r.Int64N(8e15) - 4e15
		if r.IntN(2) == 0 {
			us -= us % 1_000_000
		}
		b.Append(arrow.Timestamp(us))
	case *array.Decimal128Builder:
		b.Append(randomDecimal(r, b.Type().(*arrow.Decimal128Type).Precision))
	case *array.ListBuilder:
		b.Append(true)
		// Lists have two elements or none: CSV writes a list of one empty
		// string like an empty list. csvout has tests for that.
		n := 2 * r.IntN(3)
		for range n {
			appendRandom(b.ValueBuilder(), r, texts)
		}
	}
}

func randomFloat(r *rand.Rand) float64 {
	special := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.1, 1e6, 1e21, 1e-7, 123456789012345680000, math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Pi, 1 << 53, 100, 5e-324, 1.5e300,
	}
	if r.IntN(3) == 0 {
		return special[r.IntN(len(special))]
	}
	return (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(40)-20))
}

// Digits returns 10^precision - 1, the largest decimal of a precision.
func Digits(precision int32) decimal128.Num {
	n, err := decimal128.FromString(strings.Repeat("9", int(precision)), precision, 0)
	if err != nil {
		panic(err)
	}
	return n
}

func randomDecimal(r *rand.Rand, precision int32) decimal128.Num {
	n := Digits(int32(1 + r.IntN(int(precision))))
	switch r.IntN(4) {
	case 0:
		return n.Negate()
	case 1:
		return decimal128.FromI64(r.Int64N(200) - 100)
	}
	return n
}
