package extract

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
)

// attempts is how many requests a client says it has sent.
func attempts(c *Client) int64 {
	r := c.Requests()
	return r.Results + r.Count + r.Other + r.Retries
}

// TestOutcomes tells what each kind of error counts as, and what it tells the
// circuit.
func TestOutcomes(t *testing.T) {
	const answer, absence, neither = "answer", "absence", "neither"
	service := func(code, status int) error { return &ServiceError{Code: code, Status: status} }
	for _, tc := range []struct {
		name    string
		err     error
		status  int
		want    string
		circuit string
	}{
		{"good", nil, 200, OutcomeOK, answer},
		{"error 3", service(CodeBusy, 200), 200, OutcomeBusy, answer},
		{"error 3 with 503", service(CodeBusy, 503), 503, OutcomeBusy, answer},
		{"error 0 with 429", service(CodeUnexpected, 429), 429, OutcomeBusy, answer},
		{"error 0 with 503", service(CodeUnexpected, 503), 503, OutcomeBusy, answer},
		{"unlisted error with 429", service(57, 429), 429, OutcomeBusy, answer},
		{"429 of a proxy", &StatusError{Status: 429}, 429, OutcomeBusy, answer},
		{"503 with Retry-After", &StatusError{Status: 503, RetryAfter: time.Second}, 503, OutcomeBusy, answer},
		{"503 of a proxy", &StatusError{Status: 503}, 503, OutcomeBusy, absence},
		{"error 0", service(CodeUnexpected, 200), 200, OutcomeRefused, answer},
		{"error 0 with 500", service(CodeUnexpected, 500), 500, OutcomeRefused, answer},
		{"error without a code", service(CodeNone, 200), 200, OutcomeRefused, answer},
		{"error 1", service(CodeInvalidURL, 404), 404, OutcomeRefused, answer},
		{"error 2", service(CodeInvalidValue, 200), 200, OutcomeRefused, answer},
		{"error 100", service(CodeInvalidKey, 401), 401, OutcomeRefused, answer},
		{"error 100 with 503", service(CodeInvalidKey, 503), 503, OutcomeRefused, answer},
		{"error 101", service(CodeInvalidUser, 404), 404, OutcomeRefused, answer},
		{"error 102", service(CodeInvalidForm, 200), 200, OutcomeRefused, answer},
		{"error 103", service(CodeInvalidID, 200), 200, OutcomeRefused, answer},
		{"redirect", &RedirectError{Status: 302}, 302, OutcomeRefused, neither},
		{"404 of a proxy", &AnswerError{}, 404, OutcomeRefused, neither},
		{"500 of a proxy", &StatusError{Status: 500}, 500, OutcomeFailed, absence},
		{"502 of a proxy", &StatusError{Status: 502}, 502, OutcomeFailed, absence},
		{"network", &NetworkError{}, 0, OutcomeFailed, absence},
		{"cut answer", &NetworkError{}, 200, OutcomeFailed, absence},
		{"host not known", &NetworkError{doubtful: true}, 0, OutcomeFailed, absence},
		{"certificate", &NetworkError{Final: true}, 0, OutcomeFailed, neither},
		{"not XML", &AnswerError{}, 200, OutcomeInvalid, neither},
		{"not XML with 206", &AnswerError{}, 206, OutcomeInvalid, neither},
		{"empty", &AnswerError{fault: faultEmpty}, 200, OutcomeInvalid, absence},
		{"page of a proxy", &AnswerError{fault: faultGarbled}, 200, OutcomeInvalid, absence},
		{"XML of a proxy", &AnswerError{fault: faultForeign}, 200, OutcomeInvalid, absence},
		{"malformed", &AnswerError{fault: faultGarbled, ours: true}, 200, OutcomeInvalid, neither},
		{"cut", &AnswerError{fault: faultCut, ours: true}, 200, OutcomeInvalid, neither},
	} {
		if got := outcomeOf(tc.err, tc.status); got != tc.want {
			t.Errorf("%s counts as %s, want %s", tc.name, got, tc.want)
		}
		if isAnswer(tc.err) != (tc.circuit == answer) || isAbsence(tc.err, true) != (tc.circuit == absence) {
			t.Errorf("%s: answer %v, absence %v; want %s", tc.name, isAnswer(tc.err), isAbsence(tc.err, true), tc.circuit)
		}
		if isAnswerError(tc.err) && isAbsence(tc.err, false) {
			t.Errorf("%s is an absence of a service that was never met", tc.name)
		}
	}
}

