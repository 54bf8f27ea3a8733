package formservice

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestV2Parameters reads the parameters of Get Form Results. Dates of the form
// are the wall clock of Chicago, six hours behind UTC.
func TestV2Parameters(t *testing.T) {
	s := startV2(t)
	all := []int64{22, 21, 20, 17, 13, 12, 10}
	for _, c := range []struct {
		query string
		want  []int64
	}{
		{"", all},
		{"limit=2", []int64{22, 21}},
		{"limit=500&sort_direction=asc", []int64{10, 12, 13, 17, 20, 21, 22}},
		{"limit=3&page=2", []int64{17, 13, 12}},
		{"limit=3&page=4", []int64{}},
		{"after_id=13", []int64{22, 21, 20, 17}},
		{"before_id=13", []int64{12, 10}},
		{"after_id=11&before_id=13", []int64{12}},
		{"after_id=0&before_id=9223372036854775806", all},
		{"after_date=2026-01-02T06:00:00Z", []int64{21, 20, 17, 12}},
		{"after_date=2026-01-02T05:59:59.999Z", []int64{21, 20, 17, 13, 12}},
		{"before_date=2026-01-02T06:00:00Z", []int64{10}},
		{"before_date=2026-01-02T06:00:00.001Z", []int64{13, 10}},
		{"after_date=2026-01-02T05:59:59Z&before_date=2026-01-03T06:00:00Z", []int64{17, 13}},
		{"after_date=2026-01-02%2000:00:00", []int64{21, 20, 17, 12}},
		{"before_date=2026-01-02", []int64{10}},
		{"after_date=1970-01-01T00:00:00Z", []int64{21, 20, 17, 13, 12, 10}},
		{"sort_id=id", all},
		{"sort_id=result_id&sort_direction=asc&limit=1", []int64{10}},
		{"sort_id=date_finish&sort_direction=asc", []int64{21, 22, 10, 13, 17, 20, 12}},
		{"sort_id=1", []int64{12, 13, 10, 22, 21, 20, 17}},
		{"search_equals%5B1%5D=Anna", []int64{10}},
		{"search_begins%5B1%5D=Anna", []int64{13, 10}},
		{"search_equals%5B1%5D=%2B%20%26%20%25", []int64{22}},
		{"search_equals%5B206%5D=0", []int64{12, 10}},
		{"search_equals%5B206%5D=2", []int64{10}},
		{"search_equals%5B353-0-0%5D=1", []int64{20}},
		{"search_equals%5Bresult_status%5D=Incomplete", []int64{22, 21}},
		{"search_equals%5Bdate_finish%5D=2026-01-05T18:00:00.000Z", []int64{12}},
		{"search_equals%5Bdate_finish%5D=2026-01-05T18:00:00Z", []int64{12}},
		{"search_equals%5Bid%5D=13", []int64{13}},
		{"search_equals%5B1%5D=ben&search_ends%5B1%5D=a&search_method=or", []int64{12, 10}},
		{"results_view=6", []int64{22, 13, 12, 10}},
	} {
		t.Run(c.query, func(t *testing.T) { equalIDs(t, "results", s.v2IDs(t, c.query), c.want...) })
	}
}

