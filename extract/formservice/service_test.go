package formservice

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// node is any XML element, as encoding/xml reads it: an opinion that is not
// the service's own.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Kids    []node     `xml:",any"`
}

func (n node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (n node) all(name string) []node {
	var found []node
	for _, k := range n.Kids {
		if k.XMLName.Local == name {
			found = append(found, k)
		}
	}
	return found
}

func (n node) one(t *testing.T, path ...string) node {
	t.Helper()
	for _, name := range path {
		found := n.all(name)
		if len(found) != 1 {
			t.Fatalf("%d elements %q in %q, want one", len(found), name, n.XMLName.Local)
		}
		n = found[0]
	}
	return n
}

// service is a running server with its address.
type service struct {
	*Server
	url string
}

func startService(t *testing.T, s *Server) service {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return service{s, h.URL}
}

// reply is an answer of the service, read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

// send asks for a path, with the key put before the query.
func (s service) send(t *testing.T, method, path, query string) reply {
	t.Helper()
	return s.sendRaw(t, method, path, keyParameter+"="+encode(s.key())+"&"+query)
}

func (s service) sendRaw(t *testing.T, method, path, query string) reply {
	t.Helper()
	r, err := s.try(t, method, path+"?"+strings.Trim(query, "&"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try asks for a path; headers are "Name: value", and one without a value is not sent.
func (s service) try(t *testing.T, method, target string, headers ...string) (reply, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	// A kept connection that is reset would make the client ask again by itself.
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

// get asks for a transaction of form1 and returns the root of the answer.
func (s service) get(t *testing.T, transaction, query string) node {
	t.Helper()
	return s.send(t, "GET", "/api/users/"+s.account()+"/forms/form1/"+transaction, query).root(t)
}

func (r reply) root(t *testing.T) node {
	t.Helper()
	var n node
	d := xml.NewDecoder(strings.NewReader(r.body))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return latin1Reader{in}, nil }
	if err := d.Decode(&n); err != nil {
		t.Fatalf("the answer is not XML: %v\n%s", err, r.body)
	}
	return n
}

// code returns the error code of an envelope, -1 for success.
func (n node) code(t *testing.T) int {
	t.Helper()
	if n.attr("status") == "success" {
		return -1
	}
	if n.attr("status") != "error" {
		t.Fatalf("status %q", n.attr("status"))
	}
	e := n.one(t, "error")
	if e.Text == "" {
		t.Error("an error without a message")
	}
	code, err := strconv.Atoi(e.attr("code"))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// results reads the results of an answer.
func (n node) results(t *testing.T) []Result {
	t.Helper()
	list := n.one(t, "results").all("result")
	results := make([]Result, 0, len(list))
	for _, r := range list {
		id, err := strconv.ParseInt(r.attr("id"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		result := Result{ID: id}
		for _, m := range r.one(t, "metas").all("meta") {
			result.Metas = append(result.Metas, Meta{m.attr("id"), m.Text})
		}
		for _, it := range r.one(t, "items").all("item") {
			a := Answer{ID: it.attr("id"), Type: it.attr("type")}
			a.Index, _ = strconv.Atoi(it.attr("index"))
			for _, v := range it.all("value") {
				a.Values = append(a.Values, v.Text)
			}
			result.Items = append(result.Items, a)
		}
		results = append(results, result)
	}
	return results
}

// ids asks for results and returns their ids, in order.
func (s service) ids(t *testing.T, query string) []int64 {
	t.Helper()
	root := s.get(t, "results", query)
	if code := root.code(t); code != -1 {
		t.Fatalf("%s: error %d: %s", query, code, root.one(t, "error").Text)
	}
	return idsOf(root.results(t))
}

func idsOf(results []Result) []int64 {
	ids := make([]int64, 0, len(results))
	for _, r := range results {
		ids = append(ids, r.ID)
	}
	return ids
}

func (s service) count(t *testing.T, query string) int {
	t.Helper()
	n, err := strconv.Atoi(s.get(t, "results/count", query).one(t, "count").Text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func collect(f *Form) []Result {
	var all []Result
	f.Each(func(r Result) bool { all = append(all, r); return true })
	return all
}

// same compares results by what can be seen on the wire.
func same(a, b Result) bool {
	return reflect.DeepEqual(seen(a), seen(b))
}

func seen(r Result) Result {
	r = r.Clone()
	if len(r.Metas) == 0 {
		r.Metas = nil
	}
	if len(r.Items) == 0 {
		r.Items = nil
	}
	for i := range r.Items {
		if len(r.Items[i].Values) == 0 {
			r.Items[i].Values = nil
		}
	}
	return r
}

// finished is a complete result with a finish date.
func finished(id int64, at string, items ...Answer) Result {
	return Result{ID: id, Metas: []Meta{{metaStatus, "Complete"}, {metaFinish, at}}, Items: items}
}

func equalIDs(t *testing.T, what string, got []int64, want ...int64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: ids %v, want %v", what, got, want)
	}
}

// latin1Reader turns ISO-8859-1 into UTF-8.
type latin1Reader struct{ in io.Reader }

func (r latin1Reader) Read(p []byte) (int, error) {
	half := make([]byte, max(1, len(p)/2))
	n, err := r.in.Read(half)
	out := p[:0]
	for _, c := range half[:n] {
		out = append(out, string(rune(c))...)
	}
	return len(out), err
}

func date(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

// encode percent-encodes a value; a space is %20.
func encode(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}
