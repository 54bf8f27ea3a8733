package v1_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
)

// people is a form of a few results whose searches are easy to tell.
func people() *formservice.Form {
	items := []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Full name"},
		{ID: "353-0-0", Type: "matrix", Index: 2, Label: "Row & column"},
	}
	names := []string{"Ada & Bob+C", "ada", "", "Bob Ada", "50% off", "Ünïcode 😀"}
	results := make([]formservice.Result, 0, len(names))
	for i, name := range names {
		r := formservice.Result{
			ID: int64(i + 1),
			Metas: []formservice.Meta{
				{ID: "result_status", Value: "Complete"},
				{ID: "date_finish", Value: fmt.Sprintf("2026-01-%02d 12:00:00", 10-i)},
			},
			Items: []formservice.Answer{{ID: "1", Values: []string{name}}},
		}
		if i%2 == 0 {
			r.Items = append(r.Items, formservice.Answer{ID: "353-0-0", Values: []string{"x"}})
		}
		results = append(results, r)
	}
	f := formservice.NewForm("people", items, results)
	f.Name, f.Description, f.ID = "People & more", "<who>", "42"
	f.Metas = []string{"result_status", "date_finish"}
	f.Views = []formservice.View{{ID: "12", Columns: []string{"1"}}}
	f.Labels = map[string]map[string]string{"2": {"1": "Name"}}
	return f
}

// TestTransactions sends the other five.
func TestTransactions(t *testing.T) {
	server := &formservice.Server{Forms: []*formservice.Form{people()}, Accounts: []string{"other"}}
	for _, old := range []bool{false, true} {
		server.SetFaults(formservice.Faults("").With("old-root", old).With("latin1", old))
		c := extracttest.Serve(t, server, nil)
		ctx := t.Context()
		if forms, err := c.Forms(ctx); err != nil || len(forms) == 0 || forms[0] != (extract.Form{ID: "42", Name: "People & more", Description: "<who>", Directory: "people"}) {
			t.Errorf("forms = %+v, %v", forms, err)
		}
		status, err := c.Status(ctx, "people")
		want := extract.Status{State: "open", LastModified: "2026-01-01 00:00:00", Limits: []extract.Limit{{Type: "items", Used: 2, Total: 500}, {Type: "results", Used: 6, Total: formservice.MaxResults}}}
		if err != nil || !reflect.DeepEqual(status, want) {
			t.Errorf("status = %+v, %v", status, err)
		}
		for _, secure := range []bool{false, true} {
			p, err := c.Publish(ctx, "people", secure)
			if err != nil || len(p.URLs) != 2 || p.URLs[1].Type != "printer" || len(p.Codes) != 2 || strings.HasPrefix(p.URLs[0].URL, "https:") != secure {
				t.Errorf("publish(%v) = %+v, %v", secure, p, err)
			}
		}
		made, err := c.Copy(ctx, "people", extract.CopyTarget{Account: "other", Form: "People 2 + 3"})
		if err != nil || made.Name != "People 2 + 3" || made.Directory == "" {
			t.Errorf("copy = %+v, %v", made, err)
		}
		for _, q := range []struct {
			q    extract.CountQuery
			want int64
		}{
			{extract.CountQuery{}, 6},
			{extract.CountQuery{Window: extracttest.Window("2026-01-06", "2026-01-08")}, 2},
			{extract.CountQuery{IDs: extract.IDRange{Min: 2, Max: 4}}, 3},
			{extract.CountQuery{Window: extracttest.Window("2026-01-06", "2026-01-09"), IDs: extract.IDRange{Min: 4, Max: 9}}, 2},
		} {
			if n, err := c.Count(ctx, "people", q.q); err != nil || n != q.want {
				t.Errorf("count %+v = %d, %v; want %d", q.q, n, err, q.want)
			}
		}
	}
	log := server.Log()
	if i := slices.IndexFunc(log, func(r formservice.Request) bool { return r.Transaction == formservice.TransactionCopy }); i < 0 || log[i].Method != http.MethodPost {
		t.Error("Copy Form is a POST (specification, section 4.1)")
	}
}

