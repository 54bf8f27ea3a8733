package v2_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	v2 "github.com/formetl/formetl/extract/v2"
)

// canary is the token, which no error, address and log may hold.
const canary = "c4n4ry-t0k3n/+%"

// config is what clients are made of.
type config struct {
	transport.Config
	zone *time.Location
}

// serve returns a client of h. change, unless nil, changes its configuration.
func serve(t *testing.T, h http.HandlerFunc, change func(*config)) *v2.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := config{transport.Config{
		BaseURL: server.URL, Account: "acme", Key: transport.NewSecret(canary), BackoffMin: time.Microsecond, BackoffMax: time.Microsecond, Retries: 2,
	}, time.UTC}
	if change != nil {
		change(&cfg)
	}
	c, err := v2.NewClient(cfg.Config, cfg.zone)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// answer returns a handler that gives one answer; headers are "Name: value".
func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestRequest(t *testing.T) {
	var got *http.Request
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		fmt.Fprint(w, `{"results":[{"id":"7","date_start":"2026-07-05T22:26:24.087Z"}]}`)
	}, func(cfg *config) { cfg.zone = time.FixedZone("", 7200) })
	p, err := c.Results(t.Context(), "form 1", extract.ResultsQuery{IDs: extract.IDRange{Min: 7}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if got.URL.EscapedPath() != "/api/v2/acme/forms/form%201/results" || got.URL.RawQuery != "after_id=6&limit=500&sort_direction=asc" {
		t.Errorf("asked %s", got.URL)
	}
	if h := got.Header; h.Get("Authorization") != "bearer "+canary || h.Get("Accept") != "application/json" {
		t.Errorf("headers %v", h)
	}
	if p.ID(0) != 7 || string(p.Value(p.Cells(0)[0], 0)) != "2026-07-06 00:26:24" || c.PageSize() != 500 {
		t.Errorf("%d %s", p.ID(0), p.Value(p.Cells(0)[0], 0))
	}
}

// spellings are ways in which a server may repeat the token.
func spellings() []string {
	return []string{canary, transport.Escape(canary), base64.StdEncoding.EncodeToString([]byte(canary)), strings.ReplaceAll(canary, "/", `\/`), "Authorization: bearer " + canary}
}

// TestCanary: whatever the server answers, the token stands nowhere.
func TestCanary(t *testing.T) {
	var log strings.Builder
	var shown []string
	for _, said := range spellings() {
		for _, h := range []http.HandlerFunc{
			answer(401, `{"error":{"message":`+strconv.Quote(said)+`,"status":401}}`),
			answer(422, `{"error":`+strconv.Quote(said)+`}`),
			answer(400, `{"message":`+strconv.Quote(said)+`}`),
			answer(500, `{"error":{"message":`+strconv.Quote(said)+`,"status":500}}`),
			answer(200, `{"error":{"message":`+strconv.Quote(said)+`}}`),
			answer(502, "<html>"+said), answer(200, said), answer(404, said),
			answer(302, "", "Location: https://evil.example.com/"+transport.Escape(said)+"?x="+transport.Escape(said)),
			func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		} {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.String(), "c4n4ry") {
					t.Errorf("the address holds the token: %s", r.URL)
				}
				h(w, r)
			}, func(cfg *config) {
				cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			q := extract.ResultsQuery{View: "101", Headings: true, Search: extract.Search{Where: []extract.Criterion{{Column: "1", Operator: extract.OpEquals, Term: "x"}}}}
			_, err := c.Results(t.Context(), "f", q)
			_, formsErr := c.Forms(t.Context())
			for _, err := range []error{err, formsErr} {
				if err == nil {
					t.Fatal("no error")
				}
				shown = append(shown, fmt.Sprintf("%v %+v %#v", err, err, err))
			}
		}
	}
	for _, text := range append(shown, log.String()) {
		if strings.Contains(text, "c4n4ry") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))) {
			t.Errorf("the token stands in %s", text)
		}
	}
}

