package v1

import (
	"net/url"
	"testing"

	"github.com/formetl/formetl/extract"
)

// TestQueryNames checks for any set of parameters that no name comes twice.
func TestQueryNames(t *testing.T) {
	q := extract.ResultsQuery{Search: extract.Search{Where: []extract.Criterion{
		{Column: "1", Operator: extract.OpEquals, Term: "a"}, {Column: "1", Operator: extract.OpContains, Term: "b"}, {Column: "1", Operator: extract.OpBegins, Term: "c"}, {Column: "1", Operator: extract.OpEnds, Term: "d"}, {Column: "1", Operator: extract.OpEmpty, Term: ""}, {Column: "1", Operator: extract.OpNotEmpty, Term: ""}, {Column: "2", Operator: extract.OpEquals, Term: "a"},
	}}}
	query := resultsParameters(q).Query()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range values {
		if len(v) != 1 {
			t.Errorf("%s comes %d times", name, len(v))
		}
	}
	if len(values) != 9 { // seven criteria, the method, the direction
		t.Errorf("%d parameters: %s", len(values), query)
	}
}
