package transport_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/transport"
)

// reply is one answer of a scripted service; the zero status is 200.
type reply struct {
	status int
	kind   string // Content-Type, "" for XML
	body   string
}

// scripted answers with its replies in turn, the last one again and again.
type scripted struct {
	replies []reply
	asked   atomic.Int64
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := int(s.asked.Add(1))
	r := s.replies[min(n, len(s.replies))-1]
	if r.kind == "" {
		r.kind = "text/xml; charset=utf-8"
	}
	w.Header().Set("Content-Type", r.kind)
	w.WriteHeader(max(r.status, http.StatusOK))
	_, _ = io.WriteString(w, r.body)
}

const (
	webPage   = "<!DOCTYPE html>\n<html><body>Welcome<br></body></html>"
	malformed = `<fs_response status="success"><count>7</fs_response></count>`
	maintain  = "<maintenance/>"
	noCount   = `<fs_response status="success"><total>7</total></fs_response>`
	noNumber  = `<fs_response status="success"><count>many</count></fs_response>`
	wrongCut  = `<fs_response status="success"><results><result id="x"/></results>`
)

// what becomes of a request, see TestDamagedAnswers.
const (
	fine       = "fine"       // answered
	again      = "again"      // 75: another run may well succeed
	data       = "data"       // 65: the same wrong answer each time
	notService = "notService" // 78: nothing ever came from the service
)

func fateOf(err error) string {
	switch {
	case err == nil:
		return fine
	case transport.Temporary(err):
		return again
	case isNotService(err):
		return notService
	}
	return data
}

// TestDamagedAnswers asks for a count over real HTTP, of a service that was met
// before or not, and tells what becomes of the request and how often it is sent.
func TestDamagedAnswers(t *testing.T) {
	const all = transport.DefaultRetries + 1
	xml := func(bodies ...string) (replies []reply) {
		for _, b := range bodies {
			replies = append(replies, reply{body: b})
		}
		return replies
	}
	html := func(status int, body string) []reply { return []reply{{status, "text/html", body}} }
	for _, tc := range []struct {
		name    string
		replies []reply
		new     string // what becomes of the run's first request
		tries   int
		met     string // what becomes of one after the service has answered
		metTry  int
	}{
		{"empty", xml(""), again, all, again, all},
		{"blanks", xml(" \n"), again, all, again, all},
		{"empty, then right", xml("", "", "", "", countOf7), fine, 5, fine, 5},
		{"HTML 200", html(200, webPage), notService, 3, again, all},
		{"HTML 200, then right", []reply{{200, "text/html", webPage}, {body: countOf7}}, fine, 2, fine, 2},
		{"HTML 404", html(404, webPage), notService, 3, again, all},
		{"HTML 403 labelled as XML", []reply{{403, "", webPage}}, notService, 3, again, all},
		{"empty 404", html(404, ""), notService, 3, again, all},
		{"text", html(200, "it works"), notService, 3, again, all},
		{"HTML 502", html(502, webPage), again, all, again, all},
		{"pages that differ", append(html(200, webPage), html(200, webPage+"<!-- 2 -->")...), again, all, again, all},
		{"page, then empty", append(html(200, webPage), reply{}), again, all, again, all},
		{"empty, then page", append(xml(""), html(200, webPage)...), again, all, again, all},
		{"XML of somebody else", xml(maintain), notService, 3, again, all},
		{"XML of somebody else, then right", xml(maintain, maintain, maintain, maintain, countOf7), notService, 3, fine, 5},
		{"cut in the envelope", xml(countOf7[:40]), again, all, again, all},
		{"cut before it", xml("<fs_resp"), again, all, again, all},
		{"wrong and cut", xml(wrongCut), again, all, again, all},
		{"malformed", xml(malformed), again, all, again, all},
		{"malformed, then right", xml(malformed, malformed, malformed, countOf7), fine, 4, fine, 4},
		{"without its element", xml(noCount), data, 3, data, 3},
		{"no number", xml(noNumber), data, 3, data, 3},
		{"wrong, then right", xml(noCount, noNumber, countOf7), fine, 3, fine, 3},
		{"wrong in two ways", xml(noCount, noNumber), again, all, again, all},
		{"cut, then wrong", xml(countOf7[:40], noCount), again, all, again, all},
		{"neither success nor error", xml(`<fs_response/>`), data, 3, data, 3},
		{"busy, then wrong", []reply{{status: 429}, {body: noCount}}, data, 4, data, 4},
		{"502, then a page", []reply{{status: 502}, {200, "text/html", webPage}}, again, all, again, all},
		{"redirect", []reply{{status: 302}}, notService, 3, again, all},
		{"redirect, then right", []reply{{status: 302}, {body: countOf7}}, fine, 2, fine, 2},
		{"502, then a redirect", []reply{{status: 502}, {status: 302}}, again, all, again, all},
		{"page, then a redirect", append(html(200, webPage), reply{status: 307}), again, all, again, all},
		{"redirect, then a page", []reply{{status: 307}, {200, "text/html", webPage}}, again, all, again, all},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, met := range []bool{false, true} {
				fate, tries := tc.new, tc.tries
				service := &scripted{replies: tc.replies}
				c := extracttest.Serve(t, service, nil)
				if met {
					fate, tries = tc.met, tc.metTry
					service.replies = append([]reply{{body: failure("102")}}, tc.replies...)
					if err := countOnly(t.Context(), c.Fork()); err == nil {
						t.Fatal("no error 102")
					}
				}
				before := service.asked.Load()
				err := countOnly(t.Context(), c.Fork())
				sent := int(service.asked.Load() - before)
				if got := fateOf(err); got != fate || sent != tries {
					t.Errorf("met %t: %s after %d tries, want %s after %d: %v", met, got, sent, fate, tries, err)
				}
			}
		})
	}
}

