package csvout_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/loadtest"
)

// shown is a schema of an id and a list that says how it is shown.
func shown(elem arrow.DataType, as, choices string) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{
			Name: "l", Type: loadtest.ListOf(elem), Nullable: true,
			Metadata: arrow.NewMetadata([]string{"formetl.list_as", "formetl.choices"}, []string{as, choices}),
		},
	}, nil)
}

// lists builds a row for each list of texts; a nil list is null, a nil element too.
func lists(mem memory.Allocator, schema *arrow.Schema, rows ...[]any) arrow.RecordBatch {
	return loadtest.Build(mem, schema, len(rows), func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.ListBuilder:
			b.Append(rows[row] != nil)
			for _, e := range rows[row] {
				if s, ok := e.(string); ok {
					b.ValueBuilder().(*array.StringBuilder).Append(s)
					continue
				}
				b.ValueBuilder().AppendNull()
			}
		}
	})
}

func TestListsAsJSON(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	rows := [][]any{nil, {}, {""}, {"a", nil, "b|c"}, {`say "x"`, "\u2028\n"}, {"=1+1", "ж"}}
	batch := lists(mem, shown(arrow.BinaryTypes.String, "json", ""), rows...)
	defer batch.Release()
	for _, profile := range []string{csvout.Strict, csvout.Excel} {
		file := encode(t, batch, load.EncodeOptions{Profile: profile})
		got, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(file, "\uFEFF"))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if got[1][1] != "" || got[2][1] != "[]" {
			t.Errorf("a null list is %q, an empty one %q", got[1][1], got[2][1])
		}
		for i, want := range rows[1:] {
			var list []any
			if err := json.Unmarshal([]byte(got[i+2][1]), &list); err != nil || !reflect.DeepEqual(list, want) {
				t.Errorf("%s: %s, want %q (%v)", profile, got[i+2][1], want, err)
			}
		}
	}
	if got := encode(t, batch, load.EncodeOptions{}); !strings.Contains(got, "3,\"[\"\"a\"\",null,\"\"b|c\"\"]\"\n") || !strings.Contains(got, `\u2028\n`) {
		t.Errorf("the file is %s", got)
	}
}

func TestListsAsColumns(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	const choices = `[["red","l__red"],["a,b","l__a_b"],["=","l__choice"]]`
	batch := lists(mem, shown(arrow.BinaryTypes.String, "columns", choices), nil, []any{}, []any{"a,b", "a,b"}, []any{"=", nil, "", "red"})
	defer batch.Release()
	want := "id,l__red,l__a_b,l__choice\n0,,,\n1,false,false,false\n2,false,true,false\n3,true,false,true\n"
	if got := encode(t, batch, load.EncodeOptions{}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	excel := "\uFEFF" + strings.ReplaceAll(want, "\n", "\r\n")
	if got := encode(t, batch, load.EncodeOptions{Profile: csvout.Excel}); !strings.EqualFold(got, excel) {
		t.Errorf("%q, want %q", got, excel)
	}
	part := batch.NewSlice(2, 4) // a batch that does not begin with its arrays
	defer part.Release()
	if got, want := encode(t, part, load.EncodeOptions{}), "id,l__red,l__a_b,l__choice\n2,false,true,false\n3,true,false,true\n"; got != want {
		t.Errorf("a slice gives %q, want %q", got, want)
	}
	none := lists(mem, shown(arrow.BinaryTypes.String, "columns", "[]"), nil, []any{""})
	defer none.Release()
	if got := encode(t, none, load.EncodeOptions{}); got != "id\n0\n1\n" {
		t.Errorf("without choices the file is %q", got)
	}
}

// TestValuesWithoutAChoice are an error: the file would lose them.
func TestValuesWithoutAChoice(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, choices := range []string{`[["red","l__red"]]`, `[]`} {
		batch := lists(mem, shown(arrow.BinaryTypes.String, "columns", choices), []any{"blue"})
		e, err := csvout.New(&bytes.Buffer{}, batch.Schema(), load.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Write(batch); err == nil || !strings.Contains(err.Error(), "a value of row 0") || strings.Contains(err.Error(), "blue") {
			t.Errorf("choices %s: the error is %v", choices, err)
		}
		batch.Release()
	}
}
