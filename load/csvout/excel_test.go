package csvout_test

import (
	"bytes"
	"errors"
	"slices"
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

// kept are texts that a spreadsheet shows as they are, or keeps the value of.
func kept() []string {
	return []string{
		"", "x", "Müller", "日本語", "😀", "true story", "TRUE", "FALSE", "march", "may", "Mayor 5", "5 marches", "december 1 2 3",
		"0", "5", "-5", "-3.14", "3.14", "19.90", "0.5", "-0.5", "123456789012345", "-123456789012345", "0.123456789012345",
		"2026", "2026-01-02", "2026-01-02 03:04", "2026-01-02 03:04:05", "9:30", "12:30", "23:59:59", "9:30:15",
		"10.0.0.1", "192.168.1.20", "1.2.3.4", "555-1234", "0171 1234567", "030/1234567", "(030) 1234567", "(555) 123-4567",
		"1-234-567-8901", "3 apples", "5a", "B12", "1.2.x", "a=b", "a@b.c", "x-1", "'=1", "#1", "%", "$", "()", "1,a", "12 Main St",
		"0x10", "1e", "e5", "1e5x", "2026-01-02T03:04:05Z", "$(rm)", "1;2", "1|2", "1_000", "1/2 cup", "12:30 to 13:00",
		strings.Repeat("9 lives ", 100), "٣", "²", "ⅷ",
	}
}

// changed are texts that a spreadsheet would run, or show others for.
func changed() []string {
	return []string{
		"=1+1", "+49 30 123", "+4930123", "-x", "-", "--", "-=1", "@SUM(A1)", "\t=1", "\rx", "\nx", " =1+1", "\u00a0=1", " -x", " @x",
		"＝1+1", "＋1", "－1", "＠x", "  ＝1",
		"00123", "007", "00", "-0", "-0.0", "-007", "01.5", "1234567890123456", "12345678901234567890", "0.1234567890123456", "1234567890.123456",
		"1e5", "12E3", "1.5e-3", "1E+400", "-1e5", ".5", "5.", "-.5", " 5", "5 ", "\u00a05", "5\u00a0", "1,5", "1,234", "1,234.50", "1.234,50",
		"1'000", "1 000", "1\u00a0000", "1\u202f000", "1.234.567", "192.168.100.200", "5%", "$5", "€5", "5 €", "(5)", "- 5", "-$5",
		"1-2", "3/4", "1.2.", "1.2.3", "15.03.", "1.2.2026", "2026-05", "12-3456", "1/2/2026", "12/31/2025", "1-2-03", "1 1/2", "2026/01/02",
		"1:2", "100:30", "25:00", "9:75", "1:2:3", "5 pm", "5:30 PM", "12:30pm", "5 a",
		"true", "True", "false", " true", "TRUE ", "mar 5", "5-mar", "MARCH1", "SEPT2", "DEC1", "May 2026", "march 5, 2026", "5 december 2026", "Sep-26",
	}
}

func TestGuard(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, c := range []struct {
		texts  []string
		prefix string
	}{{kept(), ""}, {changed(), "'"}} {
		for _, text := range c.texts {
			batch := texts(mem, text+"h", text)
			file := encode(t, batch, load.EncodeOptions{Profile: csvout.Excel})
			rows, err := parse(strings.ReplaceAll(strings.TrimPrefix(file, "\uFEFF"), "\r\n", "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := rows[1][1].text, c.prefix+text; got != want {
				t.Errorf("%q becomes %q, not %q", text, got, want)
			}
			batch.Release()
		}
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

func TestWarnings(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	most := strings.Repeat("ä", 32_765) + "\"\""
	for name, c := range map[string]struct {
		texts []any
		rows  int64 // of the sheet
		want  []string
	}{
		"nothing to tell": {[]any{"a", nil, most}, 4, nil},
		"a row too many":  {[]any{"a", "b"}, 2, []string{"2 rows are more than the 1 "}},
		"long texts":      {[]any{most + "x", "=" + most, "a", strings.Repeat("😀", 16_384)}, 9, []string{`column "h": 3 texts are longer than the 32,767`}},
		"guarded":         {[]any{"=" + strings.Repeat("x", 32_766)}, 9, []string{`"h": 1 texts`}},
	} {
		batch := texts(mem, "h", c.texts...)
		var out bytes.Buffer
		e, err := csvout.NewWithin(&out, batch.Schema(), load.EncodeOptions{Profile: csvout.Excel}, c.rows)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(e.Write(batch), e.Close()); err != nil {
			t.Fatal(err)
		}
		got := e.(load.Warner).Warnings()
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q", name, got)
		}
		batch.Release()
	}
}

// Only the profile that is made for spreadsheets warns of their bounds.
func TestStrictDoesNotWarn(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	batch := texts(mem, "h", strings.Repeat("x", 40_000))
	defer batch.Release()
	e, err := csvout.NewWithin(&bytes.Buffer{}, batch.Schema(), load.EncodeOptions{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Write(batch), e.Close()); err != nil {
		t.Fatal(err)
	}
	if got := e.(load.Warner).Warnings(); got != nil {
		t.Errorf("%q", got)
	}
}
