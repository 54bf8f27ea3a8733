package formservice

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseQuery(t *testing.T) {
	for _, c := range []struct {
		raw   string
		loose bool
		want  []pair
		err   string
	}{
		{"", false, nil, ""},
		{"a=1&b=2", false, []pair{{"a", "1"}, {"b", "2"}}, ""},
		{"a", false, []pair{{"a", ""}}, ""},
		{"a=b=c", false, []pair{{"a", "b=c"}}, ""},
		{"a=%20%2B%26", false, []pair{{"a", " +&"}}, ""},
		{"%61=%C3%A9", false, []pair{{"a", "é"}}, ""},
		{"a=1:2/3?4;5", false, []pair{{"a", "1:2/3?4;5"}}, ""},
		{"a=1+2", true, []pair{{"a", "1+2"}}, ""},
		{"a=1+2&b=3", false, []pair{{"b", "3"}}, "raw +"},
		{"a=1&a=2", true, []pair{{"a", "1"}}, "a is given twice"},
		{"a=1&%61=2", false, []pair{{"a", "1"}}, "a is given twice"},
		{"a=1&&b=2", false, []pair{{"a", "1"}, {"b", "2"}}, "no name"},
		{"=1", false, nil, "no name"},
		{"a=%2", false, nil, "hexadecimal"},
		{"a=%", false, nil, "hexadecimal"},
		{"a=%g0", false, nil, "hexadecimal"},
		{"a=%FF", false, nil, "not UTF-8"},
		{"a=é", false, nil, "unencoded"},
		{"a=[1]", false, nil, "unencoded"},
		{"a b=1", false, nil, "unencoded"},
	} {
		got, err := parseQuery(c.raw, c.loose)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.raw, got, c.want)
		}
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: error %v, want %q", c.raw, err, c.err)
		}
	}
}

// keyless leaves out the key of API v1.
func keyless(raw string) string { return new(Server).logged(V1, raw) }

func TestWithout(t *testing.T) {
	for raw, want := range map[string]string{
		"":                             "",
		"fs_api_key=k":                 "",
		"fs_api_key=k&a=1":             "a=1",
		"a=1&fs%5Fapi_key=k&b=%20":     "a=1&b=%20",
		"a=%zz&fs_api_key=k+k":         "a=%zz",
		"fs_api_key=k&fs_api_key=k&&b": "b",
	} {
		if got := keyless(raw); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

// FuzzParseQuery holds the parser to net/url: what the strict parser accepts,
// net/url reads the same way, and what was encoded comes back.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{
		"", "a=1", "a=1&b=%20", "a=%2B&a=", "fs_search_equals_1=%C3%A9&fs_limit", "a=%", "a=b+c", "&&", "=", "a;b=c", "%00=%FF",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		pairs, err := parseQuery(raw, false)
		seen := map[string]bool{}
		for _, p := range pairs {
			if p.name == "" || seen[p.name] || !utf8.ValidString(p.name+p.value) {
				t.Fatalf("%q: pair %q", raw, p)
			}
			seen[p.name] = true
		}
		if strings.Contains(keyless(raw+"&fs_api_key=canary"), "canary") && !strings.Contains(raw, "canary") {
			t.Fatalf("%q: the key is left", raw)
		}
		if err != nil {
			return
		}
		if strings.Contains(raw, ";") {
			return // net/url refuses it
		}
		values, err := url.ParseQuery(raw)
		if err != nil || len(values) != len(pairs) {
			t.Fatalf("%q: net/url reads %v (%v), we %q", raw, values, err, pairs)
		}
		for _, p := range pairs {
			if values.Get(p.name) != p.value {
				t.Fatalf("%q: %s is %q, net/url reads %q", raw, p.name, p.value, values.Get(p.name))
			}
		}
	})
}
