package pipelines_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
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

// TestOtherChoicesByV2 holds that somebody who typed a text for a choice has chosen it. Its
// column is true, and the text has none, also where it is the label of another choice. All
// other forms of the list keep the text.
func TestOtherChoicesByV2(t *testing.T) {
	w := newWorld(t, formservice.NewForm("form1", []formservice.Item{{ID: "206", Type: "checkbox", Index: 2, Label: "Colours"}}, []formservice.Result{
		picked(1, 1, "Another: ALL"), picked(2, 1, "blue", "Another: blue"), picked(3, 2, "blue"), picked(4, 2), picked(5, 3, "Another"), picked(6, 3, "Nameless: mine"),
	})).byV2()
	typed := regexp.MustCompile(`"value":"(Another|Nameless): (\w+)"`)
	service := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		w.service.ServeHTTP(answer, r)
		maps.Copy(rw.Header(), answer.Header())
		rw.Header().Del("Content-Length")
		rw.WriteHeader(answer.Code)
		body := typed.ReplaceAllString(answer.Body.String(), `"other":"$2","value":"$1"`)
		_, _ = io.WriteString(rw, strings.ReplaceAll(body, "Nameless", ""))
	}))
	defer service.Close()
	w.source.BaseURL = service.URL
	w.run(w.coloured(schemas.Column{ListAs: schemas.ListColumns, Explode: true},
		definition.Output{Path: "f.csv", Format: "csv"}, definition.Output{Path: "f.ndjson", Format: "ndjson"}))
	for name, want := range map[string]string{
		"f.csv":             "id,colours__another,colours__blue\n1,true,false\n2,true,true\n3,false,true\n4,,\n5,true,false\n6,false,false\n",
		"f__colours.csv":    "id,position,colours\n1,1,ALL\n2,1,blue\n2,2,blue\n3,1,blue\n5,1,Another\n6,1,mine\n",
		"f.ndjson":          `{"id":1,"colours":["ALL"]}{"id":2,"colours":["blue","blue"]}{"id":3,"colours":["blue"]}{"id":4,"colours":null}{"id":5,"colours":["Another"]}{"id":6,"colours":["mine"]}`,
		"f__colours.ndjson": `{"id":1,"position":1,"colours":"ALL"}{"id":2,"position":1,"colours":"blue"}{"id":2,"position":2,"colours":"blue"}{"id":3,"position":1,"colours":"blue"}{"id":5,"position":1,"colours":"Another"}{"id":6,"position":1,"colours":"mine"}`,
	} {
		got := w.read(name)
		if strings.HasSuffix(name, ".ndjson") {
			got = strings.ReplaceAll(got, "\n", "")
		}
		if got != want {
			t.Errorf("%s holds %s, want %s", name, got, want)
		}
	}
	w.run(w.coloured(schemas.Column{}, definition.Output{Path: "joined.csv", Format: "csv"}))
	if got, want := w.read("joined.csv"), "id,colours\n1,ALL\n2,blue|blue\n3,blue\n4,\n5,Another\n6,mine\n"; got != want {
		t.Errorf("joined: %s, want %s", got, want)
	}
}
