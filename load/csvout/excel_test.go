package csvout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/loadtest"
)

// A text at whose ; or TAB a spreadsheet might divide the line is in quotes, in
// lists and headings too, and in no other profile.
func TestDividers(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	list := loadtest.ListOf(arrow.BinaryTypes.String)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "h;=1", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: list, Nullable: true},
		{Name: "j", Type: list, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{"formetl.list_as": "json"})},
	}, nil)
	values := []string{"hello;=1+1", "a\tb", ";", "plain"}
	batch := loadtest.Build(mem, schema, len(values), func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.StringBuilder:
			b.Append(values[row])
		case *array.ListBuilder:
			b.Append(true)
			b.ValueBuilder().(*array.StringBuilder).Append(values[row])
		}
	})
	defer batch.Release()
	excel := "\uFEFF\"h;=1\",l,j\r\n" +
		"\"hello;=1+1\",\"hello;=1+1\",\"[\"\"hello;=1+1\"\"]\"\r\n" +
		"\"a\tb\",\"a\tb\",\"[\"\"a\\tb\"\"]\"\r\n" +
		"\";\",\";\",\"[\"\";\"\"]\"\r\n" +
		"plain,plain,\"[\"\"plain\"\"]\"\r\n"
	if got := encode(t, batch, load.EncodeOptions{Profile: csvout.Excel}); got != excel {
		t.Errorf("%q, not %q", got, excel)
	}
	if got, want := encode(t, batch, load.EncodeOptions{}), "h;=1,l,j\nhello;=1+1,hello;=1+1,"; !strings.HasPrefix(got, want) {
		t.Errorf("%q does not begin with %q", got, want)
	}
}

// Timestamps are the account's wall clock, lists hold theirs in the same form.
func TestExcelTimes(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := loadtest.Columns("at", loadtest.Timestamp(), "all", loadtest.ListOf(loadtest.Timestamp()), "day", arrow.FixedWidthTypes.Date32,
		"price", &arrow.Decimal128Type{Precision: 12, Scale: 2})
	at := time.Date(2026, 1, 2, 9, 4, 5, 120_000_000, time.UTC)
	batch := loadtest.Build(mem, schema, 1, func(b array.Builder, _, _ int) {
		switch b := b.(type) {
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(at.UnixMicro()))
		case *array.ListBuilder:
			b.Append(true)
			b.ValueBuilder().(*array.TimestampBuilder).Append(arrow.Timestamp(at.Truncate(time.Second).UnixMicro()))
		case *array.Date32Builder:
			b.Append(arrow.Date32FromTime(at))
		case *array.Decimal128Builder:
			b.Append(decimal128.FromI64(-150))
		}
	})
	defer batch.Release()
	got := encode(t, batch, load.EncodeOptions{Profile: csvout.Excel, Zone: loadtest.Chicago()})
	if want := "\uFEFFat,all,day,price\r\n2026-01-02 03:04:05.120,2026-01-02 03:04:05,2026-01-02,-1.50\r\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
