package pipelines_test

import (
	"testing"

	"github.com/formetl/formetl/extract"
)

// TestSearchesAreEqualInAnyOrder of their criteria.
func TestSearchesAreEqualInAnyOrder(t *testing.T) {
	a := extract.Criterion{Column: "1", Operator: extract.OpContains, Term: `x "y"`}
	b := extract.Criterion{Column: "12", Operator: extract.OpNotEmpty}
	one, two := extract.Search{Where: []extract.Criterion{a, b}}, extract.Search{Where: []extract.Criterion{b, a}}
	if one.String() != two.String() || one.String() != `1 contains "x \"y\"" and 12 not_empty` {
		t.Errorf("%s, %s", one, two)
	}
	two.Any = true
	if one.String() == two.String() || (extract.Search{}).String() != "" {
		t.Errorf("%s, %s", one, two)
	}
}
