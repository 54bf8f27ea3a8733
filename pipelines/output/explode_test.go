package output

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// TestExplosion gives elements with nulls, in slices, of ids of both types.
func TestExplosion(t *testing.T) {
	list := schemas.Source{Kind: schemas.FromItem, ID: "1"}
	elem := schemas.Type{Kind: schemas.Int64}
	for _, id := range []schemas.Type{{Kind: schemas.Int64}, {Kind: schemas.String}} {
		columns := []schemas.Column{
			{Name: "l", From: list, Type: schemas.Type{Kind: schemas.List, Elem: &elem}},
			{Name: "position", From: schemas.Source{Kind: schemas.FromResultID}, Type: id},
		}
		child, err := ChildColumns(columns, list)
		if err != nil {
			t.Fatal(err)
		}
		if child[1].Name != "position_2" {
			t.Errorf("the position is named %s beside an id of that name", child[1].Name)
		}
		b := listBatch(columns, false)
		defer b.Release()
		x, err := newExplosion(b, list, schemas.ArrowSchema(child))
		if err != nil {
			t.Fatal(err)
		}
		for most, wantSlices := range map[int]string{100: "6", 2: "2 3 1", 1: "0 2 3 1"} {
			var rows, slices []string
			err := x.each(most, func(b arrow.RecordBatch) error {
				slices = append(slices, fmt.Sprint(b.NumRows()))
				for row := range int(b.NumRows()) {
					rows = append(rows, b.Column(0).ValueStr(row)+" "+b.Column(1).ValueStr(row)+" "+b.Column(2).ValueStr(row))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"12 1 5", "12 2 (null)", "13 1 (null)", "13 2 6", "13 3 7", "16 1 8"}
			if !reflect.DeepEqual(rows, want) || strings.Join(slices, " ") != wantSlices {
				t.Errorf("at most %d: rows %q in slices %q, want %q in %q", most, rows, slices, want, wantSlices)
			}
		}
	}
}

// TestNullListsHoldNothing: an element that no row shows would give all later rows a wrong one.
func TestNullListsHoldNothing(t *testing.T) {
	list, elem := schemas.Source{Kind: schemas.FromItem, ID: "1"}, schemas.Type{Kind: schemas.Int64}
	columns := []schemas.Column{
		{Name: "l", From: list, Type: schemas.Type{Kind: schemas.List, Elem: &elem}},
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: elem},
	}
	b := listBatch(columns, true)
	defer b.Release()
	x, err := newExplosion(b, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.each(100, func(arrow.RecordBatch) error { return nil }); err == nil {
		t.Error("the elements of a null list are taken for those of another")
	}
}

// listBatch has seven results: 10 null, 11 empty, 12 and 13 with elements, 14
// null, which may hide an element, 15 empty, 16 with one.
func listBatch(columns []schemas.Column, hides bool) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schemas.ArrowSchema(columns))
	defer b.Release()
	l := b.Field(0).(*array.ListBuilder)
	values := l.ValueBuilder().(*array.Int64Builder)
	for row := range 7 {
		l.Append(row != 0 && row != 4)
		switch row {
		case 2:
			values.Append(5)
			values.AppendNull()
		case 3:
			values.AppendNull()
			values.AppendValues([]int64{6, 7}, nil)
		case 4:
			if hides {
				values.Append(99)
			}
		case 6:
			values.Append(8)
		}
		switch ids := b.Field(1).(type) {
		case *array.Int64Builder:
			ids.Append(int64(10 + row))
		case *array.StringBuilder:
			ids.Append(fmt.Sprint(10 + row))
		}
	}
	return b.NewRecordBatch()
}

// TestExplodeTwice changes nothing.
func TestExplodeTwice(t *testing.T) {
	elem := schemas.Type{Kind: schemas.String}
	def := &definition.Definition{
		Outputs: []definition.Output{{Path: "/a.csv", Format: "csv"}, {Path: "/b/", Format: "csv"}},
		Schema: &schemas.Schema{Columns: []schemas.Column{
			{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
			{Name: "c", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.List, Elem: &elem}, Explode: true},
		}},
	}
	for range 2 {
		if err := def.Explode(); err != nil {
			t.Fatal(err)
		}
		paths := make([]string, 0, len(def.Outputs))
		for _, out := range def.Outputs {
			paths = append(paths, out.Path)
		}
		if want := []string{"/a.csv", "/b/", "/a__c.csv", "/b__c/"}; !reflect.DeepEqual(paths, want) {
			t.Errorf("outputs %q, want %q", paths, want)
		}
	}
}