// TestOutcomesAddUp: every attempt that is sent has one outcome, whatever ends
// it, and those of a fork are counted by the fork and above it.
func TestOutcomesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := map[string]func(*http.Request) (*http.Response, error){
			"ok":       func(*http.Request) (*http.Response, error) { return respond(200, countOf7), nil },
			"busy":     func(*http.Request) (*http.Response, error) { return respond(429, failure("3")), nil },
			"refused":  func(*http.Request) (*http.Response, error) { return respond(404, failure("102")), nil },
			"redirect": func(*http.Request) (*http.Response, error) { return respond(302, "", "Location: /x"), nil },
			"404":      func(*http.Request) (*http.Response, error) { return respond(404, "nothing here"), nil },
			"down": func(*http.Request) (*http.Response, error) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			},
			"502": func(*http.Request) (*http.Response, error) { return respond(502, "<html>"), nil },
			"cut": func(*http.Request) (*http.Response, error) {
				res := respond(200, "")
				res.Body = io.NopCloser(io.MultiReader(strings.NewReader("<fs_resp"), errReader{io.ErrUnexpectedEOF}))
				return res, nil
			},
			"invalid": func(*http.Request) (*http.Response, error) { return respond(200, "hello"), nil },
			"hangs":   func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
		}
		c := transportClient(t, func(r *http.Request) (*http.Response, error) {
			form := strings.Split(r.URL.Path, "/")[5]
			return script[form](r)
		}, func(cfg *Config) { cfg.Retries = 0 })
		fork := c.Fork()
		inner := fork.Fork()
		ask := func(c *Client, form string, patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _ = c.Count(ctx, form, CountQuery{})
			_, _ = c.Count(t.Context(), "ok", CountQuery{}) // the streak ends
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
			c    *Client
			want map[string]int64
		}{
			{"inner", inner, map[string]int64{OutcomeOK: 1, OutcomeBusy: 1, OutcomeRefused: 0, OutcomeFailed: 0, OutcomeInvalid: 0, OutcomeCancelled: 0}},
			{"fork", fork, map[string]int64{OutcomeOK: 13, OutcomeBusy: 2, OutcomeRefused: 3, OutcomeFailed: 4, OutcomeInvalid: 1, OutcomeCancelled: 1}},
			{"all", c, map[string]int64{OutcomeOK: 24, OutcomeBusy: 3, OutcomeRefused: 6, OutcomeFailed: 8, OutcomeInvalid: 2, OutcomeCancelled: 1}},
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
	c := transportClient(t, func(*http.Request) (*http.Response, error) {
		return respond(200, success("<results/><count>7</count>")), nil
	}, nil)
	c.cfg.Transport = closing{c.cfg.Transport, &closed}
	fork := c.Fork()
	page, err := fork.Results(t.Context(), "x", ResultsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	page.Release()
	if fork.gate != c.gate || fork.circuit != c.circuit || fork.usual != c.usual || fork.log != c.log {
		t.Error("the fork has parts of its own")
	}
	if c.usual.Load() == 0 {
		t.Error("the size of a page that the fork read is not remembered")
	}
	fork.Close()
	if closed != 0 {
		t.Error("closing a fork drops the connections of others")
	}
	if err := countOnly(t.Context(), c); err != nil {
		t.Errorf("after a fork was closed: %v", err)
	}
	if f, all := fork.Requests(), c.Requests(); f.Results != 1 || f.Count != 0 || all.Results != 1 || all.Count != 1 || f.Bytes == 0 || all.Bytes <= f.Bytes {
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
