package pipelines_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
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

// TestMaxColumns: more columns than max_columns end a run, wherever they turn up, and nothing is
// written or kept.
func TestMaxColumns(t *testing.T) {
	for name, c := range map[string]struct {
		items, results int
		unknown        schemas.Unknown
		most           int // 0: the columns are inferred
		fails          bool
	}{
		"inferred":      {schemas.DefaultMaxColumns, 1, "", 0, true}, // and one for the id
		"in one result": {40, 1, schemas.UnknownAdd, 30, true},
		"over windows":  {40, 8, schemas.UnknownAdd, 30, true},
		"ignored":       {40, 8, schemas.UnknownIgnore, 30, false},
		"just enough":   {40, 8, schemas.UnknownAdd, 44, false}, // with two declared ones and two metas
	} {
		t.Run(name, func(t *testing.T) {
			form := formservice.NewForm("form1", nil, nil)
			for i := range c.results {
				r := pipelinestest.Result(int64(i+1), fmt.Sprintf("2026-01-01 0%d:00:00", i), "x")
				for item := i * c.items / c.results; item < (i+1)*c.items/c.results; item++ {
					r.Items = append(r.Items, formservice.Answer{ID: fmt.Sprint(100 + item), Values: []string{"x"}})
				}
				if _, err := form.Insert(r); err != nil {
					t.Fatal(err)
				}
			}
			w := newWorld(t, form)
			def := w.daily(fileAndDays()...)
			def.Extract.Window = extract.Period{Seconds: 3600}
			if c.most > 0 {
				def.Schema = declared(t, c.unknown, "", "string")
				def.Schema.MaxColumns = c.most
			}
			_, err := pipelines.Run(t.Context(), def, options())
			if isA[*transform.ColumnsError](err) != c.fails || !c.fails && err != nil {
				t.Fatal(err)
			}
			if left := tree(t, w.dir); c.fails && len(left) > 0 {
				t.Errorf("it left %v", left)
			}
			w.checkTidy()
		})
	}
}

// TestLateColumnHasOneName in all pieces of a window, though only the first page has labels.
func TestLateColumnHasOneName(t *testing.T) {
	w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Seed: 5, Results: 3000}))
	def := w.definition(definition.Output{Path: "form1.csv", Format: "csv"})
	def.Names, def.Schema = schemas.ByLabel, declared(t, schemas.UnknownAdd, "", "string")
	def.Source.Requests.Concurrency = 1
	told := strings.Join(w.runBy(def, options()).Forms[0].Drift, "\n")
	if strings.Contains(told, "column item_") || !strings.Contains(told, "column colours_75") {
		t.Error(told)
	}
}
