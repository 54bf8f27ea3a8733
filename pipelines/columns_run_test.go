package pipelines_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// TestOpenRangeGivesTheSameFile: the end that the clock gives is not in a
// single file's bytes.
func TestOpenRangeGivesTheSameFile(t *testing.T) {
	w := newWorld(t, fourDays())
	files := make([]map[string]string, 0, 2)
	for _, now := range []string{"2026-05-01 10:00:00", "2026-05-01 10:00:01"} {
		o := options()
		o.Now = zoned(t, w, now)
		w.runBy(w.definition(definition.Output{Path: "form1.parquet", Format: "parquet"}), o)
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
			w.runBy(def, o)
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
