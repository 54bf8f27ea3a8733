package xlsxout_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/xuri/excelize/v2"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/xlsxout"
)

// escapeLike are texts that hold what spreadsheets decode, or nearly.
func escapeLike() []string {
	return []string{
		"_x0041_", "_xD83D_", "_xd83d_", "_xD83D__xDE00_", "_xDFFF_", "_xFFFF_", "_xfffe_", "_x0000_", "_x000D_", "_x005F_", "_x005f_",
		"_x005F_x0041_", "_x005F_x005F_x0041_", "_x0041_x0042_", "_x0041_x0042_x0043_", "_xD800_x0041_", "_x0041_xDC00_x005F_",
		"__x0041__", "x_x00e9_y", " _xD83D_ ", "_xD83D_\r\n", "\t_xD83D_<&>\"'", "_X0041_", "_x12G4_", "_x004_", "_x0041", "_x00411_", "x0041_", "_x005F", "_x_x0041_",
		"_xD83D_" + strings.Repeat("ü", 32_760), strings.Repeat("_x0041", 5_461) + "_",
		strings.Repeat("a", 32_760) + "_xDEAD_", "</t></r><r><t>_xD83D_</t></r></is>", "</t></r><r><t>", "&lt;/t>_x0041_",
	}
}

// shown writes a workbook with the text as a heading, a value and a list, and
// gives how an independent reading of its XML and the library's reader show
// those three.
func shown(t *testing.T, text string) (own, library [3]string) {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: text, Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "list", Type: loadtest.ListOf(arrow.BinaryTypes.String), Nullable: true},
	}, nil)
	batch := loadtest.Build(memory.NewGoAllocator(), schema, 1, func(b array.Builder, _, _ int) {
		if list, ok := b.(*array.ListBuilder); ok {
			list.Append(true)
			b = list.ValueBuilder()
		}
		b.(*array.StringBuilder).Append(text)
	})
	defer batch.Release()
	file := encode(t, batch, load.EncodeOptions{}, 10)
	rows, err := sheet(file, 1, schema.NumFields())
	if err != nil {
		t.Fatal(err)
	}
	book, err := excelize.OpenReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	for i, c := range []*cell{rows[0][0], rows[1][0], rows[1][1]} {
		if c == nil {
			t.Fatalf("%.60q: cell %d is missing", text, i)
		}
		if len(c.Runs) > 0 {
			t.Errorf("%.60q: %s is in %d pieces, which readers decode in different ways", text, c.Ref, len(c.Runs))
		}
		own[i] = c.text()
		if library[i], err = book.GetCellValue("Results", c.Ref); err != nil {
			t.Fatal(err)
		}
	}
	return own, library
}

// checkShown fails where a text does not come back as it was.
func checkShown(t *testing.T, text string) {
	t.Helper()
	own, library := shown(t, text)
	want := [3]string{text, text, strings.NewReplacer(`\`, `\\`, "|", `\|`).Replace(text)}
	if own != want {
		t.Errorf("%.60q is shown as %.60q", want, own)
	}
	if library != want {
		t.Errorf("%.60q is shown as %.60q by excelize", want, library)
	}
}

func TestEscapes(t *testing.T) {
	for _, text := range escapeLike() {
		checkShown(t, text)
	}
}

// FuzzText: every text that an answer may hold comes back as it was.
func FuzzText(f *testing.F) {
	for _, text := range append(loadtest.HostileStrings(), escapeLike()...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, xlsxout.IsForbidden) || len(text) > 16_000 {
			return // no answer has such a text, or its list may not fit into a cell
		}
		checkShown(t, text)
	})
}
