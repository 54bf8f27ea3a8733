package v1

import (
	"net/url"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
)

// FuzzQuery reads queries back with net/url.
func FuzzQuery(f *testing.F) {
	f.Add("fs_view", "11", "fs_secure")
	f.Add("fs_search_equals_353-0-0", "a b+c&d=e%;", "fs_search_empty_ü")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, name, value, bare string) {
		if name == bare {
			return
		}
		query := encode([]parameter{{name: name, value: value}, {name: bare, bare: true}})
		if strings.ContainsAny(query, "+ ;") {
			t.Errorf("query %q", query)
		}
		got, err := url.ParseQuery(query)
		if err != nil || got.Get(name) != value {
			t.Errorf("query %q: %q, %v", query, got, err)
		}
		if !got.Has(bare) && bare != "" {
			t.Errorf("query %q lacks %q", query, bare)
		}
	})
}

// TestQueryNames checks for any set of parameters that no name comes twice.
func TestQueryNames(t *testing.T) {
	q := extract.ResultsQuery{Search: extract.Search{Where: []extract.Criterion{
		{Column: "1", Operator: extract.OpEquals, Term: "a"}, {Column: "1", Operator: extract.OpContains, Term: "b"}, {Column: "1", Operator: extract.OpBegins, Term: "c"}, {Column: "1", Operator: extract.OpEnds, Term: "d"}, {Column: "1", Operator: extract.OpEmpty, Term: ""}, {Column: "1", Operator: extract.OpNotEmpty, Term: ""}, {Column: "2", Operator: extract.OpEquals, Term: "a"},
	}}}
	query := encode(resultsParameters(q))
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
