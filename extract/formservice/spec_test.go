package formservice

import (
	"strings"
	"testing"
)

// smallForm holds seven results whose date order differs from their id order.
func smallForm() *Form {
	text := func(v ...string) Answer { return Answer{ID: "1", Values: v} }
	list := func(v ...string) Answer { return Answer{ID: "206", Values: v} }
	f := NewForm("form1", []Item{
		{ID: "206", Type: "checkbox", Index: 2, Label: "Colours\n& more "},
		{ID: "1", Type: "text", Index: 1, Label: "Name"},
		{ID: "353-0-0", Type: "matrix", Index: 3},
	}, []Result{
		finished(10, "2026-01-01 00:00:00", text("Anna"), list("red", "blue")),
		finished(12, "2026-01-05 12:00:00", text("ben"), list("red")),
		finished(13, "2026-01-02 00:00:00", text("Annabel")),
		finished(17, "2026-01-02 23:59:59", text("")),
		finished(20, "2026-01-03 00:00:00", Answer{ID: "353-0-0", Values: []string{"good"}}),
		{ID: 21, Metas: []Meta{{metaStatus, "Incomplete"}, {metaStart, "2026-01-04 08:00:00"}, {metaFinish, ""}}},
		{ID: 22, Metas: []Meta{{metaStatus, "Incomplete"}}, Items: []Answer{text("+ & %")}},
	})
	f.ID, f.Name, f.Description, f.Metas = "77", "First <form>", "A & B", []string{metaStatus, metaStart, metaFinish}
	f.Views = []View{
		{ID: "5", Columns: []string{metaStatus, "1"}},
		{ID: "6", Where: []Condition{{Column: "1", Operator: NotEmpty}}},
	}
	f.Labels = map[string]map[string]string{"2": {"1": "Nom", metaStatus: ""}}
	return f
}

func startSmall(t *testing.T) service {
	t.Helper()
	return startService(t, &Server{Forms: []*Form{smallForm()}, Accounts: []string{"other"}, Key: "k+ &/é"})
}

// TestResultsParameters reads section 4.5 line by line.
func TestResultsParameters(t *testing.T) {
	s := startSmall(t)
	for _, c := range []struct {
		query string
		want  []int64
	}{
		{"", []int64{22, 21, 20, 17, 13, 12, 10}},
		{"fs_limit=2", []int64{22, 21}},
		{"fs_limit=100&fs_sort_direction=asc", []int64{10, 12, 13, 17, 20, 21, 22}},
		{"fs_limit=3&fs_page=2", []int64{17, 13, 12}},
		{"fs_page=2", []int64{}},
		{"fs_min_date=2026-01-02", []int64{21, 20, 17, 13, 12}},
		{"fs_min_date=2026-01-02%2000:00:01", []int64{21, 20, 17, 12}},
		{"fs_max_date=2026-01-02", []int64{17, 13, 10}},
		{"fs_max_date=2026-01-02%2023:59:58", []int64{13, 10}},
		{"fs_min_date=2026-01-03%2000:00:00&fs_max_date=2026-01-03%2000:00:00", []int64{20}},
		{"fs_min_date=1970-01-01%2000:00:00", []int64{21, 20, 17, 13, 12, 10}},
		{"fs_min_id=13", []int64{22, 21, 20, 17, 13}},
		{"fs_max_id=13", []int64{13, 12, 10}},
		{"fs_min_id=11&fs_max_id=17&fs_sort_direction=asc", []int64{12, 13, 17}},
		{"fs_min_id=12&fs_max_date=2026-01-02", []int64{17, 13}},
		{"fs_sort=1&fs_sort_direction=asc", []int64{17, 20, 21, 22, 10, 13, 12}},
		{"fs_sort=1", []int64{12, 13, 10, 22, 21, 20, 17}},
		{"fs_sort=date_finish&fs_sort_direction=asc&fs_limit=3&fs_page=2", []int64{13, 17, 20}},
		{"fs_search_equals_1=Anna", []int64{10}},
		{"fs_search_contains_1=nna", []int64{13, 10}},
		{"fs_search_begins_1=Anna", []int64{13, 10}},
		{"fs_search_ends_1=n", []int64{12}},
		{"fs_search_empty_1", []int64{21, 20, 17}},
		{"fs_search_not_empty_1=", []int64{22, 13, 12, 10}},
		{"fs_search_equals_1=%2B%20%26%20%25", []int64{22}},
		{"fs_search_equals_206=blue", []int64{10}},
		{"fs_search_equals_result_status=Incomplete", []int64{22, 21}},
		{"fs_search_empty_date_finish", []int64{22, 21}},
		{"fs_search_begins_1=Anna&fs_search_ends_1=a", []int64{10}},
		{"fs_search_equals_1=ben&fs_search_ends_1=a&fs_search_method=or", []int64{12, 10}},
		{"fs_search_method=or&fs_search_equals_1=ben&fs_search_equals_result_status=Incomplete&fs_max_id=21", []int64{21, 12}},
		{"fs_view=6", []int64{22, 13, 12, 10}},
		{"fs_view=6&fs_search_begins_1=A&fs_sort=1", []int64{13, 10}},
		{"fs%5Flimit=1", []int64{22}},
	} {
		t.Run(c.query, func(t *testing.T) { equalIDs(t, "results", s.ids(t, c.query), c.want...) })
	}
}

