package transport_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

// attempts is how many requests a client says it has sent.
func attempts(c extract.Client) int64 {
	r := c.Requests()
	return r.Results + r.Count + r.Other + r.Retries
}

// TestOutcomes tells what each kind of error counts as, and what it tells the
// circuit.
func TestOutcomes(t *testing.T) {
	const answer, absence, neither = "answer", "absence", "neither"
	service := func(code, status int) error { return &transport.ServiceError{Code: code, Status: status} }
	for _, tc := range []struct {
		name    string
		err     error
		want    string
		circuit string
	}{
		{"good", nil, transport.OutcomeOK, answer},
		{"error 3", service(transport.CodeBusy, 200), transport.OutcomeBusy, answer},
		{"error 3 with 503", service(transport.CodeBusy, 503), transport.OutcomeBusy, answer},
		{"error 0 with 429", service(transport.CodeUnexpected, 429), transport.OutcomeBusy, answer},
		{"error 0 with 503", service(transport.CodeUnexpected, 503), transport.OutcomeBusy, answer},
		{"unlisted error with 429", service(57, 429), transport.OutcomeBusy, answer},
		{"429 of a proxy", &transport.StatusError{Status: 429}, transport.OutcomeBusy, answer},
		{"503 with Retry-After", &transport.StatusError{Status: 503, RetryAfter: time.Second}, transport.OutcomeBusy, answer},
		{"503 of a proxy", &transport.StatusError{Status: 503}, transport.OutcomeBusy, absence},
		{"error 0", service(transport.CodeUnexpected, 200), transport.OutcomeRefused, answer},
		{"error 0 with 500", service(transport.CodeUnexpected, 500), transport.OutcomeRefused, answer},
		{"error without a code", service(transport.CodeNone, 200), transport.OutcomeRefused, answer},
		{"error 1", service(transport.CodeInvalidURL, 404), transport.OutcomeRefused, answer},
		{"error 2", service(transport.CodeInvalidValue, 200), transport.OutcomeRefused, answer},
		{"error 100", service(transport.CodeInvalidKey, 401), transport.OutcomeRefused, answer},
		{"error 100 with 503", service(transport.CodeInvalidKey, 503), transport.OutcomeRefused, answer},
		{"error 101", service(transport.CodeInvalidUser, 404), transport.OutcomeRefused, answer},
		{"error 102", service(transport.CodeInvalidForm, 200), transport.OutcomeRefused, answer},
		{"error 103", service(transport.CodeInvalidID, 200), transport.OutcomeRefused, answer},
		{"redirect", &transport.AnswerError{Fault: transport.FaultForeign, Status: 302}, transport.OutcomeRefused, absence},
		{"404 of a proxy", &transport.AnswerError{Status: 404}, transport.OutcomeRefused, neither},
		{"500 of a proxy", &transport.StatusError{Status: 500}, transport.OutcomeFailed, absence},
		{"502 of a proxy", &transport.StatusError{Status: 502}, transport.OutcomeFailed, absence},
		{"network", &transport.NetworkError{}, transport.OutcomeFailed, absence},
		{"cut answer", &transport.NetworkError{}, transport.OutcomeFailed, absence},
		{"host not known", transport.HostUnknown, transport.OutcomeFailed, absence},
		{"certificate", &transport.NetworkError{Final: true}, transport.OutcomeFailed, neither},
		{"not XML", &transport.AnswerError{Status: 200}, transport.OutcomeInvalid, neither},
		{"not XML with 206", &transport.AnswerError{Status: 206}, transport.OutcomeInvalid, neither},
		{"empty", &transport.AnswerError{Fault: transport.FaultEmpty}, transport.OutcomeInvalid, absence},
		{"page of a proxy", &transport.AnswerError{Fault: transport.FaultGarbled}, transport.OutcomeInvalid, absence},
		{"XML of a proxy", &transport.AnswerError{Fault: transport.FaultForeign}, transport.OutcomeInvalid, absence},
		{"malformed", &transport.AnswerError{Fault: transport.FaultGarbled, Ours: true}, transport.OutcomeInvalid, neither},
		{"cut", &transport.AnswerError{Fault: transport.FaultCut, Ours: true}, transport.OutcomeInvalid, neither},
	} {
		outcome, answered, absent := transport.MeaningOf(tc.err, true)
		if outcome != tc.want {
			t.Errorf("%s counts as %s, want %s", tc.name, outcome, tc.want)
		}
		if answered != (tc.circuit == answer) || absent != (tc.circuit == absence) {
			t.Errorf("%s: answer %v, absence %v; want %s", tc.name, answered, absent, tc.circuit)
		}
		if _, _, absent := transport.MeaningOf(tc.err, false); isAnswerError(tc.err) && absent {
			t.Errorf("%s is an absence of a service that was never met", tc.name)
		}
	}
}