func TestRefusals(t *testing.T) {
	said := func(status int) string { return fmt.Sprintf(`{"error":{"message":"m","status":%d}}`, status) }
	for name, c := range map[string]struct {
		status int
		body   string
		code   int
		class  transport.Class
	}{
		"401":             {401, said(401), transport.CodeInvalidKey, transport.ClassFinal},
		"403":             {403, said(403), transport.CodeInvalidKey, transport.ClassFinal},
		"404":             {404, said(404), transport.CodeInvalidForm, transport.ClassFinal},
		"422":             {422, said(422), transport.CodeInvalidValue, transport.ClassFinal},
		"429":             {429, said(429), transport.CodeBusy, transport.ClassBusy},
		"500":             {500, said(500), transport.CodeUnexpected, transport.ClassUnavailable},
		"503":             {503, said(503), transport.CodeUnexpected, transport.ClassUnavailable},
		"other status":    {403, said(429), transport.CodeInvalidKey, transport.ClassFinal},
		"success":         {200, said(429), transport.CodeBusy, transport.ClassBusy},
		"401, empty":      {401, "", transport.CodeInvalidKey, transport.ClassFinal},
		"401, HTML":       {401, "<html>", transport.CodeInvalidKey, transport.ClassFinal},
		"404, empty":      {404, "", transport.CodeInvalidForm, transport.ClassFinal},
		"422, other JSON": {422, `{"message":"m"}`, transport.CodeInvalidValue, transport.ClassFinal},
	} {
		client := serve(t, answer(c.status, c.body), nil)
		_, err := client.Status(t.Context(), "f")
		e, ok := errors.AsType[*transport.ServiceError](err)
		if !ok || e.Code != c.code || e.Class() != c.class {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	for _, c := range []struct {
		status int
		body   string
	}{{429, "<html>"}, {502, "<html>"}, {500, ""}, {503, `{"message":"proxy"}`}} {
		client := serve(t, answer(c.status, c.body), nil)
		_, err := client.Results(t.Context(), "f", extract.ResultsQuery{})
		if e, ok := errors.AsType[*transport.StatusError](err); !ok || e.Status != c.status || !transport.Temporary(err) {
			t.Errorf("%d %q: err = %v", c.status, c.body, err)
		}
	}
	client := serve(t, answer(422, said(422)), nil)
	_, err := client.Results(t.Context(), "f", extract.ResultsQuery{View: "101", CustomLabels: "3"})
	if e, ok := errors.AsType[*transport.RequestError](err); !ok || e.Asked != "view 101" {
		t.Errorf("err = %v", err)
	}
	account := serve(t, answer(404, said(404)), nil)
	if _, err := account.Forms(t.Context()); !isCode(err, transport.CodeInvalidUser) {
		t.Errorf("err = %v", err)
	}
}

func isCode(err error, code int) bool {
	e, ok := errors.AsType[*transport.ServiceError](err)
	return ok && e.Code == code
}

// TestRefusedParameters: the error of a refused parameter tells what was sent, without
// the token.
func TestRefusedParameters(t *testing.T) {
	var asked atomic.Int32
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answer(422, `{"error":{"message":"Invalid parameter","status":422}}`)(w, nil)
	}, nil)
	q := extract.ResultsQuery{
		IDs: extract.IDRange{Min: 7}, Page: 2, Sort: "user_ip", View: "101",
		Window: extract.Window{From: extract.Epoch.AddDate(56, 0, 0), To: extract.Epoch.AddDate(56, 0, 1)},
		Search: extract.Search{Where: []extract.Criterion{{Column: "user_ip", Operator: extract.OpEquals, Term: "a b " + canary}}},
	}
	_, err := c.Results(t.Context(), "f", q)
	const want = "Invalid parameter; formetl sent after_date=2025-12-31T23:59:59Z, before_date=2026-01-02T00:00:00Z, after_id=6, limit=500, page=2, " +
		"sort_id=user_ip, sort_direction=asc, search_equals[user_ip]=a b [redacted], results_view=101"
	if !isCode(err, transport.CodeInvalidValue) || !strings.HasSuffix(err.Error(), want) || asked.Load() != 1 {
		t.Errorf("%d requests, err = %v", asked.Load(), err)
	}
	if _, err := c.Forms(t.Context()); !isCode(err, transport.CodeInvalidValue) || strings.Contains(err.Error(), "sent") {
		t.Errorf("without parameters: %v", err)
	}
}

