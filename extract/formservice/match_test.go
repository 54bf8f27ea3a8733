package formservice

import (
	"testing"
)

func TestConditionHolds(t *testing.T) {
	r := Result{
		Metas: []Meta{{"status", "Complete"}, {"note", ""}},
		Items: []Answer{
			{ID: "1", Values: []string{"Grün & Blau"}},
			{ID: "2", Values: []string{"red", "blue", ""}},
			{ID: "3", Values: []string{""}},
			{ID: "4"},
			{ID: "5", Values: []string{"a"}},
			{ID: "5", Values: []string{"b"}},
		},
	}
	for _, c := range []struct {
		column   string
		operator Operator
		term     string
		want     bool
	}{
		{"status", Equals, "Complete", true},
		{"status", Equals, "complete", false},
		{"status", Equals, "Comp", false},
		{"status", Begins, "Comp", true},
		{"status", Ends, "lete", true},
		{"status", Contains, "mpl", true},
		{"status", Contains, "", true},
		{"status", Empty, "", false},
		{"status", NotEmpty, "ignored", true},
		{"note", Empty, "ignored", true},
		{"note", NotEmpty, "", false},
		{"note", Equals, "", true},
		{"1", Contains, "ün &", true},
		{"1", Begins, "grün", false},
		{"2", Equals, "blue", true},
		{"2", Equals, "red|blue", false},
		{"2", Begins, "r", true},
		{"2", Ends, "lue", true},
		{"2", Empty, "", false},
		{"2", NotEmpty, "", true},
		{"3", Empty, "", true},
		{"3", Equals, "", true},
		{"4", Empty, "", true},
		{"4", NotEmpty, "", false},
		{"4", Equals, "", true},
		{"4", Equals, "x", false},
		{"5", Equals, "a", true},
		{"5", Equals, "b", true},
		{"5", Contains, "ab", false},
		{"6", Empty, "", true},
		{"6", NotEmpty, "", false},
		{"6", Begins, "", true},
		{"6", Contains, "x", false},
		{"1", "unknown", "x", false},
	} {
		if got := (Condition{c.column, c.operator, c.term}).Holds(r); got != c.want {
			t.Errorf("%s %s %q: %v, want %v", c.column, c.operator, c.term, got, c.want)
		}
	}
}

func TestAccepts(t *testing.T) {
	r := Result{Metas: []Meta{{"a", "1"}, {"b", "2"}}}
	yes, no := Condition{"a", Equals, "1"}, Condition{"b", Equals, "1"}
	for _, c := range []struct {
		view, where []Condition
		any         bool
		want        bool
	}{
		{nil, nil, false, true},
		{nil, nil, true, true},
		{nil, []Condition{yes, yes}, false, true},
		{nil, []Condition{yes, no}, false, false},
		{nil, []Condition{no, yes}, true, true},
		{nil, []Condition{no, no}, true, false},
		{[]Condition{no}, nil, false, false},
		{[]Condition{yes}, []Condition{no}, false, false},
		{[]Condition{no}, []Condition{yes}, true, false},
		{[]Condition{yes}, []Condition{no, yes}, true, true},
	} {
		q := resultsQuery{any: c.any, view: View{Where: c.view}}
		for _, condition := range c.where {
			q.where = append(q.where, condition.Holds)
		}
		if got := q.accepts(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if got := q.filters(); got != (len(c.view)+len(c.where) > 0) {
			t.Errorf("%+v: filters is %v", c, got)
		}
	}
}
