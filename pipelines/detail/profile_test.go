package detail

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

func typeOf(t *testing.T, text string) schemas.Type {
	t.Helper()
	kind, err := schemas.ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

func item(id string) schemas.Source { return schemas.Source{Kind: schemas.FromItem, ID: id} }

func meta(id string) schemas.Source { return schemas.Source{Kind: schemas.FromMeta, ID: id} }

// batch makes rows of columns from JSON.
func batch(t *testing.T, columns []schemas.Column, rows string) arrow.RecordBatch {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, schemas.ArrowSchema(columns), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	return b
}

// TestProfile measures a column of each type. Columns with a rule have neither choices nor
// a measure, whatever the statistics say.
func TestProfile(t *testing.T) {
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	columns := make([]schemas.Column, 0, 12)
	for _, c := range []struct{ name, kind string }{
		{"whole", "int64"},
		{"real", "float64"},
		{"money", "decimal(12,2)"},
		{"day", "date"},
		{"at", "timestamp"},
		{"is", "bool"},
		{"text", "string"},
		{"list", "list<string>"},
		{"choice", "string"},
		{"none", "int64"},
		{"secret", "int64"},
		{"name", "string"},
	} {
		columns = append(columns, schemas.Column{Name: c.name, From: item(c.name), Type: typeOf(t, c.kind), Label: "The " + c.name})
	}
	columns[10].PII, columns[11].PII = schemas.PII{Kind: schemas.PIIHMAC}, schemas.PII{Kind: schemas.PIITruncate, Keep: 2}
	rows := batch(t, columns, `[
		{"whole": 7, "real": 1e300, "money": "12.50", "day": "2026-02-03", "at": "2026-01-01T05:00:00Z", "is": true, "text": "äöü", "list": ["a", "b"], "choice": "yes", "secret": 4711, "name": "Ja"},
		{"whole": -3, "real": -0.5, "money": "-0.05", "day": "1999-12-31", "at": "2026-07-01T05:00:00Z", "is": true, "text": "", "list": [], "choice": "no", "secret": 4712, "name": "Jo"},
		{}]`)
	stats := transform.Stats{Rows: 3, Seen: map[schemas.Source]transform.Seen{
		item("choice"): {Filled: 2, Choices: map[string]int64{"yes": 1, "no": 1, "a": 5, "b": 4, "c": 3, "d": 2}},
		item("list"):   {Filled: 2, Many: true}, item("secret"): {Filled: 2}, item("name"): {Filled: 2, Choices: map[string]int64{"Ja": 1}},
	}}
	o, windows := New(chicago), daily(1)
	o.Begin(columns)
	o.Rows(windows[0], rows)
	o.Finish(columns, windows, stats)
	got := map[string]Column{}
	for _, c := range o.End(windows).Columns {
		got[c.Name] = c
	}
	for name, want := range map[string]Measure{
		"whole": {Values, "-3", "7"}, "real": {Values, "-0.5", "1e+300"}, "money": {Values, "-0.05", "12.50"}, "day": {Values, "1999-12-31", "2026-02-03"},
		"at": {Values, "2025-12-31 23:00:00", "2026-07-01 00:00:00"}, "text": {Characters, "0", "3"}, "list": {Elements, "0", "2"}, "is": {}, "none": {}, "secret": {}, "name": {},
	} {
		if got[name].Measure != want {
			t.Errorf("%s: %+v, want %+v", name, got[name].Measure, want)
		}
	}
	for name, want := range map[string][]Choice{
		"is": {{"true", 2}}, "choice": {{"a", 5}, {"b", 4}, {"c", 3}, {"d", 2}, {"no", 1}}, "name": nil, "secret": nil, "list": nil,
	} {
		if !reflect.DeepEqual(got[name].Choices, want) {
			t.Errorf("%s: %v, want %v", name, got[name].Choices, want)
		}
	}
	if c := got["choice"]; c.Distinct != 6 || c.Nulls != 1 || c.Label != "The choice" || !got["list"].Many || got["name"].PII != "truncate(2)" || got["name"].Nulls != 1 {
		t.Errorf("%+v", got)
	}
}

// TestUnknownColumns: a column that nobody knew when the rows came may have a rule, so it
// is not looked at.
func TestUnknownColumns(t *testing.T) {
	columns := []schemas.Column{{Name: "known", From: item("1"), Type: typeOf(t, "int64")}, {Name: "late", From: item("2"), Type: typeOf(t, "int64")}}
	o := New(time.UTC)
	o.Begin(columns[:1])
	o.Rows(daily(1)[0], batch(t, columns, `[{"known": 1, "late": 2}]`))
	o.Finish(columns, nil, transform.Stats{Rows: 1})
	if c := o.End(nil).Columns; c[0].Measure.Least != "1" || c[1].Measure != (Measure{}) {
		t.Errorf("%+v", c)
	}
}

// TestDays: the windows tell the day where they lie within one, else the dates of the rows
// that lie in the window.
func TestDays(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	columns := []schemas.Column{
		{Name: "updated", From: meta("date_update"), Type: typeOf(t, "timestamp")},
		{Name: "started", From: meta("date_start"), Type: typeOf(t, "timestamp")},
		{Name: "finished", From: meta("date_finish"), Type: typeOf(t, "timestamp")},
		{Name: "asked", From: item("1"), Type: typeOf(t, "timestamp")},
	}
	long := daily(1)[0]
	long.Planned.Window = extract.Window{From: extracttest.Wall("2026-01-10"), To: extracttest.Wall("2026-01-20")}
	undated := daily(1)[0]
	undated.Undated = &reading.Undated{}
	windows := append(daily(2), long, undated)
	o := New(tokyo)
	o.Begin(columns)
	o.Rows(windows[0], batch(t, columns, `[{"finished": "2026-01-15T00:00:00Z"}]`)) // its window knows better
	o.Rows(long, batch(t, columns, `[
		{"finished": "2026-01-11T15:00:00Z", "started": "2026-01-10T15:00:00Z"},
		{"finished": "2026-02-11T15:00:00Z", "started": "2026-01-12T14:59:59Z", "updated": "2026-01-15T00:00:00Z"},
		{"updated": "2026-01-18T00:00:00Z"},
		{"asked": "2026-01-15T00:00:00Z"}, {}]`))
	o.Rows(undated, batch(t, columns, `[{"finished": "2026-01-15T00:00:00Z"}]`))
	o.Finish(columns, windows, transform.Stats{})
	f := o.End(windows)
	got := ""
	for _, d := range f.Days {
		got += fmt.Sprintf("%s %d+%d, ", d.Day.Format(time.DateOnly), d.Rows, d.Rejected)
	}
	if want := "2026-01-01 10+1, 2026-01-02 10+1, 2026-01-12 2+0, 2026-01-18 1+0, "; got != want || f.Dayless != 2 {
		t.Errorf("%s and %d without a day, want %s and 2", got, f.Dayless, want)
	}
}

// TestProtectedDates: a date under a rule tells nobody the day of a result.
func TestProtectedDates(t *testing.T) {
	columns := []schemas.Column{{Name: "finished", From: meta("date_finish"), Type: typeOf(t, "timestamp"), PII: schemas.PII{Kind: schemas.PIIRedact}}}
	long := daily(1)[0]
	long.Planned.Window = extract.Window{From: extracttest.Wall("2026-01-10"), To: extracttest.Wall("2026-01-20")}
	o := New(time.UTC)
	o.Begin(columns)
	o.Rows(long, batch(t, columns, `[{"finished": "2026-01-15T00:00:00Z"}]`))
	o.Finish(columns, nil, transform.Stats{})
	if f := o.End(nil); len(f.Days) != 0 || f.Dayless != 1 {
		t.Errorf("%+v", f)
	}
}

// TestMostDays: days are bounded, whatever dates there are.
func TestMostDays(t *testing.T) {
	var d days
	for i := range mostDays + 10 {
		d.add(start.AddDate(0, 0, i), 2, 0)
	}
	if len(d.list()) != mostDays || d.dayless != 20 {
		t.Errorf("%d days, %d without", len(d.list()), d.dayless)
	}
}
