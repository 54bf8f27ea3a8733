package pipelines_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// halfNumbers is a form of answers that are partly no numbers: one on the first
// day, all of the second day, none of the third, and the one without a date.
func halfNumbers() *formservice.Form {
	items := []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}
	return formservice.NewForm("form1", items, []formservice.Result{
		pipelinestest.Result(1, "2026-01-01 09:00:00", "1"), pipelinestest.Result(5, "2026-01-01 10:00:00", "five"),
		pipelinestest.Result(2, "2026-01-02 09:00:00", "two"), pipelinestest.Result(6, "2026-01-02 10:00:00", "six"),
		pipelinestest.Result(3, "2026-01-03 09:00:00", "3"), pipelinestest.Result(50, "", "fifty"),
	})
}

// partsOf describes the parts of a dataset: rows+rejects[smallest id-largest id].
func (w *world) partsOf(name string) string {
	w.t.Helper()
	m := readManifest(w.t, w.path(name+"/_manifest.json"))
	all := make([]string, 0, len(m.Parts))
	var sum int64
	for _, p := range m.Parts {
		day := "undated"
		if !p.Undated {
			day = p.To.AddDate(0, 0, -1).Format("02")
		}
		s := fmt.Sprintf("%s:%d+%d", day, p.Rows, p.Rejected)
		if p.Rows > 0 || p.IDs != "" || p.MinID != 0 || p.MaxID != 0 {
			s += fmt.Sprintf("[%d-%d]", p.MinID, p.MaxID)
		}
		if (p.IDs == "") != (p.Rows == 0) {
			w.t.Errorf("%s has ids %q", p.Path, p.IDs)
		}
		info, err := os.Stat(filepath.Join(w.path(name), filepath.FromSlash(p.Path)))
		if err != nil || info.Size() != p.Bytes {
			w.t.Errorf("%s: %v, %v", p.Path, info, err)
		}
		all, sum = append(all, s), sum+p.Rows+p.Rejected
	}
	if sum != m.Verified.Extracted && m.Range.From.IsZero() { // the run read the whole dataset
		w.t.Errorf("%s: the parts hold %d results, and %d were extracted", name, sum, m.Verified.Extracted)
	}
	return strings.Join(all, " ")
}

// TestPartsAccountForRejects: the rows and rejects of the parts are all results of
// the service. A day whose results were all rejected has an empty object, in every
// format.
func TestPartsAccountForRejects(t *testing.T) {
	form := halfNumbers()
	w := newWorld(t, form)
	sets := []string{"parquet", "arrow", "csv", "ndjson", "ndjson-gzip"}
	outputs := make([]definition.Output, 0, len(sets)+1)
	outputs = append(outputs, definition.Output{Path: "f.ndjson", Format: "ndjson"})
	for _, name := range sets {
		format, compression, _ := strings.Cut(name, "-")
		outputs = append(outputs, definition.Output{Path: name + "/", Format: format, Compression: compression, Partition: definition.PartitionDay})
	}
	def := w.definition(outputs...)
	def.Schema = numbers("")
	check := func(want, ids string) {
		t.Helper()
		for _, name := range sets {
			if got := w.partsOf(name); got != want {
				t.Errorf("%s: the parts are %s, want %s", name, got, want)
			}
		}
		rows := make([]string, 0, 3)
		for _, row := range w.datasetRows("ndjson") {
			rows = append(rows, fmt.Sprint(row["id"]))
		}
		slices.Sort(rows)
		if got := strings.Join(rows, " "); got != ids {
			t.Errorf("the parts hold the results %s, want %s", got, ids)
		}
	}
	w.run(def)
	check("01:1+1[1-1] 02:0+2 03:1+0[3-3] undated:0+1", "1 3")
	if p := readManifest(t, w.path("f.ndjson.manifest.json")).Parts[0]; p.Rows != 2 || p.Rejected != 4 {
		t.Errorf("the file has %d rows and %d rejects", p.Rows, p.Rejected)
	}

	before := dataOnly(tree(t, w.dir))
	w.run(def)
	sameTree(t, before, dataOnly(tree(t, w.dir)))
	check("01:1+1[1-1] 02:0+2 03:1+0[3-3] undated:0+1", "1 3")

	// The day's part stays the same object with another number of rejects.
	form.Delete(5)
	form.Delete(6)
	w.run(def)
	after := dataOnly(tree(t, w.dir))
	delete(before, "f.ndjson.rejects.jsonl")
	delete(after, "f.ndjson.rejects.jsonl")
	sameTree(t, before, after)
	check("01:1+0[1-1] 02:0+1 03:1+0[3-3] undated:0+1", "1 3")

	// Rows take the place of the empty objects, and no results that of another.
	for _, r := range []formservice.Result{pipelinestest.Result(2, "2026-01-02 09:00:00", "2"), pipelinestest.Result(3, "2026-01-03 09:00:00", "three"), pipelinestest.Result(50, "", "50")} {
		if err := form.Update(r); err != nil {
			t.Fatal(err)
		}
	}
	w.run(def)
	check("01:1+0[1-1] 02:1+0[2-2] 03:0+1 undated:1+0[50-50]", "1 2 50")
	form.Delete(3)
	w.run(def)
	check("01:1+0[1-1] 02:1+0[2-2] undated:1+0[50-50]", "1 2 50")
	for _, name := range sets {
		if got := dataOnly(tree(t, w.path(name))); len(got) != 3 {
			t.Errorf("%s holds %v", name, got)
		}
	}
}

// TestKeptPartKeepsItsRejects in a run over another range, and in one that reads it again.
func TestKeptPartKeepsItsRejects(t *testing.T) {
	w := newWorld(t, halfNumbers())
	all := w.definition(days())
	all.Schema = numbers("")
	w.run(all)
	third := w.daily(days())
	third.Schema, third.Extract.From = numbers(""), third.Extract.From.AddDate(0, 0, 2)
	w.run(third)
	const want = "01:1+1[1-1] 02:0+2 03:1+0[3-3] undated:0+1"
	if got := w.partsOf("days"); got != want {
		t.Errorf("the parts are %s, want %s", got, want)
	}
	w.run(all)
	if got := w.partsOf("days"); got != want {
		t.Errorf("the parts are %s, want %s", got, want)
	}
}
