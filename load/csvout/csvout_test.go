package csvout_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/loadtest"
)

func TestConformance(t *testing.T) { loadtest.Encoder(t, csvout.Format(), read, loadtest.Limits{}) }

// TestTabs: a file with tabs holds the same, and a text that holds a TAB is quoted.
func TestTabs(t *testing.T) {
	loadtest.Encoder(t, csvout.TSV(), func(file []byte, schema *arrow.Schema) ([][]string, error) { return readDivided(file, schema, "\t") }, loadtest.Limits{})
}

// read is the suite's reader.
func read(file []byte, schema *arrow.Schema) ([][]string, error) {
	return readDivided(file, schema, ",")
}

func readDivided(file []byte, schema *arrow.Schema, delimiter string) ([][]string, error) {
	rows, err := loadtest.ParseCSV(string(file), delimiter)
	if err != nil {
		return nil, err
	}
	for i, f := range rows[0] {
		if f.Text != schema.Field(i).Name {
			return nil, fmt.Errorf("heading %d is %q", i, f.Text)
		}
	}
	out := make([][]string, len(rows)-1)
	for r, row := range rows[1:] {
		out[r] = make([]string, len(row))
		for i, f := range row {
			if out[r][i], err = value(schema.Field(i).Type, f); err != nil {
				return nil, fmt.Errorf("row %d, column %d: %w", r, i, err)
			}
		}
	}
	return out, nil
}

func value(t arrow.DataType, f loadtest.Field) (string, error) {
	if f.Text == "" && !f.Quoted {
		return loadtest.Null, nil
	}
	list, ok := t.(*arrow.ListType)
	if !ok {
		return loadtest.ParseText(t, f.Text)
	}
	var elements []string
	for _, text := range loadtest.SplitList(f.Text) {
		if text == loadtest.Null {
			elements = append(elements, text)
			continue
		}
		e, err := loadtest.ParseText(list.Elem(), text)
		if err != nil {
			return "", err
		}
		elements = append(elements, e)
	}
	return loadtest.ListText(elements), nil
}