// TestEarly: of a window's page, what was finished in the second before the window is
// marked, by the instant and not by the wall clock. What is unfinished counts as of its
// start, and only what is known to be unfinished.
func TestEarly(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, answer(200, `{"results":[
		{"id":"1","date_finish":"2026-10-25T00:29:59.000Z"},
		{"id":"2","date_finish":"2026-10-25T00:29:59.999Z"},
		{"id":"3","date_finish":"2026-10-25T00:30:00Z"},
		{"id":"4","date_finish":"2026-10-25T01:29:59.500Z"},
		{"id":"5","date_start":"2026-10-25T00:29:59.500Z","date_finish":"2026-10-25T00:31:00.000Z"},
		{"id":"6","date_start":"2026-10-25T00:29:59.500Z"},
		{"id":"7","date_finish":"2026-10-25T02:29:59.1+02:00"},
		{"id":"8","date_finish":"2026-10-25T00:29:58.999Z"},
		{"id":"9","date_finish":"soon"},
		{"id":"10","date_start":"2026-10-25T00:29:59.500Z","result_status":"Incomplete"},
		{"id":"11","result_status":"Incomplete","date_start":"2026-10-25T00:29:59.500Z","date_finish":""},
		{"id":"12","result_status":"Complete","date_start":"2026-10-25T00:29:59.500Z"},
		{"id":"13","result_status":"Incomplete","date_start":"2026-10-25T00:30:59.500Z"}]}`), func(cfg *config) { cfg.zone = berlin })
	for _, r := range []struct {
		from string
		want []int64
	}{
		{"2026-10-25 02:30:00", []int64{1, 2, 7, 10, 11}}, // the first pass of the hour; 4 is of the second
		{"2026-10-25 02:30:01", []int64{3}},
		{"", nil},
	} {
		var w extract.Window
		if r.from != "" {
			if w.From, err = time.Parse(extract.WireTime, r.from); err != nil {
				t.Fatal(err)
			}
		}
		p, err := c.Results(t.Context(), "f", extract.ResultsQuery{Window: w})
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for i := range p.Len() {
			if p.Early(i) {
				got = append(got, p.ID(i))
			}
		}
		if !slices.Equal(got, r.want) {
			t.Errorf("from %q: %v are early, want %v", r.from, got, r.want)
		}
		if n := p.Len(); p.DropEarly() != len(r.want) || p.Len() != n-len(r.want) {
			t.Errorf("from %q: %d are left of %d", r.from, p.Len(), n)
		}
		p.Release()
	}
}

func TestSearchIsRefusedBeforeAnyRequest(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, nil)
	q := extract.ResultsQuery{Search: extract.Search{Where: []extract.Criterion{{Column: "7", Operator: extract.OpEmpty}}}}
	_, err := c.Results(t.Context(), "f", q)
	if _, ok := errors.AsType[*transport.Error](err); !ok || !strings.Contains(err.Error(), "7 empty") {
		t.Errorf("err = %v", err)
	}
	_, err = c.Copy(t.Context(), "f", extract.CopyTarget{})
	if _, ok := errors.AsType[*transport.Error](err); !ok || err.Error() != "API v2 cannot copy forms" {
		t.Errorf("err = %v", err)
	}
	if _, err := c.Results(t.Context(), "..", extract.ResultsQuery{}); err == nil {
		t.Error(".. is a form")
	}
}