// TestOutcomesAddUp: every attempt that is sent has one outcome, whatever ends
// it, and those of a fork are counted by the fork and above it.
func TestOutcomesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := map[string]func(*http.Request) (*http.Response, error){
			"ok":       func(*http.Request) (*http.Response, error) { return extracttest.Respond(200, countOf7), nil },
			"busy":     func(*http.Request) (*http.Response, error) { return extracttest.Respond(429, failure("3")), nil },
			"refused":  func(*http.Request) (*http.Response, error) { return extracttest.Respond(404, failure("102")), nil },
			"redirect": func(*http.Request) (*http.Response, error) { return extracttest.Respond(302, "", "Location: /x"), nil },
			"404":      func(*http.Request) (*http.Response, error) { return extracttest.Respond(404, "nothing here"), nil },
			"down": func(*http.Request) (*http.Response, error) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			},
			"502": func(*http.Request) (*http.Response, error) { return extracttest.Respond(502, "<html>"), nil },
			"cut": func(*http.Request) (*http.Response, error) {
				res := extracttest.Respond(200, "")
				res.Body = io.NopCloser(io.MultiReader(strings.NewReader("<fs_resp"), errReader{io.ErrUnexpectedEOF}))
				return res, nil
			},
			"invalid": func(*http.Request) (*http.Response, error) { return extracttest.Respond(200, "hello"), nil },
			"hangs":   func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
		}
		c := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
			form := strings.Split(r.URL.Path, "/")[5]
			return script[form](r)
		}, func(cfg *transport.Config) { cfg.Retries = 0 })
		fork := c.Fork()
		inner := fork.Fork()
		ask := func(c extract.Client, form string, patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _ = c.Count(ctx, form, extract.CountQuery{})
			_, _ = c.Count(t.Context(), "ok", extract.CountQuery{}) // the streak ends
		}
		for form := range script {
			ask(c, form, time.Hour)
			ask(fork, form, time.Hour)
		}
		ask(fork, "hangs", time.Second) // cancelled
		ask(inner, "busy", time.Hour)
		if _, err := fork.Forms(ended(t)); err == nil {
			t.Error("a request that was never sent succeeded")
		}
		for _, tc := range []struct {
			name string
			c    extract.Client
			want map[string]int64
		}{
			{"inner", inner, map[string]int64{transport.OutcomeOK: 1, transport.OutcomeBusy: 1, transport.OutcomeRefused: 0, transport.OutcomeFailed: 0, transport.OutcomeInvalid: 0, transport.OutcomeCancelled: 0}},
			{"fork", fork, map[string]int64{transport.OutcomeOK: 13, transport.OutcomeBusy: 2, transport.OutcomeRefused: 3, transport.OutcomeFailed: 4, transport.OutcomeInvalid: 1, transport.OutcomeCancelled: 1}},
			{"all", c, map[string]int64{transport.OutcomeOK: 24, transport.OutcomeBusy: 3, transport.OutcomeRefused: 6, transport.OutcomeFailed: 8, transport.OutcomeInvalid: 2, transport.OutcomeCancelled: 1}},
		} {
			got, sum := tc.c.Outcomes(), int64(0)
			for _, n := range got {
				sum += n
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
			}
			if sum != attempts(tc.c) {
				t.Errorf("%s: %d outcomes of %d attempts", tc.name, sum, attempts(tc.c))
			}
		}
	})
}

// ended is a context that has ended.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestForkSharesAllButItsNumbers, and closing it harms nobody.
func TestForkSharesAllButItsNumbers(t *testing.T) {
	closed := 0
	c := extracttest.Answering(t, transport.Canary, func(*http.Request) (*http.Response, error) {
		return extracttest.Respond(200, extracttest.Success("<results/><count>7</count>")), nil
	}, nil)
	c.Settings().Transport = closing{c.Settings().Transport, &closed}
	fork := c.Fork()
	page, err := fork.Results(t.Context(), "x", extract.ResultsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	page.Release()
	if !fork.(*v1.Client).SharesAllBut(c.Sender) {
		t.Error("the fork has parts of its own")
	}
	fork.Close()
	if closed != 0 {
		t.Error("closing a fork drops the connections of others")
	}
	if err := countOnly(t.Context(), c); err != nil {
		t.Errorf("after a fork was closed: %v", err)
	}
	if f, all := fork.Requests(), c.Requests(); f.Results != 1 || f.Count != 0 || all.Results != 1 || all.Count != 1 {
		t.Errorf("fork %+v, all %+v", f, all)
	}
	c.Close()
	if closed != 1 {
		t.Error("closing the client keeps its connections")
	}
}

type closing struct {
	http.RoundTripper
	closed *int
}

func (c closing) CloseIdleConnections() { *c.closed++ }
