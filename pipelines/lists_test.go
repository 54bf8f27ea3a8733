package pipelines_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// picked is a result of a day of January with the colours that were chosen;
// nil is an item that was not answered, none an empty answer.
func picked(id int64, day int, colours ...string) formservice.Result {
	r := pipelinestest.Result(id, fmt.Sprintf("2026-01-%02d 09:00:%02d", day, id%60), "x")
	if colours != nil {
		r.Items = append(r.Items, formservice.Answer{ID: "206", Type: "checkbox", Index: 2, Values: colours})
	}
	return r
}

// none is the answer of somebody who chose nothing.
func none() []string { return []string{""} }

// colourForm is a form of four days whose last day has a colour more.
func colourForm() *formservice.Form {
	items := []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Answer"},
		{ID: "206", Type: "checkbox", Index: 2, Label: "Colours"},
	}
	return formservice.NewForm("form1", items, []formservice.Result{
		picked(1, 1, "red", "blue"), picked(2, 1), picked(3, 1, none()...),
		picked(4, 2, "blue"), picked(5, 2, "light green", "red"),
		picked(6, 3), picked(7, 3, none()...),
		picked(8, 4, "amber"), picked(9, 4, "red", "red"),
	})
}

// colourSchema has the list as the test wants it.
func colourSchema(list schemas.Column) *schemas.Schema {
	list.Name, list.From = "colours", schemas.Source{Kind: schemas.FromItem, ID: "206"}
	list.Type = schemas.Type{Kind: schemas.List, Elem: &schemas.Type{Kind: schemas.String}}
	return &schemas.Schema{Name: "colours", Unknown: schemas.UnknownIgnore, Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		list,
	}}
}

// coloured reads January's days window by window.
func (w *world) coloured(list schemas.Column, outputs ...definition.Output) *definition.Definition {
	def := w.daily(outputs...)
	def.File, def.Schema = w.path("definition.yaml"), colourSchema(list)
	if err := def.Explode(); err != nil {
		w.t.Fatal(err)
	}
	return def
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// TestOtherAnswers: by both generations of the service a choice and the text that was typed beside it
// stand apart, and 600 of them are no error. API v1 tells the texts alone, so that it needs the
// choices.
func TestOtherAnswers(t *testing.T) {
	results := make([]formservice.Result, 0, 605)
	results = append(results, picked(1, 1, "red", "teal"), picked(2, 1, "blue"), picked(3, 2, "mauve", "a|b"), picked(4, 2), picked(5, 3, none()...))
	for i := range int64(600) {
		results = append(results, picked(10+i, 4, "red", fmt.Sprint("my own ", i)))
	}
	w := newWorld(t, formservice.NewForm("form1", []formservice.Item{
		{ID: "206", Type: "checkbox", Index: 2, Label: "Colours", Choices: []string{"red", "blue"}},
	}, results)).byV2()
	apart := schemas.Column{ListAs: schemas.ListColumns, Other: schemas.OtherColumn}
	declared := apart
	declared.Choices = []string{"red", "blue"}
	for name, c := range map[string]struct {
		api  definition.API
		list schemas.Column
		want []string
	}{
		"v1":        {definition.APIv1, declared, []string{"id,colours__red,colours__blue,colours_other", "1,true,false,teal", "2,false,true,", `3,false,false,mauve|a\|b`, "4,,,", "5,false,false,"}},
		"v2":        {definition.APIv2, declared, []string{"id,colours__red,colours__blue,colours__other,colours_other", "1,true,false,true,teal", "2,false,true,false,", `3,false,false,true,mauve|a\|b`, "4,,,,", "5,false,false,false,"}},
		"v2, met":   {definition.APIv2, apart, []string{"id,colours__other,colours__blue,colours__red,colours_other", "1,true,false,true,teal", "2,false,true,false,"}},
		"v1 alone":  {definition.APIv1, schemas.Column{}, []string{"id,colours", "1,red|teal", "2,blue", `3,mauve|a\|b`}},
		"v2 inline": {definition.APIv2, schemas.Column{Other: schemas.OtherInline}, []string{"id,colours", "1,red|teal", "2,blue", `3,mauve|a\|b`, "4,", `5,""`}},
	} {
		def := w.coloured(c.list, definition.Output{Path: name + ".csv", Format: "csv"})
		def.Source.API = c.api
		def.Schema.AddTyped(schemas.ByID, func(c schemas.Column) bool { return c.Other == schemas.OtherColumn })
		w.run(def)
		got := strings.Split(w.read(name+".csv"), "\n")
		if len(got) != 607 || !slices.Equal(got[:len(c.want)], c.want) {
			t.Errorf("%s: %d lines, %q, want %q", name, len(got), got[:len(c.want)], c.want)
		}
	}
	def := w.coloured(schemas.Column{}, definition.Output{Path: "alone.csv", Format: "csv"})
	def.Schema, def.Names = nil, schemas.ByHeading
	w.run(def)
	if got := w.read("alone.csv"); !strings.Contains(got, ",Colours,Colours (other)\n") || !strings.Contains(got, ",red|Other,teal\n") {
		t.Errorf("without a schema: %.300s", got)
	}
	many := w.coloured(schemas.Column{ListAs: schemas.ListColumns}, definition.Output{Path: "many.csv", Format: "csv"})
	many.Source.API = definition.APIv1
	if _, err := pipelines.Run(t.Context(), many, options()); !strings.Contains(extracttest.MustAs[*definition.Fault](t, err).Cure, "in choices: and write other: column") {
		t.Errorf("many choices: %v", err)
	}
}