func TestCount(t *testing.T) {
	one, none := `{"results":[{"id":"1"}]}`, `{"results":[]}`
	for name, c := range map[string]struct {
		body, last, limit string
		want              int64 // -1: not to be had
	}{
		"many": {one, "12345", "1", 12345}, "no limit header": {one, "7", "", 7}, "one": {one, "1", "1", 1},
		"none": {none, "0", "1", 0}, "none, no header": {none, "", "", 0}, "none, first page": {none, "1", "", 0},
		"missing": {one, "", "", -1}, "zero": {one, "0", "", -1}, "words": {one, "many", "", -1}, "negative": {one, "-1", "", -1},
		"none, many": {none, "5", "", -1}, "limit ignored": {`{"results":[{"id":"1"},{"id":"2"}]}`, "1", "", -1}, "other limit": {one, "3", "100", -1},
	} {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("limit") != "1" {
				t.Errorf("asked %s", r.URL)
			}
			if c.last != "" {
				w.Header().Set("Pagination-Page-Last", c.last)
			}
			if c.limit != "" {
				w.Header().Set("Pagination-Limit", c.limit)
			}
			fmt.Fprint(w, c.body)
		}, nil)
		n, err := client.Count(t.Context(), "f", extract.CountQuery{})
		if c.want < 0 && !errors.Is(err, extract.ErrNoCount) || c.want >= 0 && (err != nil || n != c.want) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		asked := int64(1)
		if c.want < 0 { // one answer may have come from elsewhere
			asked = 2
		}
		if r := client.Requests(); r.Count != asked || r.Results != 0 {
			t.Errorf("%s: requests %+v", name, r)
		}
	}
	asked := 0
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked > 1 {
			w.Header().Set("Pagination-Page-Last", "7")
		}
		fmt.Fprint(w, one)
	}, nil)
	if n, err := client.Count(t.Context(), "f", extract.CountQuery{}); err != nil || n != 7 {
		t.Errorf("a header that one answer lacks: %d, %v", n, err)
	}
}

// TestEnds: whether a page follows, by the header of the answer, its last one if it was
// asked for again.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		page int
		last string // "" is no header
		want bool
	}{
		{0, "1", true},
		{0, " 1 ", true},
		{0, "0", true},
		{0, "2", false},
		{0, "", false},
		{0, "many", false},
		{1, "1", true},
		{2, "2", true},
		{2, "3", false},
		{3, "2", true},
	} {
		tries := 0
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if tries++; tries == 1 {
				w.Header().Set("Pagination-Page-Last", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			if c.last != "" {
				w.Header().Set("Pagination-Page-Last", c.last)
			}
			fmt.Fprint(w, `{"results":[{"id":"1"}]}`)
		}, nil)
		p, err := client.Results(t.Context(), "f", extract.ResultsQuery{Page: c.page})
		if err != nil {
			t.Fatal(err)
		}
		if p.Ends != c.want {
			t.Errorf("%+v: ends %v", c, p.Ends)
		}
		p.Release()
	}
}

