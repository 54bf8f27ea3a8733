package schemas

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func mustType(t *testing.T, text string) Type {
	t.Helper()
	got, err := ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func mustSource(t *testing.T, text string) Source {
	t.Helper()
	got, err := ParseSource(text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// columns makes columns of "name from type" lines.
func columns(t *testing.T, lines ...string) []Column {
	t.Helper()
	out := make([]Column, 0, len(lines))
	for _, line := range lines {
		part := strings.Fields(line)
		out = append(out, Column{Name: part[0], From: mustSource(t, part[1]), Type: mustType(t, part[2])})
	}
	return out
}

func TestSchemaArrow(t *testing.T) {
	s := Schema{Columns: columns(t, "id result_id int64", "price item:4 decimal(12,2)", "colours item:206 list<string>")}
	s.Columns[1].Label = "Price\nin EUR "
	got := ArrowSchema(s.Columns)
	if got.NumFields() != 3 {
		t.Fatalf("%d fields", got.NumFields())
	}
	for i, want := range []struct {
		name, from, label string
		t                 arrow.DataType
	}{
		{"id", "result_id", "", arrow.PrimitiveTypes.Int64},
		{"price", "item:4", "Price\nin EUR ", &arrow.Decimal128Type{Precision: 12, Scale: 2}},
		{"colours", "item:206", "", s.Columns[2].Type.Arrow()},
	} {
		f := got.Field(i)
		from, _ := f.Metadata.GetValue("formetl.from")
		label, hasLabel := f.Metadata.GetValue("formetl.label")
		if f.Name != want.name || from != want.from || label != want.label || hasLabel != (want.label != "") || !arrow.TypeEqual(f.Type, want.t) || !f.Nullable {
			t.Errorf("field %d is %v", i, f)
		}
	}
	if i := s.Find(mustSource(t, "item:206")); i != 2 {
		t.Errorf("Find(item:206) = %d", i)
	}
	if i := s.Find(mustSource(t, "meta:206")); i != -1 {
		t.Errorf("Find(meta:206) = %d", i)
	}
}

func TestValidateAccepts(t *testing.T) {
	for _, s := range []Schema{
		{},
		{Columns: columns(t, "id result_id int64", "text_id meta:result_id string", "a item:1 list<date>")},
		{Columns: columns(t, "id result_id string"), Unknown: UnknownFail, Empty: EmptyAsNull, MaxRejects: 3},
		{Columns: []Column{{Name: "Größe in cm", From: Source{FromItem, "1"}, Type: Type{Kind: Float64}, OnError: OnErrorSetNull}}, Unknown: UnknownIgnore},
	} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestValidateProblems(t *testing.T) {
	one := func(c Column) Schema { return Schema{Columns: []Column{c}} }
	good := columns(t, "a item:1 string")[0]
	change := func(f func(*Column)) Schema {
		c := good
		f(&c)
		return one(c)
	}
	for name, tt := range map[string]struct {
		s    Schema
		want []string
	}{
		"same name": {Schema{Columns: columns(t, "a item:1 string", "a item:2 string")}, []string{
			`columns[1].name: the column from item:1 has the name "a" too; give one of them another name`,
		}},
		"name in another case": {Schema{Columns: columns(t, "a item:1 string", "b item:2 string", "A item:3 string")}, []string{
			`columns[2].name: the name "A" differs from "a" (the column from item:1) only in upper and lower case, which DuckDB and most warehouses ignore; change one of them`,
		}},
		"same source": {Schema{Columns: columns(t, "a item:1 string", "b item:1 string")}, []string{
			`columns[1].from: column "a" has the source item:1 already; leave one of the two columns out`,
		}},
		"no name": {change(func(c *Column) { c.Name = "" }), []string{"columns[0].name: a column needs a name"}},
		"no source": {change(func(c *Column) { c.From = Source{} }), []string{
			"columns[0].from: write the source of the column's values: result_id, meta:ID, item:ID or other:ID",
		}},
		"no id": {change(func(c *Column) { c.From.ID = "" }), []string{
			`columns[0].from: source "item:" needs an id after the colon, for example "item:1"`,
		}},
		"no type": {change(func(c *Column) { c.Type = Type{} }), []string{
			"columns[0].type: a type is required: string, int64, float64, bool, date, timestamp, decimal(p,s) or list<T>",
		}},
		"result id as list": {Schema{Columns: columns(t, "id result_id list<int64>")}, []string{
			"columns[0].type: the result's id is a whole number; use the type int64 or string, not list<int64>",
		}},
		"result id as date": {Schema{Columns: columns(t, "id result_id date")}, []string{
			"columns[0].type: the result's id is a whole number; use the type int64 or string, not date",
		}},
		"rule": {change(func(c *Column) { c.OnError = "rejct" }), []string{
			`columns[0].on_error: unknown value "rejct"; use one of fail, reject, set_null`,
		}},
		"schema rules": {Schema{Unknown: "allow", Empty: "null", MaxRejects: -1}, []string{
			`unknown: unknown value "allow"; use one of add, ignore, fail`,
			`empty: unknown value "null"; use one of keep, as_null`,
			`max_rejects: must be 0 or more, not -1`,
		}},
		"nothing to write": {Schema{Unknown: UnknownIgnore}, []string{
			`columns: there is nothing to write (no columns, and unknown: ignore); list columns, or set unknown: add`,
		}},
		"all are told, in order": {Schema{Columns: []Column{{}, {Name: "x", From: Source{FromMeta, "y"}, Type: Type{Kind: List}}}}, []string{
			"columns[0].name: a column needs a name",
			"columns[0].from: write the source of the column's values: result_id, meta:ID, item:ID or other:ID",
			"columns[0].type: a type is required: string, int64, float64, bool, date, timestamp, decimal(p,s) or list<T>",
			"columns[1].type: list needs the type of its elements, such as list<string>",
		}},
	} {
		err := tt.s.Validate()
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := make([]string, 0, len(invalid.Problems))
		for _, p := range invalid.Problems {
			got = append(got, p.Error())
		}
		if !slices.Equal(got, tt.want) || err.Error() != strings.Join(tt.want, "\n") {
			t.Errorf("%s:\n%s\nwant:\n%s", name, err, strings.Join(tt.want, "\n"))
		}
	}
}
