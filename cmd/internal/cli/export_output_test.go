package cli

import (
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
)

func TestFormatOf(t *testing.T) {
	for _, c := range []struct{ file, flag, format, codec, problem string }{
		{"a.csv", "", "csv", "", ""},
		{"a.csv.gz", "", "csv", "gzip", ""},
		{"a.ndjson.zst", "", "ndjson", "zstd", ""},
		{"a.json", "json", "json", "", ""},
		{"a.txt", "csv", "csv", "", ""},
		{"a.txt.gz", "csv", "csv", "gzip", ""},
		{"a.gz", "ndjson", "ndjson", "gzip", ""},
		{"a.parquet", "", "parquet", "", ""},
		{"a.arrow", "", "arrow", "", ""},
		{"a.tsv", "", "tsv", "", ""},
		{"a.jsonl", "", "ndjson", "", ""},
		{"a.JSONL.GZ", "", "ndjson", "gzip", ""},
		{"A.CSV", "", "csv", "", ""},
		{"a.Parquet", "parquet", "parquet", "", ""},
		{"a.xlsx", "", "xlsx", "", ""},
		{"a.xlsx.gz", "", "", "", "compressed already"},
		{"a", "", "", "", "does not say the format"},
		{"a.gz", "", "", "", "does not say the format"},
		{"a.csv", "json", "", "", "has the extension of csv"},
		{"a.parquet.gz", "", "", "", "compressed already"},
		{"a.gz", "arrow", "", "", "compressed already"},
	} {
		format, codec, err := formatOf(c.file, c.flag)
		wrong := c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem))
		if format != c.format || codec != c.codec || wrong {
			t.Errorf("%s, --format %s: %q %q %v", c.file, c.flag, format, codec, err)
		}
	}
}

// TestSourceOf: before the first result, which shows the metas, a column that has the name of one
// is not taken for it. A label of several columns is told with their names.
func TestSourceOf(t *testing.T) {
	item := schemas.Column{Name: "result_status", From: schemas.Source{Kind: schemas.FromItem, ID: "7"}}
	meta := schemas.Source{Kind: schemas.FromMeta, ID: "result_status"}
	known := []schemas.Column{{Name: "result_id", From: schemas.Source{Kind: schemas.FromResultID}}, item}
	if got, err := sourceOf("--where", "result_status", known); err != nil || got != meta {
		t.Errorf("%v, %v", got, err)
	}
	known[1].Name = "status"
	if got, err := sourceOf("--where", "status", known); err != nil || got != item.From {
		t.Errorf("%v, %v", got, err)
	}
	known[0].Label, known[1].Label = "Both", "Both"
	if _, err := sourceOf("--where", "Both", known); err == nil || !strings.HasSuffix(err.Error(), "give the one you mean, result_id or status") {
		t.Error(err)
	}
}
