package schemas_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
)

// listColumn is a list whose choices are columns.
func listColumn(name string, choices ...string) schemas.Column {
	return schemas.Column{
		Name: name, From: schemas.Source{Kind: schemas.FromItem, ID: name}, ListAs: schemas.ListColumns, Choices: choices,
		Type: schemas.Type{Kind: schemas.List, Elem: &schemas.Type{Kind: schemas.String}},
	}
}

func TestChoiceNames(t *testing.T) {
	long := strings.Repeat("x", 60)
	plain := func(name string) schemas.Column {
		return schemas.Column{Name: name, From: schemas.Source{Kind: schemas.FromMeta, ID: name}, Type: schemas.Type{Kind: schemas.String}}
	}
	for _, c := range []struct {
		columns []schemas.Column
		want    [][]string
	}{
		{[]schemas.Column{plain("a")}, [][]string{nil}},
		{[]schemas.Column{listColumn("c", "Red", "light green", "Grün", "18-25", "красный")}, [][]string{{"c__red", "c__light_green", "c__grun", "c__18_25", "c__krasnyi"}}},
		{[]schemas.Column{listColumn("c", "red", "Red", "RED!", "red 2")}, [][]string{{"c__red", "c__red_2", "c__red_3", "c__red_2_2"}}},
		{[]schemas.Column{listColumn("c", "", "?", "…!")}, [][]string{{"c__choice", "c__choice_2", "c__choice_3"}}},
		{[]schemas.Column{listColumn("c", "red"), plain("C__red")}, [][]string{{"c__red_2"}, nil}},
		{[]schemas.Column{listColumn("c", "x"), listColumn("c_", "x"), listColumn("c__x", "x")}, [][]string{{"c__x_2"}, {"c___x"}, {"c__x__x"}}},
		{[]schemas.Column{listColumn(long, "ab", "abc"), listColumn(long+"y", "ab")}, [][]string{
			{strings.Repeat("x", 53) + "_he1f38cb4", strings.Repeat("x", 53) + "_h"}, {strings.Repeat("x", 53) + "_h"},
		}},
	} {
		got := schemas.ChoiceNames(c.columns)
		if len(got) != len(c.want) {
			t.Fatalf("%d lists", len(got))
		}
		for i := range got {
			for k := range got[i] {
				// A hash differs, and is not spelt out here.
				if at := strings.LastIndex(got[i][k], "_h"); len(got[i][k]) == schemas.MaxName && at == schemas.MaxName-10 {
					got[i][k], c.want[i][k] = got[i][k][:at], c.want[i][k][:at]
				}
			}
			if !reflect.DeepEqual(got[i], c.want[i]) {
				t.Errorf("column %d: %q, want %q", i, got[i], c.want[i])
			}
		}
	}
}

// FuzzChoiceNames: names are unique, within their bounds, and those that are
// there do not change when choices follow.
func FuzzChoiceNames(f *testing.F) {
	f.Add("colours", "other", "red", "Red", "x")
	f.Add("c", "c__red", "red", "", "\xff")
	f.Add(strings.Repeat("ж", 31), "a", strings.Repeat("長", 90), strings.Repeat("長", 91), "2")
	f.Fuzz(func(t *testing.T, name, other, a, b, c string) {
		if name == "" || other == "" || strings.EqualFold(name, other) || len(name) > schemas.MaxName || len(other) > schemas.MaxName {
			return
		}
		before := []schemas.Column{listColumn(name, a), listColumn(other, c)}
		after := []schemas.Column{listColumn(name, a, b, c), listColumn(other, c, a)}
		names, more := schemas.ChoiceNames(before), schemas.ChoiceNames(after)
		taken := map[string]bool{strings.ToLower(name): true, strings.ToLower(other): true}
		for i := range after {
			for _, n := range more[i] {
				if taken[strings.ToLower(n)] || len(n) > schemas.MaxName {
					t.Errorf("the name %q of %q is taken, or too long", n, after[i].Choices)
				}
				taken[strings.ToLower(n)] = true
			}
			if names[i][0] != more[i][0] {
				t.Errorf("%q became %q", names[i][0], more[i][0])
			}
		}
	})
}

func TestArrowFieldsSayHowListsAreShown(t *testing.T) {
	columns := []schemas.Column{listColumn("c", "red", `"a"`), listColumn("j"), listColumn("p")}
	columns[1].ListAs, columns[2].ListAs = schemas.ListJSON, schemas.ListJoined
	s := schemas.ArrowSchema(columns)
	pairs, _ := s.Field(0).Metadata.GetValue(schemas.MetaChoices)
	var got [][2]string
	if err := json.Unmarshal([]byte(pairs), &got); err != nil || !reflect.DeepEqual(got, [][2]string{{"red", "c__red"}, {`"a"`, "c__a"}}) {
		t.Errorf("choices %s", pairs)
	}
	for i, want := range []string{"columns", "json", ""} {
		if as, _ := s.Field(i).Metadata.GetValue(schemas.MetaListAs); as != want {
			t.Errorf("column %d is shown as %q, want %q", i, as, want)
		}
	}
	if f := schemas.ArrowSchema(columns[2:3]).Field(0); f.Metadata.Len() != 1 {
		t.Errorf("a joined list says %v", f.Metadata)
	}
}
