package pipelines_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// world is a real service over HTTP and a folder for what a pipeline writes.
type world struct {
	t       testing.TB
	service *formservice.Server
	source  definition.Source
	dir     string
}

func newWorld(t testing.TB, forms ...*formservice.Form) *world {
	t.Helper()
	service, source := pipelinestest.Serve(t, forms...)
	return &world{t: t, service: service, source: source, dir: t.TempDir()}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// definition takes every result of form1 to the outputs, whose paths are
// relative to the world's folder.
func (w *world) definition(outputs ...definition.Output) *definition.Definition {
	return pipelinestest.Definition(w.dir, w.source, outputs...)
}

// options are those of a run that does not wait for the clock of a service.
func options() pipelines.Options {
	o := pipelinestest.Options()
	o.Wait = func(context.Context, time.Duration) error { return nil }
	return o
}

// run runs a definition to the end, and checks that nothing but its outputs is left.
func (w *world) run(def *definition.Definition) *pipelines.Report {
	w.t.Helper()
	report := w.runBy(def, options())
	w.checkTidy()
	return report
}

// runBy runs a definition to the end by options of a test.
func (w *world) runBy(def *definition.Definition, o pipelines.Options) *pipelines.Report {
	w.t.Helper()
	report, err := pipelines.Run(w.t.Context(), def, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// checkTidy fails if a run left something that is not its output.
func (w *world) checkTidy() {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == ".formetl" || d.Name() == "checkpoint" && d.IsDir()) {
			w.t.Errorf("the run left %s", path)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// expected is what NDJSON holds for a value by the rules of contract.md.
func (w *world) expected(c load.Column, r formservice.Result) any {
	w.t.Helper()
	if c.From == "result_id" {
		return float64(r.ID)
	}
	kind, id, _ := strings.Cut(c.From, ":")
	var values []string
	var has bool
	if kind == "meta" {
		var v string
		v, has = r.Meta(id)
		values = []string{v}
	} else {
		values, has = r.Values(id)
	}
	switch {
	case !has:
		return nil
	case c.Type == "timestamp":
		if values[0] == "" {
			return nil
		}
		at, err := time.ParseInLocation("2006-01-02 15:04:05", values[0], w.source.Zone)
		if err != nil {
			w.t.Fatal(err)
		}
		if at.Format("2006-01-02 15:04:05") != values[0] { // an hour that the zone skips: as if the clock had not been set forward
			_, offset := at.Add(-3 * time.Hour).Zone()
			wall, _ := time.Parse("2006-01-02 15:04:05", values[0])
			at = wall.Add(-time.Duration(offset) * time.Second).In(w.source.Zone)
		}
		return at.Format(time.RFC3339)
	case strings.HasPrefix(c.Type, "list<"):
		list := []any{}
		if len(values) == 1 && values[0] == "" {
			return list
		}
		for _, v := range values {
			list = append(list, v)
		}
		return list
	case len(values) == 0:
		return nil
	case len(values) == 1:
		return values[0]
	}
	for i, v := range values {
		values[i] = strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(v)
	}
	return strings.Join(values, "|")
}

func readNDJSON(t testing.TB, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row map[string]any
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		rows = append(rows, row)
	}
	return rows
}

func readManifest(t testing.TB, file string) *load.Manifest {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := load.DecodeManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// compare checks rows against the truth, each exactly once, every value equal.
func (w *world) compare(rows []map[string]any, schema []load.Column, want []formservice.Result) {
	w.t.Helper()
	byID := map[int64]map[string]any{}
	for _, row := range rows {
		id := int64(row["result_id"].(float64))
		if byID[id] != nil {
			w.t.Errorf("result %d is there twice", id)
		}
		byID[id] = row
	}
	for _, r := range want {
		row := byID[r.ID]
		if row == nil {
			w.t.Errorf("result %d (dated %q) is missing", r.ID, pipelinestest.Date(r))
			continue
		}
		delete(byID, r.ID)
		for _, c := range schema {
			if got, want := row[c.Name], w.expected(c, r); !reflect.DeepEqual(got, want) {
				w.t.Errorf("result %d, column %s: %#v, want %#v", r.ID, c.Name, got, want)
			}
		}
		w.covers(schema, r)
	}
	for id := range byID {
		w.t.Errorf("result %d should not be there", id)
	}
}

// covers fails if a result has a field that no column takes.
func (w *world) covers(schema []load.Column, r formservice.Result) {
	has := func(from string) bool {
		return slices.ContainsFunc(schema, func(c load.Column) bool { return c.From == from })
	}
	for _, m := range r.Metas {
		if !has("meta:" + m.ID) {
			w.t.Errorf("meta %s of result %d has no column", m.ID, r.ID)
		}
	}
	for _, a := range r.Items {
		if !has("item:" + a.ID) {
			w.t.Errorf("item %s of result %d has no column", a.ID, r.ID)
		}
	}
}

// checkFile compares an NDJSON file and its manifest with the truth.
func (w *world) checkFile(name string, want []formservice.Result) {
	w.t.Helper()
	m := readManifest(w.t, w.path(name)+".manifest.json")
	w.compare(readNDJSON(w.t, w.path(name)), m.Schema, want)
	if m.Rows != int64(len(want)) {
		w.t.Errorf("the manifest counts %d rows, want %d", m.Rows, len(want))
	}
}

// checkDataset compares an NDJSON dataset, read by its manifest, with the truth.
func (w *world) checkDataset(name string, want []formservice.Result) *load.Manifest {
	w.t.Helper()
	m := readManifest(w.t, filepath.Join(w.path(name), load.ManifestName))
	var rows []map[string]any
	onDisk := map[string]bool{}
	for _, p := range m.Parts {
		file := filepath.Join(w.path(name), filepath.FromSlash(p.Path))
		part := readNDJSON(w.t, file)
		if int64(len(part)) != p.Rows {
			w.t.Errorf("%s holds %d rows, the manifest says %d", p.Path, len(part), p.Rows)
		}
		rows, onDisk[file] = append(rows, part...), true
	}
	for _, file := range files(w.t, w.path(name)) {
		if hidden := strings.Contains(strings.TrimPrefix(file, w.path(name)), "/_"); !hidden && !onDisk[file] {
			w.t.Errorf("%s is not in the manifest", file)
		}
	}
	// Columns that a part does not have are null: a part may be older.
	for _, row := range rows {
		for _, c := range m.Schema {
			if _, ok := row[c.Name]; !ok {
				row[c.Name] = nil
			}
		}
	}
	w.compare(rows, m.Schema, want)
	if data, err := os.ReadFile(filepath.Join(w.path(name), load.SuccessName)); err != nil || strings.TrimSpace(string(data)) != m.RunID {
		w.t.Errorf("_SUCCESS holds %q (%v), want %s", data, err, m.RunID)
	}
	return m
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func generated(results int) *formservice.Form {
	return formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: results, Seed: 7})
}

func TestEveryResultOnceInEveryShape(t *testing.T) {
	form := generated(500)
	w := newWorld(t, form)
	def := w.definition(
		definition.Output{Path: "form1.ndjson", Format: "ndjson"},
		definition.Output{Path: "plain/", Format: "ndjson"},
		definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay},
		definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth},
		definition.Output{Path: "years/", Format: "ndjson", Partition: definition.PartitionYear},
	)
	report := w.run(def)
	all := pipelinestest.Truth(form, nil)
	w.checkFile("form1.ndjson", all)
	for _, name := range []string{"plain", "days", "months", "years"} {
		m := w.checkDataset(name, all)
		checkPartitions(t, m)
	}
	if f := report.Forms[0]; f.Rows != 500 || !f.Verified.Match || f.Undated == 0 {
		t.Errorf("report %+v", f)
	}
}

// checkPartitions checks that a part's folder is the partition of its window.
func checkPartitions(t *testing.T, m *load.Manifest) {
	t.Helper()
	for i, p := range m.Parts {
		key, err := load.ParsePartName(p.Path)
		if err != nil {
			t.Error(err)
		}
		if i > 0 && !p.Undated && !m.Parts[i-1].To.Equal(p.From.Time) && m.Parts[i-1].To.After(p.From.Time) {
			t.Errorf("parts %s and %s overlap", m.Parts[i-1].Path, p.Path)
		}
		if key.Undated != p.Undated {
			t.Errorf("part %s: undated %t", p.Path, p.Undated)
		}
	}
}

func TestRangesAndWindows(t *testing.T) {
	form := generated(400)
	from, to := extracttest.Wall("2025-03-05"), extracttest.Wall("2025-06-10")
	for _, window := range needs.Sample([]string{"auto", "6h", "1d", "7d", "1mo"}, 3) {
		t.Run(window, func(t *testing.T) {
			w := newWorld(t, form)
			def := w.definition(
				definition.Output{Path: "form1.ndjson", Format: "ndjson"},
				definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
			def.Extract.From, def.Extract.To = from, to
			var err error
			if def.Extract.Window, err = definition.ParseWindow(window); err != nil {
				t.Fatal(err)
			}
			w.run(def)
			want := pipelinestest.Truth(form, func(r formservice.Result) bool {
				d := pipelinestest.Date(r)
				return d >= "2025-03-05 00:00:00" && d < "2025-06-10 00:00:00"
			})
			w.checkFile("form1.ndjson", want)
			m := w.checkDataset("days", want)
			for _, row := range m.Parts {
				if key, _ := load.ParsePartName(row.Path); key.DT != row.From.Format("2006-01-02") {
					t.Errorf("part %s of %s", row.Path, row.From)
				}
			}
		})
	}
}

func TestRerunsGiveTheSameBytes(t *testing.T) {
	needs.Slow(t)
	for name, form := range map[string]*formservice.Form{"all types": generated(700), "late questions": lateAnswers()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, form)
			outputs := func() []definition.Output {
				var outs []definition.Output
				for _, format := range []string{"csv", "ndjson", "json", "parquet", "arrow", "xlsx"} {
					outs = append(outs, definition.Output{Path: "form1." + format, Format: format})
					if format != "json" && format != "xlsx" {
						outs = append(outs, definition.Output{Path: format + "/", Format: format, Partition: definition.PartitionMonth})
					}
				}
				return append(outs,
					definition.Output{Path: "form1.csv.gz", Format: "csv", Compression: "gzip"},
					definition.Output{Path: "form1.ndjson.zst", Format: "ndjson", Compression: "zstd"})
			}
			snapshot := func(concurrency int, latency time.Duration) map[string]string {
				w.service.SetFaults(formservice.Faults("").With("latency", latency))
				def := w.definition(outputs()...)
				def.Extract.To = extracttest.Wall("2026-02-01")
				def.Extract.Window = extract.Period{Days: 7}
				def.Source.Requests.Concurrency = concurrency
				w.run(def)
				bytesOf := map[string]string{}
				for _, file := range files(t, w.dir) {
					if base := filepath.Base(file); base == load.ManifestName || base == load.SuccessName || strings.HasSuffix(base, ".manifest.json") {
						continue
					}
					data, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					bytesOf[strings.TrimPrefix(file, w.dir)] = string(data)
				}
				return bytesOf
			}
			first := snapshot(1, 0)
			second := snapshot(8, time.Millisecond)
			if len(first) != len(second) {
				t.Errorf("%d files, then %d", len(first), len(second))
			}
			for name, data := range first {
				if second[name] != data {
					t.Errorf("%s differs", name)
				}
			}
		})
	}
}

