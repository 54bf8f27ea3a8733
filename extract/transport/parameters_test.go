package transport_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/transport"
)

// FuzzQuery reads queries back with net/url.
func FuzzQuery(f *testing.F) {
	f.Add("fs_view", "11", "fs_secure")
	f.Add("fs_search_equals_353-0-0", "a b+c&d=e%;", "fs_search_empty_ü")
	f.Add("search_equals[100]", "a b+c&d=e%;", "")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, name, value, bare string) {
		if name == bare {
			return
		}
		query := transport.Parameters{{Name: name, Value: value}, {Name: bare, Bare: true}}.Query()
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
