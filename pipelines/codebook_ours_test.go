package pipelines_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/formetl/formetl/pipelines/definition"
)

// TestCodebookLeavesOthersFilesAlone: a file in its place that is not formetl's
// stays, and so does what lies beside it; log and report say what to do.
func TestCodebookLeavesOthersFilesAlone(t *testing.T) {
	w := newWorld(t, someSurvey())
	def := w.daily(
		definition.Output{Path: "out/form1.csv", Format: "csv"},
		definition.Output{Path: "lake/form1/", Format: "ndjson", Partition: definition.PartitionDay},
	)
	w.run(def)
	ours := map[string]string{"schema.json": w.read("lake/form1.schema.json"), "codebook.csv": w.read("lake/form1.codebook.csv")}
	for i, c := range []struct{ name, data string }{
		{"schema.json", `{"mine": true}`},
		{"schema.json", `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}`},
		{"schema.json", `{"version": 1, "name": "form1", "columns": [{"name": "id", "from": "result_id", "type": "int64"}]}`}, // a schema file
		{"schema.json", `[1, 2]`},
		{"schema.json", "half of {\n  \"version\": 1,\n  \"pipeline\": \"x"},
		{"codebook.csv", "column,type\nid,int64\n"},
		{"codebook.csv", "my own notes"},
	} {
		stem := []string{"out/form1", "lake/form1"}[i%2]
		w.put(stem+"."+c.name, c.data)
		before := tree(t, w.dir)
		var log bytes.Buffer
		o := options()
		o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		report := w.runBy(def, o)
		for _, out := range report.Forms[0].Outputs {
			at := strings.Contains(out.Path, w.path(stem))
			if at != strings.Contains(out.CompanionsError, w.path(stem)+"."+c.name+" is there, and is not a codebook that formetl wrote") || out.Error != "" {
				t.Errorf("%s in %s.%s: the report of %s says %q, %q", c.data, stem, c.name, out.Path, out.CompanionsError, out.Error)
			}
		}
		if n := strings.Count(log.String(), "codebook: false in the output"); n != 1 {
			t.Errorf("%s in %s.%s: %d hints in %s", c.data, stem, c.name, n, log.String())
		}
		after := tree(t, w.dir)
		for name := range ours {
			if after[stem+"."+name] != before[stem+"."+name] {
				t.Errorf("%s in %s.%s: %s was replaced", c.data, stem, c.name, name)
			}
		}
		w.put(stem+"."+c.name, ours[c.name])
	}
}

func (w *world) put(name, data string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(data), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// TestCodebookReplacesItsOwn, also where it was cut short.
func TestCodebookReplacesItsOwn(t *testing.T) {
	w := newWorld(t, someSurvey())
	def := w.definition(definition.Output{Path: "out/form1.csv", Format: "csv"})
	w.run(def)
	schema, table := w.read("out/form1.schema.json"), w.read("out/form1.codebook.csv")
	for _, c := range []struct{ name, data string }{
		{"schema.json", ""},
		{"schema.json", "\n"},
		{"schema.json", schema[:len(schema)/2]},
		{"schema.json", schema[:60]},
		{"codebook.csv", ""},
		{"codebook.csv", table[:60]},
	} {
		w.put("out/form1."+c.name, c.data)
		report := w.run(def)
		if e := report.Forms[0].Outputs[0].CompanionsError; e != "" || w.read("out/form1.schema.json") != schema || w.read("out/form1.codebook.csv") != table {
			t.Errorf("%q in %s was not replaced: %s", c.data, c.name, e)
		}
	}
}