// TestV2Refusals names every status that a request can earn.
func TestV2Refusals(t *testing.T) {
	s := startV2(t)
	const results = "/forms/form1/results?"
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "", 404},
		{"GET", "/forms/", 404},
		{"GET", "/forms/form1/results/5", 404},
		{"GET", "/forms/form1/results%2F5", 404},
		{"GET", "/forms/nothing", 404},
		{"POST", "/forms", 405},
		{"HEAD", "/forms", 405},
		{"POST", "/forms/form1/results", 405},
		{"GET", "/forms?page=1", 422},
		{"GET", "/forms/form1?limit=1", 422},
		{"GET", "/forms/form1/items?results_view=11", 422},
		{"GET", "/forms/form1/items?results_labels=99", 422},
		{"GET", results + "limit=0", 422},
		{"GET", results + "limit=501", 422},
		{"GET", results + "after_date=2026-02-30T00:00:00Z", 422},
		{"GET", results + "after_date=2026-01-01T00:00:00", 422},
		{"GET", results + "after_date=2026-01-01T00:00:00,5Z", 422},
		{"GET", results + "after_date=2026-01-01T00:00:00%2B01:00", 422},
		{"GET", results + "after_id=x", 422},
		{"GET", results + "before_id=-1", 422},
		{"GET", results + "after_id=9223372036854775807", 422},
		{"GET", results + "sort_id=nothing", 422},
		{"GET", results + "search_equals%5B99%5D=x", 422},
		{"GET", results + "search_equals=x", 422},
		{"GET", results + "search_equals[1]=x", 422},
		{"GET", results + "search_empty%5B1%5D=", 422},
		{"GET", results + "search_contains%5B206%5D=0", 422},
		{"GET", results + "search_ends%5Bresult_status%5D=e", 422},
		{"GET", results + "search_equals%5Bid%5D=x", 422},
		{"GET", results + "search_equals%5B206%5D=red", 422},
		{"GET", results + "results_view=99", 422},
		{"GET", results + "results_labels=2", 422},
		{"GET", results + "fs_limit=5", 422},
	} {
		t.Run(c.method+" "+c.target, func(t *testing.T) {
			r := s.v2(t, c.method, c.target)
			if r.status != c.status {
				t.Errorf("HTTP %d, want %d\n%s", r.status, c.status, r.body)
			}
			if c.method != "HEAD" {
				v2Error(t, r)
			}
			if r.status == 405 && r.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if got := r.header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}

// TestV2Token tells who may ask.
func TestV2Token(t *testing.T) {
	s := startV2(t)
	s.Account, s.Key = "acme", "token"
	for _, c := range []struct {
		header, target string
		status         int
	}{
		{"bearer token", "/forms", 200},
		{"Bearer token", "/forms", 200},
		{"BEARER  token", "/forms", 200},
		{"", "/forms", 401},
		{"bearer", "/forms", 401},
		{"bearer wrong", "/forms", 401},
		{"token", "/forms", 401},
		{"basic token", "/forms", 401},
		{"bearer token", "/forms?token=token", 401},
		{"bearer token", "/forms?fs_api_key=token", 401},
		{"bearer token", "/forms/form1/results?limit=5&x=token", 401},
		{"bearer token", "/forms?Access_Token=other", 401},
		{"", "/forms/nothing/results?limit=0", 401},
		{"bearer wrong", "/forms/form1/results?fs_api_key=token", 401},
		{"", "/nowhere", 404},
	} {
		r := s.v2(t, "GET", c.target, "Authorization: "+c.header)
		if r.status != c.status || (r.status == 401) != (r.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%q %s: HTTP %d, want %d", c.header, c.target, r.status, c.status)
		}
	}
	for account, want := range map[string]int{"other": 403, "nobody": 404} {
		s.Account = account
		url := service{&Server{Account: account, Key: "token"}, s.url}
		s.Account = "acme"
		if got := url.v2(t, "GET", "/forms"); got.status != want {
			t.Errorf("account %s: HTTP %d, want %d", account, got.status, want)
		}
	}
	for _, r := range s.Log() {
		if strings.Contains(r.Query, "token") || strings.Contains(r.Query, "other") {
			t.Errorf("the log holds a token: %q", r.Query)
		}
	}
}

func TestV2Forms(t *testing.T) {
	s := startV2(t)
	link := "https://" + s.url[len("http://"):] + "/acme/form1/"
	want := map[string]any{
		"directory": "form1", "name": "First <form>", "description": "A & B", "state": "open", "stats": map[string]any{"resultsCount": 7.0},
		"publish": map[string]any{"link": link, "embed_code": `<iframe src="` + link + `" width="100%"></iframe>`},
	}
	for _, target := range []string{"/forms", "/forms/form1"} {
		if got := decode[any](t, s.v2(t, "GET", target)); !reflect.DeepEqual(got, map[string]any{"forms": []any{want}}) {
			t.Errorf("%s: %v, want %v", target, got, want)
		}
	}
	s.SetFaults("v2-bare-form,v2-snake-stats")
	want["stats"] = map[string]any{"results_count": 7.0}
	if got := decode[any](t, s.v2(t, "GET", "/forms/form1")); !reflect.DeepEqual(got, any(want)) {
		t.Errorf("bare: %v, want %v", got, want)
	}
}

type v2Heading struct {
	ID       string   `json:"id"`
	Position int      `json:"position"`
	Label    string   `json:"label"`
	Children []string `json:"children"`
}

func (s service) headings(t *testing.T, query string) []v2Heading {
	t.Helper()
	r := s.v2(t, "GET", "/forms/form1/items?"+query)
	if r.status != 200 {
		t.Fatalf("HTTP %d: %s", r.status, r.body)
	}
	return decode[struct{ Items []v2Heading }](t, r).Items
}

func TestV2Items(t *testing.T) {
	s := startV2(t)
	want := []v2Heading{
		{"1", 1, "Name", nil},
		{"206", 2, "Colours\n& more ", nil},
		{"353", 3, "How was it?", []string{"353-0"}},
		{"353-0", 3, "The food", []string{"353-0-0"}},
		{"353-0-0", 3, "", nil},
	}
	if got := s.headings(t, ""); !reflect.DeepEqual(got, want) {
		t.Errorf("items %+v, want %+v", got, want)
	}
	want[2].Label, want[4].Label = "Wie war es?", "Suppe"
	if got := s.headings(t, "results_labels=3"); !reflect.DeepEqual(got, want) {
		t.Errorf("labelled items %+v, want %+v", got, want)
	}
}

// TestV2SharedPositions: the members of a matrix lie where its first one does.
func TestV2SharedPositions(t *testing.T) {
	item := func(id string, index int) Item { return Item{ID: id, Type: "matrix", Index: index, Label: id} }
	f := NewForm("form1", []Item{item("7-1", 9), item("5", 3), item("7-0", 4), item("x-1", 5), item("8", 6), item("8-0", 7)}, nil)
	s := startService(t, &Server{Forms: []*Form{f}, API: V2})
	got := s.headings(t, "")
	want := []v2Heading{
		{"5", 3, "5", nil},
		{"7", 4, "", []string{"7-0", "7-1"}},
		{"7-0", 4, "7-0", nil},
		{"7-1", 4, "7-1", nil},
		{"x-1", 5, "x-1", nil},
		{"8", 6, "8", []string{"8-0"}},
		{"8-0", 7, "8-0", nil},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("items %+v, want %+v", got, want)
	}
	s.SetFaults("v2-own-positions")
	if got := s.headings(t, ""); got[len(got)-1].ID != "7-1" || got[len(got)-1].Position != 9 {
		t.Errorf("own positions: %+v", got)
	}
}

// TestV2Shapes reads the raw members of single results.
func TestV2Shapes(t *testing.T) {
	f := NewForm("form1", []Item{
		{ID: "1", Type: "text", Index: 1},
		{ID: "2", Type: "checkbox", Index: 2, Choices: []string{"red", "blue"}},
		{ID: "3", Type: "file", Index: 3},
		{ID: "4", Type: "radio", Index: 4, Choices: []string{"second", "first"}},
		{ID: "5", Type: "text", Index: 5},
		{ID: "7-0-0", Type: "matrix", Index: 6, Choices: []string{"poor", "good"}},
	}, []Result{
		{
			ID: 8,
			Metas: []Meta{
				{metaStatus, "Confirmed"},
				{metaStart, "2026-07-01 12:00:00"},
				{metaFinish, ""},
				{metaUpdate, "soon"},
				{"login_email", ""},
				{"payment_amount", "5.00"},
				{"score", "n/a"},
			},
			Items: []Answer{
				{ID: "1", Values: []string{"5.00"}},
				{ID: "2", Values: []string{"blue"}},
				{ID: "2", Values: []string{"Teal"}},
				{ID: "3", Values: []string{"https://files.example.com/files/f-1_a.pdf"}},
				{ID: "4", Values: []string{"second"}},
				{ID: "5", Values: []string{"a", ""}},
				{ID: "7-0-0", Values: []string{"good"}},
				{ID: "9", Type: "text", Index: 9, Values: []string{"unlisted"}},
			},
		},
		{ID: 16, Metas: []Meta{{metaStatus, "Unconfirmed"}}, Items: []Answer{
			{ID: "1", Values: []string{""}},
			{ID: "2", Values: []string{""}},
			{ID: "4", Values: []string{"first"}},
			{ID: "5"},
		}},
	})
	s := startService(t, &Server{Forms: []*Form{f}, API: V2, Zone: chicago(t)})
	const first = `{"id":"8","result_status":"Complete","date_start":"2026-07-01T17:00:00.000Z","date_update":"soon","login_email":"",` +
		`"payment_amount":"5.00","score":"n/a","items":[{"id":"1","position":1,"value":"5.00"},` +
		`{"id":"2","position":2,"values":[{"position":1,"value":"blue"},{"other":"Teal","position":2,"value":"Other"}]},` +
		`{"id":"3","position":3,"values":[{"position":0,"value":"https://files.example.com/files/f-1_a.pdf"}]},` +
		`{"id":"4","position":4,"values":[{"position":0,"value":"second"}]},` +
		`{"id":"5","position":5,"values":[{"position":0,"value":"a"},{"position":1,"value":""}]},` +
		`{"id":"7-0-0","position":6,"values":[{"position":1,"value":"good"}]},{"id":"9","position":9,"value":"unlisted"}]}`
	const second = `{"id":"16","result_status":"Incomplete","items":[{"id":"1","position":1,"value":""},{"id":"2","position":2,"values":[]},` +
		`{"id":"4","position":4,"values":[{"position":1,"value":"first"}]}]}`
	for _, c := range []struct {
		shapes Faults
		query  string
		want   string
	}{
		{"", "sort_direction=asc", `{"results":[` + first + "," + second + "]}\n"},
		{"", "after_id=16", `{"results":[]}` + "\n"},
		{"v2-number-ids", "before_id=9", `{"results":[` + strings.Replace(first, `"8"`, "8", 1) + "]}\n"},
		{"v2-number-metas", "before_id=9", `{"results":[` + strings.Replace(first, `amount":"5.00"`, `amount":5.00`, 1) + "]}\n"},
		{"v2-fractions=none", "before_id=9", `{"results":[` + strings.Replace(first, "00.000Z", "00Z", 1) + "]}\n"},
	} {
		s.SetFaults(c.shapes)
		if got := s.v2(t, "GET", "/forms/form1/results?"+c.query).body; got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.shapes, got, c.want)
		}
	}
	s.SetFaults("")
	equalIDs(t, "a choice that was typed", s.v2IDs(t, "search_equals%5B2%5D=2"), 8)
	equalIDs(t, "a choice of the form", s.v2IDs(t, "search_equals%5B4%5D=1"), 16)
}

