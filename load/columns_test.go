package load_test

import (
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
)

// TestColumnsDigest tells names, types and order apart, and nothing else.
func TestColumnsDigest(t *testing.T) {
	a, b := load.Column{Name: "a", Type: "int64", From: "item:1"}, load.Column{Name: "b", Type: "string", From: "item:2"}
	labelled := a
	labelled.Label, labelled.From = "A", "item:7"
	other := a
	other.Type = "string"
	digest := load.ColumnsDigest([]load.Column{a, b})
	if len(digest) != 16 || digest != load.ColumnsDigest([]load.Column{labelled, b}) {
		t.Errorf("got %q", digest)
	}
	for _, columns := range [][]load.Column{{b, a}, {a}, {a, b, b}, {other, b}, {{Name: "ab", Type: "int64"}, b}, nil} {
		if load.ColumnsDigest(columns) == digest {
			t.Errorf("%v has the digest of others", columns)
		}
	}
	broken, whole := load.Column{Name: "a\xff", Type: "int64"}, load.Column{Name: "a\uFFFD", Type: "int64"}
	if load.ColumnsDigest([]load.Column{broken}) != load.ColumnsDigest([]load.Column{whole}) {
		t.Error("a digest is not that of the names that the manifest has")
	}
}

// TestLeadingColumns finds the columns that a part has of a manifest's.
func TestLeadingColumns(t *testing.T) {
	a, b, c := load.Column{Name: "a", Type: "int64"}, load.Column{Name: "b", Type: "string"}, load.Column{Name: "c", Type: "date"}
	leading := load.LeadingColumns([]load.Column{a, b, c})
	for _, x := range []struct {
		part []load.Column
		want int
	}{
		{[]load.Column{a}, 1},
		{[]load.Column{a, b}, 2},
		{[]load.Column{a, b, c}, 3},
		{[]load.Column{a, c}, 0},
		{[]load.Column{b, a, c}, 0},
		{[]load.Column{a, b, c, a}, 0},
	} {
		if got := leading[load.ColumnsDigest(x.part)]; got != x.want {
			t.Errorf("%v: %d, want %d", x.part, got, x.want)
		}
	}
}

// TestPartsKeepTheirColumns through JSON. A part whose bytes came out as they were gets
// the new ones, which may differ in their types.
func TestPartsKeepTheirColumns(t *testing.T) {
	const is, was = "0123456789abcdef", "fedcba9876543210"
	part := load.Part{Path: "part-a.csv", SHA256: strings.Repeat("a", 64), Columns: is}
	m := load.Manifest{Format: "csv", RunID: "r", Parts: []load.Part{part}}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := load.DecodeManifest(data)
	if err != nil || again.Parts[0].Columns != is {
		t.Errorf("got %+v (%v)", again, err)
	}
	for _, bad := range []string{"0123", "0123456789ABCDEF", strings.Repeat("0", 64)} {
		if _, err := load.DecodeManifest([]byte(strings.Replace(string(data), is, bad, 1))); err == nil || !strings.Contains(err.Error(), "columns without a digest") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	old, fresh := part, part
	old.Columns, fresh.Path = was, "part-b.csv"
	r := load.ReuseParts([]load.Part{old}, []load.PreparedPart{{Part: fresh}})
	if len(r.Parts) != 1 || r.Parts[0].Path != old.Path || r.Parts[0].Columns != is {
		t.Errorf("got %+v", r.Parts)
	}
}
