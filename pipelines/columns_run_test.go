package pipelines_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

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

// TestLateColumnsGiveTheSameBytes whatever the order in which windows
// finished, and when the run is repeated with the columns known.
func TestLateColumnsGiveTheSameBytes(t *testing.T) {
	var first map[string]string
	for i, c := range []struct {
		concurrency int
		latency     time.Duration
	}{{1, 0}, {8, 0}, {8, time.Millisecond}} {
		w := newWorld(t, lateAnswers())
		w.service.SetFaults(formservice.Faults{Latency: c.latency})
		def := func() *definition.Definition {
			d := w.definition(
				definition.Output{Path: "form1.csv", Format: "csv"},
				definition.Output{Path: "form1.parquet", Format: "parquet"},
				definition.Output{Path: "days/", Format: "parquet", Partition: definition.PartitionDay},
				definition.Output{Path: "weeks/", Format: "ndjson"},
			)
			d.File = w.path("definition.yaml")
			d.Extract.From, d.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-02-01")
			d.Extract.Window = extract.Step{Days: 7}
			d.Source.Requests.Concurrency = c.concurrency
			return d
		}
		w.run(def())
		w.checkDataset("weeks", pipelinestest.Truth(w.service.Form("form1"), nil))
		files := dataOnly(tree(t, w.dir))
		for name := range files { // all parts have all columns
			if strings.HasSuffix(name, ".ndjson") && !strings.Contains(strings.SplitN(files[name], "\n", 2)[0], `"item_77":`) {
				t.Errorf("%s lacks a late column", name)
			}
		}
		if i == 0 {
			first = files
		}
		sameTree(t, first, files)
		w.run(def())
		sameTree(t, first, dataOnly(tree(t, w.dir)))
		if header, _, _ := strings.Cut(files["form1.csv"], "\n"); header != "result_id,result_status,date_finish,item_1,item_77,date_update,item_12_3,item_5" {
			t.Errorf("header %s", header)
		}
	}
}

// TestOpenRangeGivesTheSameFile: the end that the clock gives is not in a
// single file's bytes.
func TestOpenRangeGivesTheSameFile(t *testing.T) {
	w := newWorld(t, fourDays())
	files := make([]map[string]string, 0, 2)
	for _, now := range []string{"2026-05-01 10:00:00", "2026-05-01 10:00:01"} {
		o := options()
		o.Now = zoned(t, w, now)
		if _, err := pipelines.Run(t.Context(), w.definition(definition.Output{Path: "form1.parquet", Format: "parquet"}), o); err != nil {
			t.Fatal(err)
		}
		files = append(files, dataOnly(tree(t, w.dir)))
	}
	sameTree(t, files[0], files[1])
}

// TestManifestIsTheBaseOfLaterRuns of a definition, not of an export, nor
// where the naming changed.
func TestManifestIsTheBaseOfLaterRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*definition.Definition, *pipelines.Options)
		want   string
	}{
		{"again", func(*definition.Definition, *pipelines.Options) {}, "result_id,result_status,date_finish,item_1,item_9"},
		{"an export", func(d *definition.Definition, _ *pipelines.Options) { d.File = "" }, "result_id,result_status,date_finish,item_1"},
		{"full", func(_ *definition.Definition, o *pipelines.Options) { o.Full = true }, "result_id,result_status,date_finish,item_1"},
		{"labels", func(d *definition.Definition, _ *pipelines.Options) { d.Labels = true }, "result_id,result_status,date_finish,answer"},
		{"another form", func(d *definition.Definition, _ *pipelines.Options) { d.Forms = []string{"form2"} }, "result_id,result_status,date_finish,item_1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			form, other := fourDays(), fourDays()
			other.Directory = "form2"
			extra := pipelinestest.Result(9, "2026-01-04 11:00:00", "x")
			extra.Items = append(extra.Items, formservice.Answer{ID: "9", Values: []string{"once"}})
			if _, err := form.Insert(extra); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, form, other)
			def := w.daily(definition.Output{Path: "out.csv", Format: "csv"})
			def.File = w.path("definition.yaml")
			w.run(def)
			form.Delete(9)
			o := options()
			c.change(def, &o)
			if _, err := pipelines.Run(t.Context(), def, o); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(w.path("out.csv"))
			if header, _, _ := strings.Cut(string(data), "\n"); err != nil || header != c.want {
				t.Errorf("header %s (%v), want %s", header, err, c.want)
			}
		})
	}
}

func declared(t *testing.T, unknown schemas.Unknown, onError schemas.OnError, kind string) *schemas.Schema {
	t.Helper()
	typ, err := schemas.ParseType(kind)
	if err != nil {
		t.Fatal(err)
	}
	return &schemas.Schema{Name: "s", Unknown: unknown, MaxRejects: 2, Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		{Name: "answer", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: typ, OnError: onError},
	}}
}

