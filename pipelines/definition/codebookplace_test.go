package definition

import (
	"fmt"
	"strings"
	"testing"
)

func TestCodebookPlaces(t *testing.T) {
	for _, c := range []struct{ template, expanded, root, stem string }{
		{"/out/{form}.csv", "/out/feedback.csv", "/out", "feedback"},
		{"/out/{form}.csv.gz", "/out/feedback.csv.gz", "/out", "feedback"},
		{"/out/f.CSV", "/out/f.CSV", "/out", "f"},
		{"/out/f.parquet", "/out/f.parquet", "/out", "f"},
		{"/out/f.ndjson.zst", "/out/f.ndjson.zst", "/out", "f"},
		{"/out/f.txt", "/out/f.txt", "/out", "f.txt"},                        // format: csv
		{"/out/f.csv.csv", "/out/f.csv.csv", "/out", "f.csv"},                // of a form f.csv
		{"/out/f.2026.csv", "/out/f.2026.csv", "/out", "f.2026"},             //
		{"/out/f.codebook.csv", "/out/f.codebook.csv", "/out", "f.codebook"}, //
		{"/out/.csv", "/out/.csv", "/out", ".csv"},                           // nothing would be left
		{"/f.csv", "/f.csv", "/", "f"},                                       //
		{"/lake/{form}/", "/lake/feedback/", "/lake", "feedback"},            //
		{"/lake/{form}/", "/lake/f.csv/", "/lake", "f.csv"},                  // a folder has no extension
		{"/lake/", "/lake/", "/", "lake"},                                    //
		{"s3://b/lake/{form}/", "s3://b/lake/f/", "s3://b/lake", "f"},        //
		{"s3://b/{form}/", "s3://b/f/", "s3://b", "f"},                       //
		{"s3://b/{form}.csv.gz", "s3://b/f.csv.gz", "s3://b", "f"},           //
		{"s3://b/", "s3://b/", "", ""},                                       // nothing lies beside a bucket
		{"/", "/", "", ""},                                                   //
		{StdoutPath, StdoutPath, "", ""},                                     //
	} {
		place, ok := CodebookPlaceOf(Output{Path: c.template}, c.expanded, testFormats())
		if want := (CodebookPlace{c.root, c.stem}); place != want || ok != (c.stem != "") {
			t.Errorf("%s: got %+v, %v, want %+v", c.expanded, place, ok, want)
		}
		if _, ok := CodebookPlaceOf(Output{Path: c.template, NoCodebook: true}, c.expanded, testFormats()); ok {
			t.Errorf("%s has a codebook that is turned off", c.expanded)
		}
	}
	for root, want := range map[string]string{
		"/":      "[/f.schema.json /f.codebook.csv]",
		"/out":   "[/out/f.schema.json /out/f.codebook.csv]",
		"s3://b": "[s3://b/f.schema.json s3://b/f.codebook.csv]",
	} {
		if got := fmt.Sprint(CodebookPlace{root, "f"}.Paths()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCodebookConflicts(t *testing.T) {
	for _, c := range []struct{ load, want string }{
		{"[{path: out/f.csv}, {path: out/f.parquet}, {path: out/f/, format: parquet}]", ""}, // they share one
		{"[{path: out/f.csv}, {path: out/f.schema.json}]", "load[0].path on line 8 would overwrite each other; give each"},
		{"[{path: out/f.codebook.csv}, {path: out/f/, format: csv}]", "load[0].path on line 8 would overwrite each other"},
		{"[{path: out/f.csv}, {path: out/f.schema.json/, format: csv}]", "would overwrite each other"},
		{"[{path: out/f.csv, codebook: false}, {path: out/f.schema.json}]", ""},
		{"[{path: out/f.csv, codebook: true}, {path: x/f.schema.json}]", ""},
		{"[{path: 's3://b/f/', format: csv}, {path: 's3://b/f.codebook.csv'}]", "would overwrite each other"},
		{"[{path: 'out/{form}.csv'}, {path: out/form1.codebook.csv}]", "would overwrite each other"},
		{"[{path: out/f.csv, codebook: no-thanks}]", "true or false is expected"},
	} {
		text := strings.Replace(minimal, "load:\n  - path: out.csv", "load: "+c.load, 1)
		def, err := Parse("p.yaml", []byte(text), testOptions())
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.load, err, c.want)
		case err == nil && def.Outputs[0].NoCodebook != strings.Contains(c.load, "codebook: false"):
			t.Errorf("%s: NoCodebook is %v", c.load, def.Outputs[0].NoCodebook)
		}
	}
}
