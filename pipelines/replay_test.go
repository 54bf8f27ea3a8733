package pipelines_test

import (
	"os"
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
	found *pipelines.Replay
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
	if r.found, err = pipelines.FindRejects(r.t.Context(), r.def, options().Options); err != nil {
		r.t.Fatal(err)
	}
	r.runs, r.asked = nil, nil
	r.service.Reset()
	for _, f := range r.found.Forms {
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
	now, err := pipelines.FindRejects(r.t.Context(), r.def, options().Options)
	if err != nil {
		r.t.Fatal(err)
	}
	r.left = 0
	for _, f := range now.Forms {
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

// TestReplayReadsTheRejectedWindows and no others, and leaves what still does
// not fit in new dead letters.
func TestReplayReadsTheRejectedWindows(t *testing.T) {
	r := newReplayed(t, numbered(), dayParts)
	before := r.letters()
	if r.first.Forms[0].Rejected != 3 || len(before) != 2 {
		t.Fatalf("rejected %d, dead letters %v", r.first.Forms[0].Rejected, before)
	}
	r.def.Schema = numbers(".")
	r.replay()
	f := r.found.Forms[0]
	if f.Results != 3 || f.Objects != 2 || len(f.Ranges) != 2 || f.Whole || f.Ranges[0].From.String() != "2026-01-02 00:00:00" {
		t.Errorf("found %+v", f)
	}
	if slices.Sort(r.asked); !slices.Equal(r.asked, []string{"2026-01-02", "2026-01-10"}) {
		t.Errorf("asked for %v", r.asked)
	}
	if got := rowsIn(t, r.path("days")); got != `{"id":1,"n":1} {"id":2,"n":2000} {"id":3,"n":3} {"id":4,"n":4} {"id":5,"n":5000} {"id":7,"n":7}` {
		t.Errorf("rows %s", got)
	}
	after := r.letters()
	if len(after) != 1 || slices.Contains(before, after[0]) || r.left != 1 {
		t.Errorf("dead letters %v, %d results left", after, r.left)
	}
	if data, err := os.ReadFile(after[0]); err != nil || strings.Count(string(data), "\n") != 1 || !strings.Contains(string(data), `"six"`) {
		t.Errorf("%s %v", data, err)
	}
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

// TestReplayOfAFile: it holds its range whole, so all of it is read again.
func TestReplayOfAFile(t *testing.T) {
	r := newReplayed(t, numbered(), func(w *world) *definition.Definition {
		def := dayParts(w)
		def.Outputs = append(def.Outputs, definition.Output{Path: w.path("form1.ndjson"), Format: "ndjson", Partition: definition.PartitionNone})
		return def
	})
	r.def.Schema = numbers(".")
	r.replay()
	if f := r.found.Forms[0]; !f.Whole || f.Full || f.Objects != 3 || f.Results != 3 || len(r.runs) != 1 {
		t.Errorf("found %+v, %d runs", f, len(r.runs))
	}
	data, err := os.ReadFile(r.path("form1.ndjson"))
	if err != nil || strings.Count(string(data), "\n") != 6 || len(r.letters()) != 1 {
		t.Errorf("%s %v %v", data, err, r.letters())
	}
	if data, err = os.ReadFile(r.path("form1.ndjson.rejects.jsonl")); err != nil || strings.Count(string(data), "\n") != 1 {
		t.Errorf("%s %v", data, err)
	}
}

// TestReplayOfTheFirstPart in a dataset that goes on from a watermark: the part has no
// beginning, and lies further back than the lookback of a run up to the same end.
func TestReplayOfTheFirstPart(t *testing.T) {
	form := numbered(pipelinestest.Result(50, "2026-01-01 08:00:00", "50.000"), pipelinestest.Result(51, "2026-01-04 08:00:00", "51.000"))
	r := newReplayed(t, form, func(w *world) *definition.Definition {
		def := w.definition(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
		def.Extract.Incremental, def.Extract.Lookback = true, 24*time.Hour
		return def
	})
	r.def.Schema = numbers(".")
	r.replay()
	if f := r.found.Forms[0]; f.Results != 5 || r.left != 1 {
		t.Errorf("found %+v, %d results left", f, r.left)
	}
	if got := rowsIn(t, r.path("days")); !strings.Contains(got, `{"id":50,"n":50000}`) || strings.Count(got, "id") != 8 {
		t.Errorf("rows %s", got)
	}
	if read := r.runs[0].Forms[0].Range; !read.From.IsZero() {
		t.Errorf("it read %s", read)
	}
}

// TestReplayOfAResultWithoutADate in a dataset that goes on from a watermark:
// only a run that replaces everything looks for such results.
func TestReplayOfAResultWithoutADate(t *testing.T) {
	r := newReplayed(t, numbered(pipelinestest.Result(50, "", "50.000")), func(w *world) *definition.Definition {
		def := w.definition(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
		def.Extract.Incremental, def.Extract.Lookback = true, definition.DefaultLookback
		return def
	})
	r.def.Schema = numbers(".")
	r.replay()
	if f := r.found.Forms[0]; !f.Whole || !f.Full || f.Results != 4 {
		t.Errorf("found %+v", f)
	}
	if got := rowsIn(t, r.path("days")); !strings.Contains(got, `{"id":50,"n":50000}`) || strings.Count(got, "id") != 7 || len(r.letters()) != 1 {
		t.Errorf("rows %s, dead letters %v", got, r.letters())
	}
}

// TestReplayKeepsWhatWasNotRead: the definition's range has moved on.
func TestReplayKeepsWhatWasNotRead(t *testing.T) {
	r := newReplayed(t, numbered(), func(w *world) *definition.Definition {
		def := dayParts(w)
		def.Outputs = append(def.Outputs, definition.Output{Path: w.path("form1.ndjson"), Format: "ndjson", Partition: definition.PartitionNone})
		return def
	})
	r.def.Schema, r.def.Extract.From = numbers("."), extracttest.Wall("2026-01-05")
	r.replay()
	if r.left != 2 || len(r.letters()) != 2 {
		t.Errorf("%d results left, in %v", r.left, r.letters())
	}
}

// told tells whether a result is among the dead letters of "days".
func (r *replayed) told(id string) bool {
	r.t.Helper()
	return slices.ContainsFunc(r.letters(), func(name string) bool {
		data, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		return strings.Contains(string(data), `"result_id":`+id+`,`)
	})
}

// TestReplayOfABoundedRange does not look for results without a date.
func TestReplayOfABoundedRange(t *testing.T) {
	r := newReplayed(t, numbered(pipelinestest.Result(50, "", "50.000")), func(w *world) *definition.Definition {
		return w.definition(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
	})
	r.def.Schema = numbers(".")
	r.def.Extract.From, r.def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-02-01")
	r.replay()
	if !r.told("50") || r.found.Forms[0].Whole || r.left != 2 {
		t.Errorf("found %+v, %d results left", r.found.Forms[0], r.left)
	}
}
