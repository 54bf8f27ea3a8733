package csvout_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"reflect"
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

// TestListsOfOtherTypesAsJSON are written as NDJSON writes them.
func TestListsOfOtherTypesAsJSON(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, c := range []struct {
		elem   arrow.DataType
		append func(array.Builder)
		want   string
	}{
		{arrow.PrimitiveTypes.Int64, func(b array.Builder) { b.(*array.Int64Builder).AppendValues([]int64{-1, 2}, nil) }, `"[-1,2]"`},
		{arrow.PrimitiveTypes.Float64, func(b array.Builder) {
			b.(*array.Float64Builder).AppendValues([]float64{1.5, math.NaN()}, nil)
		}, `"[1.5,null]"`},
		{arrow.FixedWidthTypes.Boolean, func(b array.Builder) { b.(*array.BooleanBuilder).AppendValues([]bool{true, false}, nil) }, `"[true,false]"`},
		{arrow.FixedWidthTypes.Date32, func(b array.Builder) { b.(*array.Date32Builder).Append(1) }, `"[""1970-01-02""]"`},
		{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, func(b array.Builder) {
			b.(*array.TimestampBuilder).Append(0)
		}, `"[""1969-12-31T18:00:00-06:00""]"`},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, func(b array.Builder) {
			b.(*array.Decimal128Builder).Append(decimal128.FromI64(-5))
		}, `"[""-0.05""]"`},
	} {
		batch := loadtest.Build(mem, shown(c.elem, "json", ""), 1, func(b array.Builder, _, _ int) {
			switch b := b.(type) {
			case *array.Int64Builder:
				b.Append(1)
			case *array.ListBuilder:
				b.Append(true)
				c.append(b.ValueBuilder())
			}
		})
		zone := loadtest.Chicago()
		got := encode(t, batch, load.EncodeOptions{Zone: zone})
		want := "id,l\n1," + strings.TrimSpace(c.want) + "\n"
		if !strings.Contains(c.want, ",") && !strings.Contains(c.want, `""`) {
			want = strings.ReplaceAll(want, `"`, "")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", c.elem, got, want)
		}
		batch.Release()
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
}

// TestListsWithoutChoices leave no trace, alone no file.
func TestListsWithoutChoices(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	batch := lists(mem, shown(arrow.BinaryTypes.String, "columns", "[]"), nil, []any{""})
	defer batch.Release()
	if got := encode(t, batch, load.EncodeOptions{}); got != "id\n0\n1\n" {
		t.Errorf("the file is %q", got)
	}
	only := arrow.NewSchema(batch.Schema().Fields()[1:], nil)
	if _, err := csvout.New(&bytes.Buffer{}, only, load.EncodeOptions{}); err == nil || !strings.Contains(err.Error(), "without choices") {
		t.Errorf("the error is %v", err)
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
		if err := e.Write(batch); err == nil || !strings.Contains(err.Error(), "blue") {
			t.Errorf("choices %s: the error is %v", choices, err)
		}
		batch.Release()
	}
}

func TestBadListMetadata(t *testing.T) {
	for _, c := range []struct {
		schema *arrow.Schema
		want   string
	}{
		{shown(arrow.BinaryTypes.String, "rows", ""), `"rows"`},
		{shown(arrow.BinaryTypes.String, "columns", "{"), "cannot be read"},
		{shown(arrow.PrimitiveTypes.Int64, "columns", "[]"), "no choices"},
		{shown(arrow.BinaryTypes.String, "columns", `[["a","x"],["b","x"]]`), "twice"},
		{shown(arrow.BinaryTypes.String, "columns", `[["a","id"]]`), "twice"},
	} {
		if _, err := csvout.New(&bytes.Buffer{}, c.schema, load.EncodeOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want one about %s", err, c.want)
		}
	}
}

// TestChoicesAreCheap: a batch of many choices is no quadratic matter.
func TestChoicesAreCheap(t *testing.T) {
	pairs := make([][2]string, 0, 500)
	for i := range 500 {
		pairs = append(pairs, [2]string{strings.Repeat("v", i+1), "l__" + strings.Repeat("v", i+1)})
	}
	data, err := json.Marshal(pairs)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]any, 2000)
	for i := range rows {
		rows[i] = []any{pairs[i%500][0], pairs[(i*7)%500][0]}
	}
	batch := lists(memory.DefaultAllocator, shown(arrow.BinaryTypes.String, "columns", string(data)), rows...)
	defer batch.Release()
	begun := time.Now()
	file := encode(t, batch, load.EncodeOptions{})
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	for i, line := range strings.Split(strings.TrimSpace(file), "\n")[1:] {
		want := 2
		if i%500 == (i*7)%500 {
			want = 1
		}
		if n := strings.Count(line, "true"); n != want {
			t.Fatalf("row %d has %d choices, want %d", i, n, want)
		}
	}
}
