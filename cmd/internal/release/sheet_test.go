package main

import (
	"bytes"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/xuri/excelize/v2"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/xlsxout"
)

// answers are texts as people and attackers give them.
func answers() []string {
	texts := slices.DeleteFunc(loadtest.HostileStrings(), func(s string) bool {
		return s == "\u0001\u001F" // XML has no such characters, so no answer has
	})
	return append(texts,
		"=cmd|' /C calc'!A0", "=1+1", " =1+1", "+4930123", "+49 30 123", "-5", "-3.14", "-x", "@x", "＝1+1", "=\"a\"", "\n=1+1", "=1\n+1",
		"00123", "12345678901234567890", "1234567890123456", "123456789012345", "1e5", "12E3", "1-2", "3/4", "1.2.", "1.10", "19.90", "1,5", "1,234.50", ".5", "5.",
		"true", "TRUE", "mar 5", "SEPT2", "5 pm", "1:2", "12:30", "9:30:15", "2026-01-02", "2026-01-02 03:04:05", "12/31/2025", "1 1/2", "5%", "$5", "(5)", " 5", "5 ",
		"a;b", "a\tb", "a,b;c\td", "say \"x\"", "line\nbreak", "line\r\nbreak", "two\n\nlines\n", "😀👩‍👩‍👧‍👦", "שלום עולם", "مرحبا", "\u202Eevil\u202C",
		"_x0041_", "_x000D_", "_x005F_", "_x005F_x0041_", "_x0041_x0042_", "_x0041_x0042_x0043_", "_xD800_", "_xD83D__xDE00_", "_xd83d_x005F_", "x_x00e9_y", "_x12G4_", "&amp;<b>]]>", "'", "'quoted'", "''",
		"hello;=1+1", "hello\t=1+1", "a;-5;@x", "5+", "18+", "5 -", ".2-", "5$-", "5 E2", "5:05+", "1 - 2", " TRUE", "12 30 pm",
		"5. März 2026", "Januar 5", "mars 5", "5 mai 2026", "5 de marzo de 2026", "5-ene", "5 Kinder", "3 enfants", "1月2日",
		"#N/A", "#REF!", "10.0.0.1", "192.168.100.200", strings.Repeat("long ", 6_553)+"xy",
	)
}

// answerRows are rows with the answers beside values of every type, and nulls.
func answerRows(mem memory.Allocator) arrow.RecordBatch {
	texts := answers()
	schema := loadtest.Columns("result_id", arrow.PrimitiveTypes.Int64, "=heading", arrow.BinaryTypes.String, "list", loadtest.ListOf(arrow.BinaryTypes.String),
		"price", &arrow.Decimal128Type{Precision: 12, Scale: 2}, "ratio", arrow.PrimitiveTypes.Float64, "ok", arrow.FixedWidthTypes.Boolean,
		"day", arrow.FixedWidthTypes.Date32, "at", loadtest.Timestamp(), "last", arrow.BinaryTypes.String)
	start := time.Date(2026, 1, 2, 9, 4, 5, 0, time.UTC)
	return loadtest.Build(mem, schema, len(texts), func(b array.Builder, column, row int) {
		if column > 2 && column < 8 && row%5 == 4 {
			b.AppendNull()
			return
		}
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row) - 3)
		case *array.StringBuilder:
			if column == 8 && row%3 == 0 {
				b.AppendNull()
				return
			}
			b.Append(texts[row])
		case *array.ListBuilder:
			b.Append(true)
			b.ValueBuilder().(*array.StringBuilder).Append(strings.TrimPrefix(texts[row], strings.Repeat("long ", 100)))
			b.ValueBuilder().(*array.StringBuilder).Append("-1")
		case *array.Decimal128Builder:
			b.Append(decimal128.FromI64(int64(row-20) * 12_345))
		case *array.Float64Builder:
			b.Append([]float64{0, 1.5, -0.25, 1e10, 0.30000000000000004, 12345.678}[row%6])
		case *array.BooleanBuilder:
			b.Append(row%2 == 0)
		case *array.Date32Builder:
			b.Append(arrow.Date32FromTime(start.AddDate(0, 0, row*97)))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(start.Add(time.Duration(row) * 1_000_003 * time.Second).UnixMicro()))
		}
	})
}

