package pipelines_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// numbered is a form of answers that are whole numbers, some of them with a
// sign between groups of digits, and one that is none.
func numbered(undated ...formservice.Result) *formservice.Form {
	items := []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}
	return formservice.NewForm("form1", items, append([]formservice.Result{
		pipelinestest.Result(1, "2026-01-01 09:00:00", "1"), pipelinestest.Result(2, "2026-01-02 09:00:00", "2.000"),
		pipelinestest.Result(3, "2026-01-02 10:00:00", "3"), pipelinestest.Result(4, "2026-01-06 09:00:00", "4"),
		pipelinestest.Result(5, "2026-01-10 09:00:00", "5.000"), pipelinestest.Result(6, "2026-01-10 10:00:00", "six"),
		pipelinestest.Result(7, "2026-01-12 10:00:00", "7"),
	}, undated...))
}

// numbers is the definition's schema; group is the sign that it declares.
func numbers(group string) *schemas.Schema {
	return &schemas.Schema{Name: "numbers", Unknown: schemas.UnknownIgnore, MaxRejects: 100, Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		{
			Name: "n", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.Int64},
			Reading: schemas.Reading{Group: group},
		},
	}}
}

// replayed runs a definition and replays what it rejected under a mended schema.
type replayed struct {
	*world
	def   *definition.Definition
	first *pipelines.Report
	found []pipelines.FormReplay
	runs  []*pipelines.Report
	asked []string // days that results were asked for by the replay
	left  int      // results that the dead letters tell of after the replay
}

func newReplayed(t *testing.T, form *formservice.Form, def func(w *world) *definition.Definition) *replayed {
	t.Helper()
	r := &replayed{world: newWorld(t, form)}
	r.def = def(r.world)
	r.def.Schema = numbers("")
	r.first = r.run(r.def)
	return r
}

// replay does what the command does.
func (r *replayed) replay() {
	r.t.Helper()
	var err error
	if r.found, err = pipelines.FindRejects(r.t.Context(), r.def, options()); err != nil {
		r.t.Fatal(err)
	}
	r.runs, r.asked = nil, nil
	r.service.Reset()
	for _, f := range r.found {
		for _, o := range f.Options(options()) {
			report, err := pipelines.Run(r.t.Context(), r.def, o)
			if err != nil {
				r.t.Fatal(err)
			}
			r.runs = append(r.runs, report)
		}
		for _, q := range r.service.Log() {
			if _, day, ok := strings.Cut(q.Query, "fs_min_date="); ok && q.Transaction == formservice.TransactionResults {
				r.asked = append(r.asked, day[:len("2026-01-01")])
			}
		}
	}
	now, err := pipelines.FindRejects(r.t.Context(), r.def, options())
	if err != nil {
		r.t.Fatal(err)
	}
	r.left = 0
	for _, f := range now {
		r.left += f.Results
	}
}

func (r *replayed) letters() []string {
	r.t.Helper()
	names, err := filepath.Glob(filepath.Join(r.path("days"), "_rejects", "*.jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	return names
}

func dayParts(w *world) *definition.Definition {
	def := w.definition(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
	def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-02-01")
	def.Extract.Window.Days = 1
	return def
}

// rowsIn are the lines of a dataset, by id.
func rowsIn(t testing.TB, dir string) string {
	t.Helper()
	var rows []string
	for name, data := range tree(t, dir) {
		if strings.HasSuffix(name, ".ndjson") {
			rows = append(rows, strings.Fields(data)...)
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, " ")
}

// TestReplay reads the windows of rejected results again and no others, and leaves what still does
// not fit in new dead letters.
func TestReplay(t *testing.T) {
	continued := func(lookback time.Duration) func(w *world) *definition.Definition {
		return func(w *world) *definition.Definition {
			def := w.definition(days())
			def.Extract.Incremental, def.Extract.Lookback = true, lookback
			return def
		}
	}
	beside := func(w *world) *definition.Definition {
		def := dayParts(w)
		def.Outputs = append(def.Outputs, definition.Output{Path: w.path("form1.ndjson"), Format: "ndjson", Partition: definition.PartitionNone})
		return def
	}
	whole := pipelines.FormReplay{Results: 3, Whole: true}
	for _, c := range []struct {
		name     string
		more     []formservice.Result
		define   func(w *world) *definition.Definition
		from, to string // of the replay, where the definition's range has moved
		want     pipelines.FormReplay
		asked    []string // nil: any days
		rows     string   // some of the dataset's
		n, left  int      // rows, and results that the dead letters tell of
	}{
		{"parts", nil, dayParts, "", "", pipelines.FormReplay{Results: 3}, []string{"2026-01-02", "2026-01-10"}, `{"id":2,"n":2000} {"id":3,"n":3}`, 6, 1},
		{"a file, which holds its range whole", nil, beside, "", "", whole, nil, `{"id":5,"n":5000}`, 6, 1},
		{"a first part without a beginning, beyond the lookback", []formservice.Result{
			pipelinestest.Result(50, "2026-01-01 08:00:00", "50.000"), pipelinestest.Result(51, "2026-01-04 08:00:00", "51.000"),
		}, continued(24 * time.Hour), "", "", pipelines.FormReplay{Results: 5}, nil, `{"id":50,"n":50000}`, 8, 1},
		{
			"a result without a date, which only a run of everything looks for",
			[]formservice.Result{pipelinestest.Result(50, "", "50.000")},
			continued(definition.DefaultLookback), "", "",
			pipelines.FormReplay{Results: 4, Whole: true, Full: true},
			nil, `{"id":50,"n":50000}`, 7, 1,
		},
		{"what lies before the range", nil, beside, "2026-01-05", "2026-02-01", whole, nil, `{"id":5,"n":5000}`, 5, 2},
		{"a result without a date and a bounded range", []formservice.Result{pipelinestest.Result(50, "", "50.000")}, func(w *world) *definition.Definition {
			return w.definition(days())
		}, "2026-01-01", "2026-02-01", pipelines.FormReplay{Results: 4}, nil, `{"id":5,"n":5000}`, 6, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReplayed(t, numbered(c.more...), c.define)
			before := r.letters()
			if r.def.Schema = numbers("."); c.from != "" {
				r.def.Extract.From, r.def.Extract.To = extracttest.Wall(c.from), extracttest.Wall(c.to)
			}
			r.replay()
			f := r.found[0]
			if f.Results != c.want.Results || f.Whole != c.want.Whole || f.Full != c.want.Full {
				t.Errorf("found %+v, want %+v", f, c.want)
			}
			if slices.Sort(r.asked); c.asked != nil && !slices.Equal(r.asked, c.asked) {
				t.Errorf("asked for %v", r.asked)
			}
			if got := rowsIn(t, r.path("days")); !strings.Contains(got, c.rows) || strings.Count(got, "id") != c.n || r.left != c.left {
				t.Errorf("rows %s, %d results left", got, r.left)
			}
			if six := r.letters(); slices.Equal(six, before) && c.left == 1 {
				t.Errorf("the dead letters are %v still", six)
			}
		})
	}
}
