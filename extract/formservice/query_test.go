package formservice

import (
	"slices"
	"strings"
	"testing"
)

func TestParseQuery(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want []pair
		err  string
	}{
		{"", nil, ""},
		{"a=1&b=2", []pair{{"a", "1"}, {"b", "2"}}, ""},
		{"a", []pair{{"a", ""}}, ""},
		{"a=b=c", []pair{{"a", "b=c"}}, ""},
		{"a=%20%2B%26", []pair{{"a", " +&"}}, ""},
		{"%61=%C3%A9", []pair{{"a", "é"}}, ""},
		{"a=1:2/3?4;5", []pair{{"a", "1:2/3?4;5"}}, ""},
		{"a=1+2&b=3", []pair{{"b", "3"}}, "raw +"},
		{"a=1&a=2", []pair{{"a", "1"}}, "a is given twice"},
		{"a=1&%61=2", []pair{{"a", "1"}}, "a is given twice"},
		{"a=1&&b=2", []pair{{"a", "1"}, {"b", "2"}}, "no name"},
		{"=1", nil, "no name"},
		{"a=%2", nil, "hexadecimal"},
		{"a=%", nil, "hexadecimal"},
		{"a=%g0", nil, "hexadecimal"},
		{"a=%FF", nil, "not UTF-8"},
		{"a=é", nil, "unencoded"},
		{"a=[1]", nil, "unencoded"},
		{"a b=1", nil, "unencoded"},
	} {
		got, err := parseQuery(c.raw)
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