// encode returns the file of a batch.
func encode(t testing.TB, batch arrow.RecordBatch, o load.EncodeOptions) string {
	t.Helper()
	var out bytes.Buffer
	e, err := csvout.New(&out, batch.Schema(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Write(batch), e.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// strings1 returns a batch of one id and one string column; nil is null.
func texts(mem memory.Allocator, name string, cells ...any) arrow.RecordBatch {
	schema := loadtest.Columns("id", arrow.PrimitiveTypes.Int64, name, arrow.BinaryTypes.String)
	return loadtest.Build(mem, schema, len(cells), func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.StringBuilder:
			if s, ok := cells[row].(string); ok {
				b.Append(s)
				return
			}
			b.AppendNull()
		}
	})
}

func TestFields(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, c := range []struct {
		in            any
		strict, excel string
	}{
		{nil, ``, ``},
		{"", `""`, `""`},
		{"plain", `plain`, `plain`},
		{"a,b", `"a,b"`, `"a,b"`},
		{`say "x"`, `"say ""x"""`, `"say ""x"""`},
		{"a\nb", "\"a\nb\"", "\"a\nb\""},
		{"a\r\nb", "\"a\r\nb\"", "\"a\r\nb\""},
		{" a", `" a"`, `" a"`},
		{"a\t", "\"a\t\"", "\"a\t\""},
		{"a b", `a b`, `a b`},
		{"#1", `"#1"`, `"#1"`},
		{`\.`, `"\."`, `"\."`},
		{"\uFEFFx", "\"\uFEFFx\"", "\"\uFEFFx\""},
		{"x\uFEFF", "x\uFEFF", "x\uFEFF"},
		{"\uFF01x", "\uFF01x", "\uFF01x"}, // its first byte is that of a byte order mark
		{"007", `007`, `007`},
		{"NULL", `NULL`, `NULL`},
		{"=1+1", `=1+1`, `'=1+1`},
		{"=A(1,2)", `"=A(1,2)"`, `"'=A(1,2)"`},
		{"+1", `+1`, `'+1`},
		{"-1", `-1`, `-1`},
		{"-x", `-x`, `'-x`},
		{"\n=1", "\"\n=1\"", "\"'\n=1\""},
		{"@x", `@x`, `'@x`},
		{"\t=1", "\"\t=1\"", "\"'\t=1\""},
		{"\r=1", "\"\r=1\"", "\"'\r=1\""},
		{"'=1", `'=1`, `'=1`},
	} {
		for profile, want := range map[string]string{
			csvout.Strict: "id,h\n0," + c.strict + "\n",
			csvout.Excel:  "\uFEFFid,h\r\n0," + c.excel + "\r\n",
		} {
			batch := texts(mem, "h", c.in)
			if got := encode(t, batch, load.EncodeOptions{Profile: profile}); got != want {
				t.Errorf("%s: %#v gives %q, not %q", profile, c.in, got, want)
			}
			batch.Release()
		}
	}
}

func TestExcelGuardsHeadingsAndLists(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := loadtest.Columns("=cmd", arrow.PrimitiveTypes.Int64, "list", loadtest.ListOf(arrow.BinaryTypes.String),
		"numbers", loadtest.ListOf(arrow.PrimitiveTypes.Int64))
	batch := loadtest.Build(mem, schema, 1, func(b array.Builder, _, _ int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(-5)
		case *array.ListBuilder:
			b.Append(true)
			switch e := b.ValueBuilder().(type) {
			case *array.StringBuilder:
				e.AppendValues([]string{"=1", "=2"}, nil)
			case *array.Int64Builder:
				e.AppendValues([]int64{-1, 2}, nil)
			}
		}
	})
	defer batch.Release()
	want := "\uFEFF'=cmd,list,numbers\r\n-5,'=1|=2,-1|2\r\n"
	if got := encode(t, batch, load.EncodeOptions{Profile: csvout.Excel}); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestLists(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, c := range []struct {
		elements []any // nil: a null list
		want     string
	}{
		{nil, ``},
		{[]any{}, `""`},
		{[]any{""}, `""`}, // the one pair that is not kept apart
		{[]any{"", ""}, `|`},
		{[]any{nil}, `\N`},
		{[]any{nil, "N"}, `\N|N`},
		{[]any{"a"}, `a`},
		{[]any{"a|b", `c\d`}, `a\|b|c\\d`},
		{[]any{`\N`}, `\\N`},
		{[]any{"a,b", `"`}, `"a,b|"""`},
	} {
		schema := loadtest.Columns("id", arrow.PrimitiveTypes.Int64, "l", loadtest.ListOf(arrow.BinaryTypes.String))
		batch := loadtest.Build(mem, schema, 1, func(b array.Builder, _, _ int) {
			switch b := b.(type) {
			case *array.Int64Builder:
				b.Append(1)
			case *array.ListBuilder:
				b.Append(c.elements != nil)
				for _, e := range c.elements {
					if s, ok := e.(string); ok {
						b.ValueBuilder().(*array.StringBuilder).Append(s)
						continue
					}
					b.ValueBuilder().AppendNull()
				}
			}
		})
		if got, want := encode(t, batch, load.EncodeOptions{}), "id,l\n1,"+c.want+"\n"; got != want {
			t.Errorf("%q gives %q, not %q", c.elements, got, want)
		}
		batch.Release()
	}
}

// A null in the only column would be a blank line, and encoding/csv, among
// others, would not see the row.
func TestSingleColumn(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	batch := loadtest.Build(mem, loadtest.Columns("n", arrow.PrimitiveTypes.Int64), 3, func(b array.Builder, _, row int) {
		if row == 1 {
			b.AppendNull()
			return
		}
		b.(*array.Int64Builder).Append(int64(row))
	})
	defer batch.Release()
	got := encode(t, batch, load.EncodeOptions{})
	if want := "n\n0\n\"\"\n2\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Errorf("encoding/csv reads %d rows: %v", len(rows), err)
	}
}

func TestUnknownProfile(t *testing.T) {
	_, err := csvout.New(&bytes.Buffer{}, loadtest.AllTypes(), load.EncodeOptions{Profile: "tsv"})
	if err == nil || !strings.Contains(err.Error(), `"tsv"`) {
		t.Errorf("the error is %v", err)
	}
}

// FuzzRoundTrip holds the encoder to encoding/csv and to the reader above.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range loadtest.HostileStrings() {
		f.Add(s, "x")
		f.Add("x", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		batch := texts(mem, "h", a, b, nil)
		defer batch.Release()
		file := encode(t, batch, load.EncodeOptions{})
		got, err := read([]byte(file), batch.Schema())
		if err != nil {
			t.Fatal(err)
		}
		if diff := loadtest.Differs(batch.Schema(), loadtest.Text(batch), got); diff != "" {
			t.Error(diff)
		}
		rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
		if err != nil {
			t.Fatalf("encoding/csv: %v", err)
		}
		// encoding/csv makes one line feed of CR LF within a field.
		for i, want := range []string{a, b, ""} {
			if want = strings.ReplaceAll(want, "\r\n", "\n"); rows[i+1][1] != want {
				t.Errorf("encoding/csv reads %q, not %q", rows[i+1][1], want)
			}
		}
	})
}
