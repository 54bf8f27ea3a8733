package pipelines_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// question reads "id type label".
func question(index int, text string) formservice.Item {
	words := strings.SplitN(text, " ", 3)
	it := formservice.Item{ID: words[0], Type: words[1], Index: index}
	if len(words) == 3 {
		it.Label = words[2]
	}
	return it
}

// driftingForm is a form whose questions change while results come in.
type driftingForm struct {
	w    *world
	form *formservice.Form
	day  int
}

// next makes the form of the next day: its questions, and two results that
// answer all of them, those of several with two values.
func (l *driftingForm) next(questions []string, several ...string) {
	l.w.t.Helper()
	items := make([]formservice.Item, 0, len(questions))
	for i, q := range questions {
		items = append(items, question(i+1, q))
	}
	l.day++
	var results []formservice.Result
	if l.form != nil {
		results = pipelinestest.Truth(l.form, nil)
	}
	for n := range 2 {
		r := formservice.Result{ID: int64(10*l.day + n), Metas: []formservice.Meta{
			{ID: "result_status", Value: "Complete"}, {ID: "date_finish", Value: fmt.Sprintf("2026-01-%02d 1%d:00:00", l.day, n)},
		}}
		for _, it := range items {
			a := formservice.Answer{ID: it.ID, Values: []string{fmt.Sprintf("%s of day %d", it.ID, l.day)}}
			if slices.Contains(several, it.ID) {
				a.Values = append(a.Values, "and more")
			}
			r.Items = append(r.Items, a)
		}
		results = append(results, r)
	}
	l.form = formservice.NewForm("form1", items, results)
	l.form.Metas = []string{"result_status", "date_finish"}
	l.w.service.SetForms(l.form)
}

// run reads what came up to the end of the day.
func (l *driftingForm) run(def *definition.Definition, o pipelines.Options) *pipelines.FormReport {
	l.w.t.Helper()
	o.Now = zoned(l.w.t, l.w, fmt.Sprintf("2026-01-%02d 23:00:00", l.day))
	report, err := pipelines.Run(l.w.t.Context(), def, o)
	if err != nil {
		l.w.t.Fatalf("day %d: %v", l.day, err)
	}
	return report.Forms[0]
}

// days is the definition of the tests' incremental runs.
func (w *world) days(outputs ...definition.Output) *definition.Definition {
	if outputs == nil {
		outputs = []definition.Output{{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay}}
	}
	def := w.definition(slices.Clone(outputs)...)
	def.File = w.path("definition.yaml")
	def.Extract.From, def.Extract.Incremental = extracttest.Wall("2026-01-01"), true
	return def
}

// TestDriftIsReportedOnce over runs of a form that changes: incremental ones
// that see a day, ones that read everything again, and ones to a single file.
func TestDriftIsReportedOnce(t *testing.T) {
	first := []string{"1 text Name", "2 text Age", "3 text Fax", "4 text Tags", "5 text"}
	later := []string{"4 text Tags", "1 text Full name", "9 email E-mail", "2 number Age"}
	back := append(slices.Clone(later), "3 text Fax")
	steps := []struct {
		questions, several []string
		want, drift        string
	}{
		{first, nil, "", ""},
		{first, nil, "", ""},
		{later, nil, strings.Join([]string{
			"relabelled item:1 item_1 [Name] [Full name]",
			"retyped item:2 item_2 item_type [text] [number]",
			"removed item:3 item_3 [string] [] Fax breaks",
			"added item:9 item_9 [] [string] E-mail",
		}, "\n"), "added: item_9"},
		{later, nil, "", ""},
		{back, nil, "added item:3 item_3 [] [string] Fax", ""},
		{back, []string{"4"}, "retyped item:4 item_4 type [string] [list<string>] x2", "2 results had several values"},
		{back, []string{"4"}, "", "results had several values"},
	}
	day := definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay}
	file := definition.Output{Path: "form1.csv", Format: "csv"}
	for name, c := range map[string]struct {
		outputs     []definition.Output
		incremental bool
	}{
		"incremental": {[]definition.Output{day}, true},
		"everything":  {[]definition.Output{day, file}, false},
		"a file":      {[]definition.Output{file}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &driftingForm{w: newWorld(t)}
			for _, s := range steps {
				l.next(s.questions, s.several...)
				def := l.w.days(c.outputs...)
				def.Extract.Incremental = c.incremental
				got := l.run(def, options())
				if pipelinestest.ChangeLines(got.Changes) != s.want {
					t.Errorf("day %d: got\n%s\nwant\n%s", l.day, pipelinestest.ChangeLines(got.Changes), s.want)
				}
				if drift := strings.Join(got.Drift, "\n"); (drift == "") != (s.drift == "") || !strings.Contains(drift, s.drift) {
					t.Errorf("day %d: drift %q, want %q", l.day, drift, s.drift)
				}
			}
		})
	}
}