func TestUnknownFieldsAndValuesThatDoNotFit(t *testing.T) {
	is := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	for _, c := range []struct {
		name   string
		schema *schemas.Schema
		fails  func(error) bool
		header string
		drift  string
	}{
		{"add", declared(t, schemas.UnknownAdd, "", "string"), nil, "id,answer,result_status,date_finish", "whose columns were added: result_status, date_finish"},
		{"ignore", declared(t, schemas.UnknownIgnore, "", "string"), nil, "id,answer", "meta:date_finish is not in the schema and was left out 8 times"},
		{"fail", declared(t, schemas.UnknownFail, "", "string"), is(new(*transform.UnknownFieldError)), "", ""},
		{"on_error fail", declared(t, schemas.UnknownIgnore, schemas.OnErrorFail, "int64"), is(new(*transform.ValueError)), "", ""},
		{"on_error set_null", declared(t, schemas.UnknownIgnore, schemas.OnErrorSetNull, "int64"), nil, "id,answer", "left out 8 times"},
		{"too many rejects", declared(t, schemas.UnknownIgnore, schemas.OnErrorReject, "int64"), is(new(*reading.RejectsError)), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, fourDays())
			def := w.daily(definition.Output{Path: "out.csv", Format: "csv"}, definition.Output{Path: "days/", Format: "csv", Partition: definition.PartitionDay})
			def.Schema = c.schema
			report, err := pipelines.Run(t.Context(), def, options())
			w.checkTidy()
			if c.fails != nil {
				if !c.fails(err) || len(tree(t, w.dir)) != 0 || strings.Count(err.Error(), "window ") > 1 {
					t.Errorf("error %v; left %v", err, tree(t, w.dir))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(w.path("out.csv"))
			if header, _, _ := strings.Cut(string(data), "\n"); err != nil || header != c.header {
				t.Errorf("header %s (%v), want %s", header, err, c.header)
			}
			if drift := strings.Join(report.Forms[0].Drift, "\n"); !strings.Contains(drift, c.drift) {
				t.Errorf("drift %q", drift)
			}
			if c.schema.Columns[1].OnError == schemas.OnErrorSetNull && (len(report.Forms[0].Nulled) != 1 || report.Forms[0].Nulled[0].Count != 8) {
				t.Errorf("nulled %v", report.Forms[0].Nulled)
			}
		})
	}
}

// TestRejectThatMovesCountsOnce: it is among the rejects of two windows for a
// while, and max_rejects allows one.
func TestRejectThatMovesCountsOnce(t *testing.T) {
	form := fourDays()
	for _, id := range []int64{2, 3, 4, 5, 6, 7, 8, 10, 11, 50} {
		form.Delete(id)
	}
	if _, err := form.Insert(pipelinestest.Result(12, "2026-01-04 00:00:00", "12")); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, form)
	w.service.Before = once(reads("2026-01-03"), func() { _ = form.Finish(1, extracttest.Wall("2026-01-03 12:00:00")) })
	def := w.daily(fileAndDays()...)
	def.Schema = declared(t, schemas.UnknownIgnore, schemas.OnErrorReject, "int64")
	def.Schema.MaxRejects = 1
	report := w.run(def)
	f := report.Forms[0]
	if f.Rejected != 1 || f.Rows != 1 || len(f.Rejects) != 1 || f.Rejects[0].Count != 1 {
		t.Errorf("%d rejected, %d rows, by reason %v", f.Rejected, f.Rows, f.Rejects)
	}
	for _, name := range []string{w.path("form1.ndjson.rejects.jsonl"), w.onlyLetters("days")} {
		if letters := readNDJSON(t, name); len(letters) != 1 || letters[0]["result_id"] != 1.0 {
			t.Errorf("%s: %v", name, letters)
		}
	}
	m := readManifest(t, filepath.Join(w.path("days"), load.ManifestName))
	if m.Rejected != 1 || m.Verified.Extracted != 2 || m.Verified.Counted != 2 {
		t.Errorf("rejected %d, verified %+v", m.Rejected, m.Verified)
	}
}

// TestColumnsOfPartsThatStay stay in the manifest, though a run leaves them out.
func TestColumnsOfPartsThatStay(t *testing.T) {
	w := newWorld(t, fourDays())
	def := w.daily(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
	def.Schema = declared(t, schemas.UnknownAdd, "", "string")
	w.run(def)
	def.Schema = declared(t, schemas.UnknownIgnore, "", "string")
	def.Extract.From = extracttest.Wall("2026-01-03")
	w.run(def)
	m := readManifest(t, filepath.Join(w.path("days"), load.ManifestName))
	names := make([]string, 0, len(m.Schema))
	for _, c := range m.Schema {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, ","); got != "id,answer,result_status,date_finish" || m.Rows != 8 {
		t.Errorf("columns %s, %d rows", got, m.Rows)
	}
}
