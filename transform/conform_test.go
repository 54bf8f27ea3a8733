package transform

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/schemas"
)

// conformed flattens one result by the schema "from" and conforms the batch.
func conformed(t *testing.T, from *schemas.Schema, to *arrow.Schema) ([]string, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	p := new(answer).result(7, "item:1=a", "item:2=5", "item:3=x|y", "meta:m=q").page(t)
	var out []string
	var failed error
	start(t, from, func(o *Options) {
		o.Emit = func(b arrow.RecordBatch) error {
			c, err := Conform(b, to, mem)
			if err != nil {
				failed = err
				return nil
			}
			defer c.Release()
			if !c.Schema().Equal(to) {
				t.Errorf("schema %v", c.Schema())
			}
			out = rows(c)
			return nil
		}
	}).feed(t, p)
	return out, failed
}

func TestConform(t *testing.T) {
	base := schema(t, "id result_id int64", "a item:1 string", "n item:2 int64", "l item:3 list<string>", "m meta:m string")
	for name, tt := range map[string]struct {
		target []string
		want   string
	}{
		"same":      {[]string{"id result_id int64", "a item:1 string", "n item:2 int64", "l item:3 list<string>", "m meta:m string"}, `7 · "a" · 5 · ["x" "y"] · "q"`},
		"reordered": {[]string{"m meta:m string", "l item:3 list<string>", "n item:2 int64", "a item:1 string", "id result_id int64"}, `"q" · ["x" "y"] · 5 · "a" · 7`},
		"renamed":   {[]string{"key result_id int64", "b item:1 string", "n item:2 int64", "l item:3 list<string>", "a meta:m string"}, `7 · "a" · 5 · ["x" "y"] · "q"`},
		"widened": {
			[]string{"id result_id int64", "a item:1 string", "n item:2 int64", "l item:3 list<string>", "m meta:m string", "x item:8 list<int64>", "d item:9 decimal(5,2)", "t meta:t timestamp", "b item:10 bool"},
			`7 · "a" · 5 · ["x" "y"] · "q" · ∅ · ∅ · ∅ · ∅`,
		},
	} {
		got, err := conformed(t, base, schemas.ArrowSchema(schema(t, tt.target...).Columns))
		if err != nil || !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestConformErrors(t *testing.T) {
	base := schema(t, "id result_id int64", "a item:1 string", "n item:2 int64", "l item:3 list<string>", "m meta:m string")
	for _, tt := range []struct {
		target []string
		want   string
	}{
		{[]string{"id result_id int64", "a item:1 string", "n item:2 float64", "l item:3 list<string>", "m meta:m string"}, `column "n" (from item:2) is int64 in the batch and float64 in the schema`},
		{[]string{"id result_id int64", "a item:1 string", "n item:2 int64", "l item:3 list<int64>", "m meta:m string"}, `column "l" (from item:3)`},
		{[]string{"id result_id int64", "a item:1 string", "n item:2 int64", "l item:3 list<string>"}, "the schema lacks a column of the batch: meta:m"},
	} {
		if got, err := conformed(t, base, schemas.ArrowSchema(schema(t, tt.target...).Columns)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %q, %v", tt.target, got, err)
		}
	}
}

func TestConformNeedsSources(t *testing.T) {
	named := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	f := schemas.ArrowSchema(schema(t, "id result_id int64").Columns).Field(0)
	twice := arrow.NewSchema([]arrow.Field{f, f}, nil)
	start(t, schema(t, "id result_id int64"), func(o *Options) {
		o.Emit = func(b arrow.RecordBatch) error {
			for _, s := range []*arrow.Schema{named, twice} {
				columns := slices.Repeat([]arrow.Array{b.Column(0)}, s.NumFields())
				bad := array.NewRecordBatch(s, columns, b.NumRows())
				defer bad.Release()
				if got, err := Conform(bad, b.Schema(), nil); err == nil {
					t.Errorf("%v conforms: %v", s, got)
				}
			}
			return nil
		}
	}).feed(t, new(answer).result(1).page(t))
}

// TestNarrow: columns that the target lacks go, the others stay in the batch's order. A result id
// may be a string.
func TestNarrow(t *testing.T) {
	target := schemas.ArrowSchema(schema(t, "n item:2 int64", "key result_id string", "x item:8 string").Columns)
	r := start(t, schema(t, "id result_id string", "a item:1 string", "n item:2 int64"))
	emit := r.o.Emit
	r.o.Emit = func(b arrow.RecordBatch) error {
		narrow := Narrow(b, target)
		defer narrow.Release()
		return emit(narrow)
	}
	r.feed(t, new(answer).result(7, "item:1=a", "item:2=5").result(12).page(t))
	r.wantRows(t, `"7" · 5`, `"12" · ∅`)
}

// TestEmitFails: an error of Emit ends the page, where a batch is full as where a column is added.
func TestEmitFails(t *testing.T) {
	failed := errors.New("the disk is full")
	for rows, next := range map[int]string{1: "item:1=b", 9: "item:2=new"} {
		r := start(t, schema(t, "id result_id int64", "a item:1 string"), func(o *Options) {
			o.BatchRows, o.Emit = rows, func(arrow.RecordBatch) error { return failed }
		})
		if err := errors.Join(r.Append(new(answer).result(1, "item:1=a").page(t)), r.Append(new(answer).result(2, next).page(t))); !errors.Is(err, failed) {
			t.Errorf("%d rows a batch: %v", rows, err)
		}
	}
}
