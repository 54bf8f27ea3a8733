package v2_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

// latestResults are results that show choices (5), a scale of numbers (6), typed choices (319),
// a choice that nobody made (7), a text (8), files (9) and columns of texts (41-0).
const latestResults = `{"results":[
 {"id":"2","items":[
  {"id":"5","values":[{"position":1,"value":"Phone"}]},
  {"id":"6","values":[{"position":0,"value":"10"},{"position":1,"value":"20"}]},
  {"id":"319","values":[{"other":"Teal","position":2,"value":"Another"},{"position":0,"value":"Red"}]},
  {"id":"7","values":[]},{"id":"8","value":"x"},
  {"id":"9","values":[{"position":0,"value":"https://a.example/1"}]},
  {"id":"41-0","values":[{"position":0,"value":"a"},{"position":1,"value":"b"}]}]},
 {"id":"1","items":[{"id":"10","values":[{"value":"y"}]},
  {"id":"5","values":[{"position":"0","value":"E-mail"}]},
  {"id":"9","values":[{"position":0,"value":"https://a.example/2"}]},
  {"id":"41-0","values":[{"position":0,"value":"c"},{"position":1,"value":""}]}]}]}`

func TestChoicesAreSearchedByPosition(t *testing.T) {
	asked, term := 0, ""
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sort_direction") == "desc" {
			asked++
			if asked == 1 {
				http.Error(w, `{"error":{"message":"no","status":422}}`, http.StatusUnprocessableEntity)
				return
			}
			_, _ = w.Write([]byte(latestResults))
			return
		}
		term = ""
		for name, values := range r.URL.Query() {
			if strings.HasPrefix(name, "search_") {
				term += name + "=" + values[0]
			}
		}
		_, _ = w.Write([]byte(`{"results":[]}`))
	}, nil)
	ask := func(column string, operator extract.Operator, text string) (string, error) {
		q := extract.ResultsQuery{Search: extract.Search{Where: []extract.Criterion{{Column: column, Operator: operator, Term: text}}}}
		p, err := c.Results(t.Context(), "f", q)
		if err == nil {
			p.Release()
		}
		if q.Search.Where[0].Term != text {
			t.Error("the caller's search was changed")
		}
		return term, err
	}
	if _, err := ask("5", extract.OpEquals, "Phone"); err == nil {
		t.Error("choices that could not be asked for are known")
	}
	for _, try := range []struct {
		column   string
		operator extract.Operator
		text     string
		want     string // the parameter, or what the error says
	}{
		{"5", extract.OpEquals, "Phone", "search_equals[5]=1"},
		{"5", extract.OpEquals, "E-mail", "search_equals[5]=0"},
		{"5", extract.OpEquals, "7", "search_equals[5]=7"},
		{"5", extract.OpEquals, "Fax", `API v2 cannot do the search 5 equals "Fax": it finds only choices that the latest results have: "E-mail", "Phone"; search for one of these; an older choice, or a text that somebody typed, needs API v1`},
		{"5", extract.OpBegins, "Ph", `cannot do the search 5 begins "Ph": a question with choices can only be searched by equals, for a whole choice`},
		{"6", extract.OpEquals, "20", "search_equals[6]=1"},
		{"6", extract.OpEquals, "1", `the latest results have: "10", "20"`},
		{"319", extract.OpEquals, "Red", "search_equals[319]=0"},
		{"319", extract.OpEquals, "Another", `the service cannot search for the choice "Another"`},
		{"319", extract.OpEquals, "Teal", `the latest results have: "Red"`},
		{"7", extract.OpEquals, "Yes", "the latest results have: none"},
		{"8", extract.OpEquals, "Phone", "search_equals[8]=Phone"},
		{"8", extract.OpContains, "x", "search_contains[8]=x"},
		{"9", extract.OpEquals, "https://a.example/1", "search_equals[9]=https://a.example/1"},
		{"41-0", extract.OpEnds, "b", "search_ends[41-0]=b"},
		{"10", extract.OpContains, "x", "search_contains[10]=x"},
		{"99", extract.OpEquals, "never seen", "search_equals[99]=never seen"},
		{"result_status", extract.OpEquals, "Unconfirmed", "search_equals[result_status]=Incomplete"},
		{"result_status", extract.OpEquals, "Failed", "search_equals[result_status]=Failed"},
		{"user_ip", extract.OpEquals, "1", "search_equals[user_ip]=1"},
	} {
		got, err := ask(try.column, try.operator, try.text)
		if refused, ok := errors.AsType[*transport.Error](err); ok {
			got = refused.Error()
		} else if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, try.want) {
			t.Errorf("%v: %s", try, got)
		}
	}
	if asked != 2 {
		t.Errorf("choices were asked for %d times", asked)
	}
}