// file writes the results in a format.
func (c calc) file(format load.Format, profile string, batch arrow.RecordBatch) (string, []byte) {
	c.Helper()
	var out bytes.Buffer
	e, err := format.New(&out, batch.Schema(), load.EncodeOptions{Zone: loadtest.Chicago(), Profile: profile})
	if err == nil {
		err = errors.Join(e.Write(batch), e.Close())
	}
	path := filepath.Join(c.folder, "results"+format.Extension)
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o600)
	}
	if err != nil {
		c.Fatal(err)
	}
	return path, out.Bytes()
}

// same tells whether a cell is shown as it was written: the same text, where line breaks
// are line feeds, or the same number.
func sameCell(want, got string) bool {
	want, got = newlines(want), newlines(got)
	if want == got || want == "true" && got == "TRUE" || want == "false" && got == "FALSE" {
		return true
	}
	w, isNumber := new(big.Rat).SetString(want)
	g, ok := new(big.Rat).SetString(got)
	if !isNumber || !ok || strings.Contains(want, "/") {
		return false
	}
	difference := new(big.Rat).Sub(w, g) // of a float, as many digits are shown as a sheet shows
	return difference.Abs(difference).Cmp(big.NewRat(1, 1_000_000_000)) < 0
}

func newlines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func (c calc) compare(what string, want, got [][]string) {
	c.Helper()
	if len(want) != len(got) {
		c.Fatalf("%s: %d rows, not %d", what, len(got), len(want))
	}
	for row := range want {
		for i, cell := range want[row] {
			shown := ""
			if i < len(got[row]) {
				shown = got[row][i]
			}
			if !sameCell(cell, shown) {
				c.Errorf("%s: row %d, column %s: %.60q is shown as %.60q", what, row, want[0][i], cell, shown)
			}
		}
	}
}

// noFormulas tells of cells of a workbook that are formulas.
func (c calc) noFormulas(what string, data []byte) {
	c.Helper()
	book, err := excelize.OpenReader(bytes.NewReader(data))
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	cells := 0
	for _, sheet := range book.GetSheetList() {
		rows, err := book.GetRows(sheet)
		if err != nil {
			c.Fatal(err)
		}
		for r, row := range rows {
			for i := range row {
				name, err := excelize.CoordinatesToCellName(i+1, r+1)
				if err != nil {
					c.Fatal(err)
				}
				formula, err := book.GetCellFormula(sheet, name)
				if err != nil || formula != "" {
					c.Errorf("%s: %s is the formula %q, %v", what, name, formula, err)
				}
				cells++
			}
		}
	}
	if cells < 9*len(answers())/2 {
		c.Errorf("%s: only %d cells were looked at", what, cells)
	}
}

// TestExcelProfile: no cell of the file for spreadsheets is a formula in a spreadsheet.
func TestExcelProfile(t *testing.T) {
	c := newCalc(t)
	batch := answerRows(memory.NewGoAllocator())
	defer batch.Release()
	path, _ := c.file(csvout.Format(), csvout.Excel, batch)
	c.noFormulas("excel profile", c.convert(path, importEager, "xlsx"))
	c.noFormulas("excel profile, divided at ; and TAB", c.convert(path, importDivided, "xlsx"))
}

// TestWorkbook: a spreadsheet shows the workbook's cells as they were answered.
func TestWorkbook(t *testing.T) {
	c := newCalc(t)
	batch := answerRows(memory.NewGoAllocator())
	defer batch.Release()
	path, data := c.file(xlsxout.Format(), "", batch)
	c.noFormulas("workbook", data)
	_, plain := c.file(csvout.Format(), "", batch)
	want := c.cells(plain)
	for _, row := range want[1:] { // the sheet shows local times
		if at, err := time.Parse(time.RFC3339, row[7]); err == nil {
			row[7] = at.Format(time.DateTime)
		}
	}
	c.compare("LibreOffice", want, c.cells(c.convert(path, "", exportCSV)))
	c.compare("excelize", want, excelizeRows(t, data))
}

// excelizeRows is what the library's own reader shows.
func excelizeRows(t *testing.T, data []byte) [][]string {
	t.Helper()
	book, err := excelize.OpenReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	rows, err := book.GetRows("Results")
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