func TestForms(t *testing.T) {
	form := `{"directory":"f1","name":"One","description":"d","state":"open","publish":{"link":"https://x/f1","embed_code":"<a>"},"stats":{%s}}`
	var body atomic.Value
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body.Load()) }, nil)
	camel := fmt.Sprintf(form, `"resultsCount":123,"filesSize":4`)
	body.Store(`{"forms":[` + camel + `,{"directory":"f2"}]}`)
	forms, err := c.Forms(t.Context())
	if err != nil || len(forms) != 2 || forms[0] != (extract.Form{Name: "One", Description: "d", Directory: "f1"}) {
		t.Errorf("%+v, %v", forms, err)
	}
	for _, shape := range []string{
		`{"forms":[{"directory":"f0"},` + camel + `]}`, `{"form":` + camel + `}`, camel,
		fmt.Sprintf(form, `"results_count":"123"`), strings.Replace(camel, `"<a>"`, `["<a>"]`, 1),
	} {
		body.Store(shape)
		status, err := c.Status(t.Context(), "f1")
		if err != nil || status.State != "open" || len(status.Limits) != 1 || status.Limits[0] != (extract.Limit{Type: "results", Used: 123}) {
			t.Errorf("%s: %+v, %v", shape, status, err)
		}
		publish, err := c.Publish(t.Context(), "f1", true)
		if err != nil || len(publish.URLs) != 1 || publish.URLs[0] != (extract.PublishURL{Type: "normal", URL: "https://x/f1"}) || len(publish.Codes) != 1 || publish.Codes[0] != "<a>" {
			t.Errorf("%s: %+v, %v", shape, publish, err)
		}
	}
	for _, bad := range []string{`{}`, `[]`, `{"forms":[]}`, `{"forms":`, ``} {
		body.Store(bad)
		_, err := c.Status(t.Context(), "f1")
		if _, ok := errors.AsType[*transport.AnswerError](err); !ok {
			t.Errorf("%q: err = %v", bad, err)
		}
	}
}

const itemsBody = `{"items":[{"id":"7","position":2,"label":"Work e-mail"},
 {"children":["41-0","41-1"],"id":"41","position":26,"label":"How was it?"},
 {"children":["41-0-0","41-0-1"],"id":"41-0","position":26,"label":"A"},
 {"id":"41-0-0","position":26,"label":"Sub 1"},{"id":"41-0-1","position":26,"label":"Sub 2"},{"id":"41-1","position":26,"label":"B"}]}`

func TestHeadings(t *testing.T) {
	var items atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/items") {
			if items.Add(1); r.URL.RawQuery != "results_labels=3" {
				t.Errorf("asked %s", r.URL)
			}
			fmt.Fprint(w, itemsBody)
			return
		}
		fmt.Fprint(w, `{"results":[{"id":"1"}]}`)
	}, nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			p, err := c.Fork().Results(t.Context(), "f", extract.ResultsQuery{Headings: i%2 == 0, CustomLabels: "3"})
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Release()
			var got []string
			for _, h := range p.Headings {
				got = append(got, h.ID+"="+h.Label)
			}
			want := "7=Work e-mail, 41-0-0=How was it? – A – Sub 1, 41-0-1=How was it? – A – Sub 2, 41-1=How was it? – B"
			if i%2 != 0 {
				want = ""
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("headings %q", got)
			}
		})
	}
	all.Wait()
	if items.Load() != 1 {
		t.Errorf("asked %d times for the items", items.Load())
	}
}

// TestHeadingsAreCancelled: whoever waits for another's request can give up.
func TestHeadingsAreCancelled(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/items") {
			close(begun)
			<-end
			fmt.Fprint(w, `{"items":[]}`)
			return
		}
		fmt.Fprint(w, `{"results":[]}`)
	}, nil)
	done := make(chan error)
	go func() {
		p, err := c.Results(context.Background(), "f", extract.ResultsQuery{Headings: true})
		if err == nil {
			p.Release()
		}
		done <- err
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Results(ctx, "f", extract.ResultsQuery{Headings: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	key := transport.NewSecret(canary)
	for name, cfg := range map[string]transport.Config{
		"no key":     {BaseURL: "https://x", Account: "a"},
		"no account": {BaseURL: "https://x", Key: key},
		"plain HTTP": {BaseURL: "http://x", Account: "a", Key: key},
		"key in URL": {BaseURL: "https://x?k=" + canary, Account: "a", Key: key},
	} {
		_, err := v2.NewClient(cfg, time.UTC)
		if _, ok := errors.AsType[*transport.Error](err); !ok || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}