// lateAnswers is a form of 24 days whose later results have questions that no
// sample of the first ones shows: one in the middle of a window, two in the
// last ones, and one answered once.
func lateAnswers() *formservice.Form {
	items := []formservice.Item{{ID: "1", Index: 1, Label: "Answer"}}
	results := make([]formservice.Result, 0, 1200)
	for i := range 1200 {
		when := time.Date(2026, 1, 1, 0, i*28, 0, 0, time.UTC).Format(formservice.WallTime)
		r := pipelinestest.Result(int64(2000-i), when, fmt.Sprint("answer ", i))
		for _, late := range []struct {
			id   string
			from int
		}{{"77", 905}, {"12-3", 1100}, {"5", 1100}} {
			if i >= late.from {
				r.Items = append(r.Items, formservice.Answer{ID: late.id, Values: []string{fmt.Sprint(late.id, " ", i)}})
			}
		}
		if i == 1000 {
			r.Metas = append(r.Metas, formservice.Meta{ID: "date_update", Value: when})
		}
		results = append(results, r)
	}
	return formservice.NewForm("form1", items, results)
}

func TestSchemaFileTypesAndRejects(t *testing.T) {
	item := func(id string, values ...string) formservice.Answer {
		return formservice.Answer{ID: id, Values: values}
	}
	finished := formservice.Meta{ID: "date_finish", Value: "2026-01-01 10:00:00"}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "4", Label: "Price"}, {ID: "105", Label: "Born"}, {ID: "206", Label: "Colours"}}, []formservice.Result{
		{ID: 1, Metas: []formservice.Meta{finished}, Items: []formservice.Answer{item("4", "12.50"), item("105", "1999-12-31"), item("206", "red", "a|b")}},
		{ID: 2, Metas: []formservice.Meta{finished}, Items: []formservice.Answer{item("4", "twelve"), item("105", "1999-12-31")}},
		{ID: 3, Metas: []formservice.Meta{finished}, Items: []formservice.Answer{item("4", "0.1"), item("105", "31.12.1999"), item("206", "")}},
		{ID: 4, Metas: []formservice.Meta{finished}, Items: []formservice.Answer{item("999", "late")}},
	})
	w := newWorld(t, form)
	schema := &schemas.Schema{Name: "s", MaxRejects: 1, Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		{Name: "price", From: schemas.Source{Kind: schemas.FromItem, ID: "4"}, Type: schemas.Type{Kind: schemas.Decimal, Precision: 12, Scale: 2}},
		{Name: "born", From: schemas.Source{Kind: schemas.FromItem, ID: "105"}, Type: schemas.Type{Kind: schemas.Date}, OnError: schemas.OnErrorSetNull},
		{Name: "colours", From: schemas.Source{Kind: schemas.FromItem, ID: "206"}, Type: schemas.ListOf(schemas.Type{Kind: schemas.String})},
	}}
	def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"}, definition.Output{Path: "set/", Format: "ndjson"})
	def.Schema = schema
	report := w.run(def)
	data, err := os.ReadFile(w.path("form1.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":1,"price":"12.50","born":"1999-12-31","colours":["red","a|b"],"date_finish":"2026-01-01T10:00:00-06:00","item_999":null}
{"id":3,"price":"0.10","born":null,"colours":[],"date_finish":"2026-01-01T10:00:00-06:00","item_999":null}
{"id":4,"price":null,"born":null,"colours":null,"date_finish":"2026-01-01T10:00:00-06:00","item_999":"late"}
`
	if string(data) != want {
		t.Errorf("got\n%swant\n%s", data, want)
	}
	f := report.Forms[0]
	if f.Rejected != 1 || !f.Verified.Match || f.Verified.Extracted != 4 {
		t.Errorf("report %+v, verified %+v", f, f.Verified)
	}
	for _, file := range []string{w.path("form1.ndjson.rejects.jsonl"), w.onlyLetters("set")} {
		letters := readNDJSON(t, file)
		if len(letters) != 1 || letters[0]["result_id"] != float64(2) || letters[0]["column"] != "price" || letters[0]["raw"] != "twelve" || letters[0]["window"] == "" {
			t.Errorf("%s: %v", file, letters)
		}
	}
	if m := readManifest(t, w.path("form1.ndjson.manifest.json")); m.Schema[1].Label != "Price" {
		t.Errorf("label %q, want Price", m.Schema[1].Label)
	}

	schema.MaxRejects = 0
	before, _ := os.ReadFile(w.path("form1.ndjson.manifest.json"))
	report, err = pipelines.Run(t.Context(), def, options())
	if err == nil || !strings.Contains(err.Error(), "max_rejects allows 0") || strings.Contains(err.Error(), "twelve") {
		t.Errorf("error %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "; for example result 2 (column price)") {
		t.Errorf("the error does not name the rejected result: %v", err)
	}
	if f := report.Forms[0]; f.Rejected != 1 || len(f.Rejects) != 1 || f.Rejects[0].Column != "price" || len(f.Nulled) != 1 { // which tell what to mend
		t.Errorf("the report of the failed run tells of %+v and %+v", f.Rejects, f.Nulled)
	}
	if after, _ := os.ReadFile(w.path("form1.ndjson.manifest.json")); !bytes.Equal(before, after) {
		t.Error("a failed run changed the manifest")
	}
	w.checkTidy()
}