// TestV2View leaves out columns, and the id on demand.
func TestV2View(t *testing.T) {
	s := startV2(t)
	s.Form("form1").Views = append(s.Form("form1").Views, View{ID: "7", Columns: []string{"result_id", metaFinish}})
	for _, c := range []struct {
		query string
		want  string
	}{
		{"results_view=5&before_id=11", `{"id":"10","result_status":"Complete","items":[{"id":"1","position":1,"value":"Anna"}]}`},
		{"results_view=7&before_id=11", `{"id":"10","date_finish":"2026-01-01T06:00:00.000Z","items":[]}`},
	} {
		got := decode[struct{ Results []json.RawMessage }](t, s.v2(t, "GET", "/forms/form1/results?"+c.query)).Results
		if len(got) != 1 || string(got[0]) != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
}

func TestV2Pagination(t *testing.T) {
	s := startV2(t)
	for _, c := range []struct {
		shape, query string
		want         []string // last, current, limit
	}{
		{"", "", []string{"1", "1", "100"}},
		{"", "limit=1", []string{"7", "1", "1"}},
		{"", "limit=3&page=2", []string{"3", "2", "3"}},
		{"", "limit=7", []string{"1", "1", "7"}},
		{"", "limit=3&page=9", []string{"3", "9", "3"}},
		{"", "after_id=22", []string{"0", "1", "100"}},
		{"", "limit=1&after_date=2026-01-02", []string{"4", "1", "1"}},
		{"", "limit=1&search_begins%5B1%5D=Anna", []string{"2", "1", "1"}},
		{"", "limit=1&results_view=6", []string{"4", "1", "1"}},
		{"missing", "limit=1", []string{"", "", ""}},
		{"zero", "limit=1", []string{"0", "1", "1"}},
		{"more", "limit=1", []string{"8", "1", "1"}},
		{"less", "limit=1", []string{"6", "1", "1"}},
		{"less", "after_id=22", []string{"0", "1", "100"}},
	} {
		s.SetFaults(Faults("").With("v2-pagination", c.shape))
		h := s.v2(t, "GET", "/forms/form1/results?"+c.query).header
		got := []string{h.Get("Pagination-Page-Last"), h.Get("Pagination-Page-Current"), h.Get("Pagination-Limit")}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.shape, c.query, got, c.want)
		}
	}
}

// TestGenerations asks for paths of generations that are not served.
func TestGenerations(t *testing.T) {
	for _, c := range []struct{ api, path, kind string }{
		{"", "/api/v2/acme/forms", "text/xml; charset=UTF-8"},
		{V1, "/api/v2/acme/forms", "text/xml; charset=UTF-8"},
		{V2, "/api/users/acme/forms", "application/json"},
		{V2, "/", "application/json"},
		{Both, "/", "text/xml; charset=UTF-8"},
		{Both, "/api/v2/", "application/json"},
	} {
		s := startService(t, &Server{API: c.api})
		if r := s.send(t, "GET", c.path, ""); r.status != 404 || r.header.Get("Content-Type") != c.kind {
			t.Errorf("%q %s: HTTP %d, %s", c.api, c.path, r.status, r.header.Get("Content-Type"))
		}
	}
}
