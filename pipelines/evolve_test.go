package pipelines_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// TestAddedColumnsReadTogether: a form gets and loses questions between runs
// and in the middle of one. Columns are appended in one order in every output
// and every later run. What an engine makes of the parts is shown by the tests of cmd/internal/release.
func TestAddedColumnsReadTogether(t *testing.T) {
	for name, schema := range map[string]*schemas.Schema{
		"declared": {Columns: []schemas.Column{
			{Name: "result_id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
			{Name: "answer", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.String}, OnError: schemas.OnErrorReject},
		}},
		"inferred": nil,
	} {
		t.Run(name, func(t *testing.T) {
			l := &driftingForm{w: newWorld(t)}
			outputs := []definition.Output{
				{Path: "parquet/", Format: "parquet", Partition: definition.PartitionDay},
				{Path: "ndjson/", Format: "ndjson", Partition: definition.PartitionMonth},
				{Path: "csv/", Format: "csv", Partition: definition.PartitionDay},
			}
			var before []string
			run := func() {
				t.Helper()
				def := l.w.days(outputs...)
				def.Schema = schema
				l.run(def, options())
				before = l.checkOrder(before)
			}
			l.next([]string{"1 text A", "2 text B"})
			l.next([]string{"1 text A", "2 text B", "9 text Late"}) // in the middle of the first run
			l.form.Metas = append(l.form.Metas, "date_update")
			r, _ := l.form.Get(21)
			r.Metas = append(r.Metas, formservice.Meta{ID: "date_update", Value: "2026-01-02 12:00:00"})
			if err := l.form.Update(r); err != nil {
				t.Fatal(err)
			}
			run()
			for _, questions := range [][]string{
				{"7 text New", "1 text A", "5 text Newer", "9 text Late"}, // 2 goes away
				{"7 text New", "1 text A", "5 text Newer", "9 text Late"},
				{"2 text B", "3 text Newest", "1 text A"}, // and comes back
			} {
				l.next(questions)
				run()
			}
			want := "result_id,answer,result_status,date_finish,item_2,date_update,item_9,item_7,item_5,item_3"
			if name == "inferred" {
				want = "result_id,result_status,date_finish,date_update,item_1,item_2,item_9,item_7,item_5,item_3"
			}
			if got := strings.Join(before, ","); got != want {
				t.Errorf("columns %s, want %s", got, want)
			}
		})
	}
}

// checkOrder holds that all outputs have the same columns, and those of
// before first.
func (l *driftingForm) checkOrder(before []string) []string {
	l.w.t.Helper()
	var names []string
	for i, out := range []string{"parquet", "ndjson", "csv"} {
		var own []string
		for _, c := range readManifest(l.w.t, filepath.Join(l.w.path(out), load.ManifestName)).Schema {
			own = append(own, c.Name)
		}
		if i > 0 && !slices.Equal(own, names) {
			l.w.t.Errorf("day %d: %s has %v, others %v", l.day, out, own, names)
		}
		names = own
	}
	if len(names) < len(before) || !slices.Equal(names[:len(before)], before) {
		l.w.t.Errorf("day %d: columns %v do not go on from %v", l.day, names, before)
	}
	return names
}

// TestUnknownFieldsAcrossRuns: ignored ones never get a column, also once there is a dataset, and
// are told once, by a later run than the first; with fail the run ends, names what to write, and
// leaves what is there. A column whose item the form never had is told once. One that the schema
// no longer lists ends the run.
func TestUnknownFieldsAcrossRuns(t *testing.T) {
	l := &driftingForm{w: newWorld(t)}
	def := l.w.days()
	def.Schema = declared(t, schemas.UnknownIgnore, "", "string")
	def.Schema.Columns = append(def.Schema.Columns,
		schemas.Column{Name: "state", From: schemas.Source{Kind: schemas.FromMeta, ID: "result_status"}, Type: schemas.Type{Kind: schemas.String}},
		schemas.Column{Name: "at", From: schemas.Source{Kind: schemas.FromMeta, ID: "date_finish"}, Type: schemas.Type{Kind: schemas.Timestamp}},
		schemas.Column{Name: "mistyped", From: schemas.Source{Kind: schemas.FromItem, ID: "77"}, Type: schemas.Type{Kind: schemas.String}})
	all := def.Schema.Columns
	for _, c := range []struct {
		late, want string
	}{{"8 text Early", "removed item:77 mistyped [string] [] breaks"}, {"9 text Late", "added item:9  [] [] Late x2"}, {"9 text Late", ""}} {
		l.next([]string{"1 text A", c.late})
		if got := pipelinestest.ChangeLines(l.run(def, options()).Changes); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	m := readManifest(t, filepath.Join(l.w.path("days"), load.ManifestName))
	if len(m.Schema) != 5 {
		t.Errorf("columns %+v", m.Schema)
	}
	before := tree(t, l.w.dir)
	l.next([]string{"1 text A", "9 text Late"})
	o := options()
	o.Now = zoned(t, l.w, "2026-01-05 23:00:00")
	def.Schema.Columns = slices.Delete(slices.Clone(all), 3, 4)
	_, err := pipelines.Run(t.Context(), def, o)
	if fault, ok := errors.AsType[*definition.Fault](err); !ok || fault.Code != 78 || !strings.Contains(err.Error(), "column at was from meta:date_finish and is left out now") {
		t.Errorf("without a column: error %v", err)
	}
	def.Schema.Unknown, def.Schema.Columns = schemas.UnknownFail, all
	_, err = pipelines.Run(t.Context(), def, o)
	var unknown *transform.UnknownFieldError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), `add {name: "item_9", from: "item:9", type: string} to its columns, or set unknown: add (such fields become columns) or unknown: ignore`) {
		t.Errorf("error %v", err)
	}
	sameTree(t, before, tree(t, l.w.dir))
}