// TestQueries checks what goes over the wire, byte by byte.
func TestQueries(t *testing.T) {
	var asked []string
	recorder := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI)
		_, _ = w.Write([]byte(extracttest.Success(`<results/><count>0</count><form id="1"/><forms/><status/><publish/>`)))
	})
	c := extracttest.Serve(t, recorder, func(cfg *transport.Config) { cfg.Account, cfg.Key = "a c/m?e", transport.NewSecret("k +&") })
	ctx := t.Context()
	full := extract.ResultsQuery{
		Window: extracttest.Window("2026-01-01", "2026-02-01"), IDs: extract.IDRange{Min: 5, Max: 9}, Limit: 50, Page: 2, Sort: "date finish", Descending: true,
		Search: extract.Search{Any: true, Where: []extract.Criterion{{Column: "1", Operator: extract.OpEquals, Term: "a b+c&d=e%"}, {Column: "353-0-0", Operator: extract.OpEmpty, Term: "no term"}, {Column: "2", Operator: extract.OpNotEmpty, Term: ""}}},
		View:   "1 1", Headings: true, CustomLabels: "2/3",
	}
	const base = "/api/users/a%20c%2Fm%3Fe/forms"
	for _, tc := range []struct {
		send func() error
		want string
	}{
		{
			func() error { p, err := c.Results(ctx, "form1", extract.ResultsQuery{}); p.Release(); return err },
			"GET " + base + "/form1/results?fs_sort_direction=asc&fs_api_key=k%20%2B%26",
		},
		{
			func() error { p, err := c.Results(ctx, "f 1/ü", full); p.Release(); return err },
			"GET " + base + "/f%201%2F%C3%BC/results?fs_min_date=2026-01-01%2000%3A00%3A00&fs_max_date=2026-01-31%2023%3A59%3A59" +
				"&fs_min_id=5&fs_max_id=9&fs_limit=50&fs_page=2&fs_sort=date%20finish&fs_sort_direction=desc" +
				"&fs_search_equals_1=a%20b%2Bc%26d%3De%25&fs_search_empty_353-0-0&fs_search_not_empty_2&fs_search_method=or" +
				"&fs_view=1%201&fs_include_headings&fs_custom_labels=2%2F3&fs_api_key=k%20%2B%26",
		},
		{
			func() error {
				_, err := c.Count(ctx, "form1", extract.CountQuery{Window: full.Window, IDs: full.IDs})
				return err
			},
			"GET " + base + "/form1/results/count?fs_min_date=2026-01-01%2000%3A00%3A00&fs_max_date=2026-01-31%2023%3A59%3A59&fs_min_id=5&fs_max_id=9&fs_api_key=k%20%2B%26",
		},
		{func() error { _, err := c.Forms(ctx); return err }, "GET " + base + "?fs_api_key=k%20%2B%26"},
		{func() error { _, err := c.Status(ctx, "x"); return err }, "GET " + base + "/x/status?fs_api_key=k%20%2B%26"},
		{func() error { _, err := c.Publish(ctx, "x", false); return err }, "GET " + base + "/x/publish?fs_api_key=k%20%2B%26"},
		{func() error { _, err := c.Publish(ctx, "x", true); return err }, "GET " + base + "/x/publish?fs_secure&fs_api_key=k%20%2B%26"},
		{func() error { _, err := c.Copy(ctx, "x", extract.CopyTarget{}); return err }, "POST " + base + "/x/copy?fs_api_key=k%20%2B%26"},
		{
			func() error { _, err := c.Copy(ctx, "x", extract.CopyTarget{Account: "o p", Form: "n+m"}); return err },
			"POST " + base + "/x/copy?fs_destination_account=o%20p&fs_destination_form=n%2Bm&fs_api_key=k%20%2B%26",
		},
	} {
		asked = nil
		if err := tc.send(); err != nil {
			t.Errorf("%s: %v", tc.want, err)
		}
		if len(asked) != 1 || asked[0] != tc.want {
			t.Errorf("asked %q\nwant  %q", asked, tc.want)
		}
	}
}