// TestDriftOfRunsThatFail by the form or its results: what was seen of the form
// until then is reported, and again by the next run.
func TestDriftOfRunsThatFail(t *testing.T) {
	first, later := []string{"1 text Name", "3 text Fax"}, []string{"1 text Full name", "6 text Six", "7 text Seven"}
	columns := func(typ string) []schemas.Column {
		return []schemas.Column{
			{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
			{Name: "state", From: schemas.Source{Kind: schemas.FromMeta, ID: "result_status"}, Type: schemas.Type{Kind: schemas.String}},
			{Name: "at", From: schemas.Source{Kind: schemas.FromMeta, ID: "date_finish"}, Type: schemas.Type{Kind: schemas.String}, OnError: schemas.OnErrorReject},
			{Name: "name", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.String}},
			{Name: "fax", From: schemas.Source{Kind: schemas.FromItem, ID: "3"}, Type: schemas.Type{Kind: schemas.String}, Required: typ == "required"},
		}
	}
	const form = "relabelled item:1 name [Name] [Full name]\nremoved item:3 fax [string] [] Fax breaks\n"
	for _, c := range []struct {
		unknown schemas.Unknown
		fax     string
		fails   any
		want    string
	}{
		{schemas.UnknownFail, "", new(*transform.UnknownFieldError), form + "added item:6  [] [] Six breaks\nadded item:7  [] [] Seven breaks"},
		{schemas.UnknownAdd, "required", new(*reading.RejectsError), form + "added item:6 item_6 [] [string] Six\nadded item:7 item_7 [] [string] Seven"},
	} {
		t.Run(string(c.unknown), func(t *testing.T) {
			l := &driftingForm{w: newWorld(t)}
			def := l.w.days()
			def.Schema = &schemas.Schema{Name: "s", Unknown: schemas.UnknownFail, Columns: columns("")}
			l.next(first)
			l.run(def, options())
			l.next(later)
			def.Schema = &schemas.Schema{Name: "s", Unknown: c.unknown, Columns: columns(c.fax)}
			for range 2 {
				o := options()
				o.Now = zoned(t, l.w, "2026-01-02 23:00:00")
				report, err := pipelines.Run(t.Context(), def, o)
				if !errors.As(err, c.fails) {
					t.Fatalf("the run ended with %v", err)
				}
				if got := pipelinestest.ChangeLines(report.Forms[0].Changes); got != c.want {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
			}
		})
	}
}

// TestDriftOfFull: a run that replaces the dataset tells of every column that this drops or
// renames, whether the form or the schema changed.
func TestDriftOfFull(t *testing.T) {
	l := &driftingForm{w: newWorld(t)}
	l.next([]string{"1 text Name", "3 text Fax"})
	l.run(l.w.days(), options())
	for _, r := range pipelinestest.Truth(l.form, nil) {
		l.form.Delete(r.ID)
	}
	l.next([]string{"1 text Name", "7 text Mobile"})
	o := options()
	o.Full = true
	for i, want := range []string{
		"added item:7 item_7 [] [string] Mobile\nremoved item:3 item_3 [string] [] Fax breaks", "",
		"renamed result_id id [result_id] [id] breaks\nrenamed item:1 answer [item_1] [answer] breaks\nremoved meta:result_status result_status [string] [] Result status breaks\nremoved meta:date_finish date_finish [timestamp] [] Date finish breaks\nremoved item:7 item_7 [string] [] Mobile breaks",
	} {
		def := l.w.days()
		if i == 2 {
			def.Schema = declared(t, schemas.UnknownIgnore, "", "string")
		}
		if got := l.run(def, o); pipelinestest.ChangeLines(got.Changes) != want {
			t.Errorf("run %d: got\n%s\nwant\n%s", i+1, pipelinestest.ChangeLines(got.Changes), want)
		}
	}
}

// TestQuietDaysAreNoDrift: a run without results, or in which nobody answered
// a question, takes nothing for removed or moved.
func TestQuietDaysAreNoDrift(t *testing.T) {
	l := &driftingForm{w: newWorld(t)}
	run := func(want string) {
		t.Helper()
		if got := l.run(l.w.days(), options()); pipelinestest.ChangeLines(got.Changes) != want {
			t.Errorf("day %d: got\n%s\nwant\n%s", l.day, pipelinestest.ChangeLines(got.Changes), want)
		}
	}
	l.next([]string{"1 text A", "2 text B", "3 text C"})
	run("")
	l.day += 5
	run("") // nothing came
	// Two questions stand before the others now. On that day nobody answers B
	// and C, whose places are known from before; on the next day all do.
	now := []string{"8 text X", "9 text Y", "1 text A", "2 text B", "3 text C"}
	l.next(now)
	for n := range int64(2) {
		r, _ := l.form.Get(int64(10*l.day) + n)
		r.Items = r.Items[:3]
		if err := l.form.Update(r); err != nil {
			t.Fatal(err)
		}
	}
	run("added item:8 item_8 [] [string] X\nadded item:9 item_9 [] [string] Y")
	l.day += 5
	l.next(now)
	run("")
}