// TestSeldomAnswered: a wrong answer that came once, while the network failed
// otherwise, came too seldom to be taken for the service's last word.
func TestSeldomAnswered(t *testing.T) {
	for _, tc := range []struct {
		retries int
		want    string
	}{{0, data}, {1, again}, {3, again}} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			c := extracttest.Answering(t, transport.Canary, func(*http.Request) (*http.Response, error) {
				if asked++; asked <= tc.retries {
					return nil, io.ErrUnexpectedEOF
				}
				return extracttest.Respond(200, noCount), nil
			}, func(cfg *transport.Config) { cfg.Retries = tc.retries })
			err := countOnly(t.Context(), c)
			if got := fateOf(err); got != tc.want || asked != tc.retries+1 {
				t.Errorf("%d retries: %s after %d attempts, want %s: %v", tc.retries, got, asked, tc.want, err)
			}
		})
	}
}

// TestNotServiceSays what came and what to do.
func TestNotServiceSays(t *testing.T) {
	for retries, want := range map[int]string{0: "form1 failed: what answers at the base URL does not seem", 8: "form1 failed after 3 attempts: what answers"} {
		c := extracttest.Serve(t, &scripted{replies: []reply{{404, "text/html", webPage}}}, func(cfg *transport.Config) { cfg.Retries = retries })
		err := countOnly(t.Context(), c)
		for _, part := range []string{"Get Results Count of form form1 failed", want, "it is an HTML page, such as a login page (HTTP status 404)"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%d retries: %v lacks %q", retries, err, part)
			}
		}
	}
	c := extracttest.Serve(t, &scripted{replies: []reply{{404, "application/json", `{"error": {"status": 404}}`}}}, nil)
	e := transport.MustAs[*transport.AnswerError](t, countOnly(t.Context(), c))
	if !strings.Contains(e.Error(), "may speak API v2 instead") || !strings.Contains(e.Hint(), "api: v2") {
		t.Errorf("JSON by API v1: %v, hint %s", e, e.Hint())
	}
}