// TestRefusedParameters: the error of a refused parameter tells what was sent, without the
// key. Other errors do not.
func TestRefusedParameters(t *testing.T) {
	for _, tc := range []struct {
		code int
		want string
	}{
		{2, "; formetl sent fs_min_date=2026-01-01 00:00:00, fs_max_date=2026-01-31 23:59:59, fs_min_id=5, fs_sort_direction=asc, " +
			"fs_search_begins_1=a [redacted], fs_view=12, fs_include_headings"},
		{103, "; formetl sent fs_min_date="},
		{102, ""},
	} {
		body := fmt.Sprintf(`<fs_response status="error"><error code="%d">No</error></fs_response>`, tc.code)
		c := extracttest.Answering(t, "k3y w1th sp4ce", func(*http.Request) (*http.Response, error) { return extracttest.Respond(400, body), nil }, nil)
		_, err := c.Results(t.Context(), "form1", extract.ResultsQuery{
			Window: extracttest.Window("2026-01-01", "2026-02-01"), IDs: extract.IDRange{Min: 5}, View: "12", Headings: true,
			Search: extract.Search{Where: []extract.Criterion{{Column: "1", Operator: extract.OpBegins, Term: "a k3y w1th sp4ce"}}},
		})
		text := fmt.Sprint(err)
		if !strings.Contains(text, "No"+tc.want) || tc.want == "" && strings.Contains(text, "sent were") || strings.Contains(text, "k3y") {
			t.Errorf("error %d: %s", tc.code, text)
		}
	}
}

func TestSearchIsChecked(t *testing.T) {
	c := extracttest.Answering(t, formservice.DefaultKey, func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return extracttest.Respond(200, extracttest.Success("<results/>")), nil
	}, nil)
	for _, tc := range []struct {
		where []extract.Criterion
		want  string
	}{
		{[]extract.Criterion{{Column: "1", Operator: extract.OpEquals, Term: "a"}, {Column: "1", Operator: extract.OpEquals, Term: "b"}}, `the search has equals twice on column "1"`},
		{[]extract.Criterion{{Column: "1", Operator: "like", Term: "a"}}, `unknown operator "like"`},
		{[]extract.Criterion{{Column: "", Operator: extract.OpEquals, Term: "a"}}, "the search with equals has no column"},
	} {
		_, err := c.Results(t.Context(), "form1", extract.ResultsQuery{Search: extract.Search{Where: tc.where}})
		if e := extracttest.MustAs[*transport.Error](t, err); !strings.Contains(e.Problem, tc.want) {
			t.Errorf("err = %v, want %q", err, tc.want)
		}
	}
}

func TestFormsThatAreNone(t *testing.T) {
	c := extracttest.Answering(t, formservice.DefaultKey, func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, http.ErrServerClosed
	}, nil)
	for _, form := range []string{"", ".", ".."} {
		_, err := c.Count(t.Context(), form, extract.CountQuery{})
		if e := extracttest.MustAs[*transport.Error](t, err); !strings.Contains(e.Problem, "is not a form") {
			t.Errorf("err = %v", err)
		}
	}
}

// TestAnswersWithoutWhatIsPromised refuses successes of another shape.
func TestAnswersWithoutWhatIsPromised(t *testing.T) {
	body := ""
	c := extracttest.Answering(t, formservice.DefaultKey, func(*http.Request) (*http.Response, error) { return extracttest.Respond(200, body), nil }, func(cfg *transport.Config) { cfg.Retries = 0 })
	ctx := t.Context()
	count := func() error { _, err := c.Count(ctx, "x", extract.CountQuery{}); return err }
	status := func() error { _, err := c.Status(ctx, "x"); return err }
	for _, tc := range []struct {
		content string
		send    func() error
		want    string
	}{
		{"<results/>", count, "no <count>"},
		{"<count/>", count, "<count> is not a number"},
		{"<count>-1</count>", count, "<count> is not a number"},
		{"<count>seven</count>", count, "<count> is not a number"},
		{"<count/>", func() error { _, err := c.Forms(ctx); return err }, "no <forms>"},
		{"<count/>", status, "no <status>"},
		{`<status><limit type="items"><used>1</used></limit></status>`, status, "<total> is not a number"},
		{`<status><limit type="items"><total>1</total></limit></status>`, status, "<used> is not a number"},
		{"<count/>", func() error { _, err := c.Publish(ctx, "x", true); return err }, "no <publish>"},
		{"<count/>", func() error { _, err := c.Copy(ctx, "x", extract.CopyTarget{}); return err }, "no <form>"},
	} {
		body = extracttest.Success(tc.content)
		err := tc.send()
		if e := extracttest.MustAs[*transport.AnswerError](t, err); !strings.Contains(e.Problem, tc.want) {
			t.Errorf("%s: err = %v, want %q", tc.content, err, tc.want)
		}
	}
}