// TestRefusals names every code of section 7 that a request can earn.
func TestRefusals(t *testing.T) {
	s := startSmall(t)
	s.Account = "acme"
	const form = "/api/users/acme/forms/form1/"
	for _, c := range []struct {
		method, path, query string
		code, status        int
	}{
		{"GET", "/", "", 1, 404},
		{"GET", "/api/users/acme/forms/", "", 1, 404},
		{"GET", "/api/users/acme/forms/form1", "", 1, 404},
		{"GET", form + "delete", "", 1, 404},
		{"GET", form + "results/5", "", 1, 404},
		{"GET", form + "copy", "", 1, 405},
		{"POST", form + "results", "", 1, 405},
		{"GET", "/api/users/nobody/forms", "", 101, 404},
		{"GET", "/api/users/acme/forms/nothing/results", "", 102, 404},
		{"GET", "/api/users/acme/forms", "fs_limit=1", 2, 400},
		{"GET", form + "status", "fs_secure", 2, 400},
		{"GET", form + "results", "fs_limit=0", 2, 400},
		{"GET", form + "results", "fs_limit=101", 2, 400},
		{"GET", form + "results", "fs_limit=%2B5", 2, 400},
		{"GET", form + "results", "fs_page=0", 2, 400},
		{"GET", form + "results", "fs_min_date=2026-02-30", 2, 400},
		{"GET", form + "results", "fs_max_date=2026-01-01T00:00:00", 2, 400},
		{"GET", form + "results", "fs_max_date=2026-01-01%201:00:000", 2, 400},
		{"GET", form + "results", "fs_min_date=2026-01-01+00:00:00", 2, 400},
		{"GET", form + "results", "fs_sort_direction=up", 2, 400},
		{"GET", form + "results", "fs_sort=nothing", 2, 400},
		{"GET", form + "results", "fs_search_equals_99=x", 2, 400},
		{"GET", form + "results", "fs_search_like_1=x", 2, 400},
		{"GET", form + "results", "fs_search_method=xor", 2, 400},
		{"GET", form + "results", "fs_search_equals_1=a&fs_search_equals_1=b", 2, 400},
		{"GET", form + "results", "fs_view=99", 2, 400},
		{"GET", form + "results", "fs_custom_labels=99", 2, 400},
		{"GET", form + "results", "limit=5", 2, 400},
		{"GET", form + "results", "fs_min_id=x", 103, 400},
		{"GET", form + "results/count", "fs_max_id=-1", 103, 400},
		{"GET", form + "results/count", "fs_limit=5", 2, 400},
		{"POST", form + "copy", "fs_destination_account=nobody", 101, 404},
		{"POST", form + "copy", "fs_destination_form=%20", 2, 400},
		{"POST", form + "copy", "fs_destination=x", 2, 400},
	} {
		t.Run(c.method+" "+c.path+"?"+c.query, func(t *testing.T) {
			r := s.send(t, c.method, c.path, c.query)
			if code := r.root(t).code(t); code != c.code || r.status != c.status {
				t.Errorf("error %d with HTTP %d, want %d with %d\n%s", code, r.status, c.code, c.status, r.body)
			}
			if r.status == 405 && r.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

func TestKey(t *testing.T) {
	s := startSmall(t)
	for _, query := range []string{
		"", "fs_api_key", "fs_api_key=", "fs_api_key=wrong", "fs_api_key=k+%20%26/%C3%A9", "fs_api_key=%zz", "api_key=k",
	} {
		r := s.sendRaw(t, "GET", "/api/users/acme/forms", query)
		if code := r.root(t).code(t); code != 100 || r.status != 401 {
			t.Errorf("%q: error %d with HTTP %d, want 100 with 401", query, code, r.status)
		}
		// The key is checked before the form and the parameters.
		if code := s.sendRaw(t, "GET", "/api/users/acme/forms/none/results", query+"&x=1").root(t).code(t); code != 100 {
			t.Errorf("%q: error %d, want 100", query, code)
		}
	}
	for _, r := range s.Log() {
		if strings.Contains(r.Query, "fs_api_key") || strings.Contains(r.Query, "wrong") {
			t.Errorf("the log holds a key: %q", r.Query)
		}
	}
}

func TestCopy(t *testing.T) {
	s := startSmall(t)
	const path = "/api/users/acme/forms/form1/copy"
	for _, c := range []struct{ query, name, directory string }{
		{"", "First <form>", "first__form"},
		{"fs_destination_account=acme", "First <form>", "first__form_2"},
		{"fs_destination_form=" + encode("Ärger & Co"), "Ärger & Co", "rger___co"},
		{"fs_destination_account=other&fs_destination_form=form1", "form1", "form1_2"},
		{"fs_destination_form=form1", "form1", "form1_2"},
	} {
		form := s.send(t, "POST", path, c.query).root(t).one(t, "form")
		if got := form.one(t, "name").Text; got != c.name {
			t.Errorf("%s: name %q, want %q", c.query, got, c.name)
		}
		if got := form.one(t, "directory").Text; got != c.directory {
			t.Errorf("%s: directory %q, want %q", c.query, got, c.directory)
		}
	}
	if n := len(s.send(t, "GET", "/api/users/acme/forms", "").root(t).one(t, "forms").all("form")); n != 5 {
		t.Errorf("%d forms, want 5: one that was there and four copies within the account", n)
	}
	count := s.send(t, "GET", "/api/users/acme/forms/form1_2/results/count", "").root(t).one(t, "count").Text
	if count != "0" {
		t.Errorf("a copy has %s results, want 0", count)
	}
}

func TestHeadings(t *testing.T) {
	s := startSmall(t)
	const name = `="1">Name</heading>`
	for _, c := range []struct{ query, faults, want string }{
		{"fs_include_headings", "", "\n" + `<heading for="result_status">Result status</heading>` + "\n" + `<heading for="date_start">Date start</heading>` + "\n" +
			`<heading for="date_finish">Date finish</heading>` + "\n" + `<heading for="1">Name</heading>` + "\n" +
			`<heading for="206">Colours` + "\n" + `&amp; more </heading>` + "\n" + `<heading for="353-0-0"></heading>` + "\n"},
		{"fs_include_headings&fs_custom_labels=2&fs_view=5", "", "\n" + `<heading for="result_status"></heading>` + "\n" + `<heading for="1">Nom</heading>` + "\n"},
		{"fs_include_headings&fs_view=5", "headings=id", "\n" + `<heading id="result_status">Result status</heading>` + "\n<heading id" + name + "\n"},
		{"fs_include_headings&fs_view=5", "headings=nested", "\n" + `<metas><heading for="result_status">Result status</heading>` + "\n</metas><items><heading for" + name + "\n</items>"},
		{"fs_include_headings&fs_view=5", "headings=items", "\n<heading for" + name + "\n"},
		{"", "", ""},
	} {
		s.SetFaults(Faults(c.faults))
		_, rest, _ := strings.Cut(s.send(t, "GET", resultsPath, c.query).body, "<headings>")
		if got, _, _ := strings.Cut(rest, "</headings>"); got != c.want {
			t.Errorf("%s %s: headings %q, want %q", c.query, c.faults, got, c.want)
		}
	}
}
