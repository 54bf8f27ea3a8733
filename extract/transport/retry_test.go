package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/transport"
)

// TestFailures tells for every kind of failure what it becomes, whether it
// calls itself temporary, and how often it is tried with eight retries.
func TestFailures(t *testing.T) {
	const many = transport.DefaultRetries + 1
	code := func(n int) func(error) bool {
		return func(err error) bool {
			s, ok := errors.AsType[*transport.ServiceError](err)
			return ok && s.Code == n
		}
	}
	status := func(n int) func(error) bool {
		return func(err error) bool {
			s, ok := errors.AsType[*transport.StatusError](err)
			return ok && s.Status == n
		}
	}
	for _, tc := range []struct {
		name      string
		status    int
		body      string
		is        func(error) bool
		temporary bool
		attempts  int
	}{
		{"0 unexpected", 200, failure("0"), code(transport.CodeUnexpected), false, transport.DoubtfulTries},
		{"0 with 500", 500, failure("0"), code(transport.CodeUnexpected), false, transport.DoubtfulTries},
		{"0 with 503", 503, failure("0"), code(transport.CodeUnexpected), true, many},
		{"1 URL", 404, failure("1"), code(transport.CodeInvalidURL), false, 1},
		{"2 value", 400, failure("2"), code(transport.CodeInvalidValue), false, 1},
		{"3 busy in 200", 200, failure("3"), code(transport.CodeBusy), true, many},
		{"3 busy in 429", 429, failure("3"), code(transport.CodeBusy), true, many},
		{"3 busy in 503", 503, failure("3"), code(transport.CodeBusy), true, many},
		{"100 key", 401, failure("100"), code(transport.CodeInvalidKey), false, 1},
		{"100 key with 503", 503, failure("100"), code(transport.CodeInvalidKey), false, 1},
		{"101 user", 404, failure("101"), code(transport.CodeInvalidUser), false, 1},
		{"102 form", 200, failure("102"), code(transport.CodeInvalidForm), false, 1},
		{"103 id", 200, failure("103"), code(transport.CodeInvalidID), false, 1},
		{"unlisted", 200, failure("57"), code(57), false, 1},
		{"unlisted with 429", 429, failure("57"), code(57), true, many},
		{"no code", 200, failure("what"), code(transport.CodeNone), false, transport.DoubtfulTries},
		{"HTML 502", 502, "<html><body>Bad Gateway<br></body></html>", status(502), true, many},
		{"text 429", 429, "slow down", status(429), true, many},
		{"empty 503", 503, "", status(503), true, many},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				c := extracttest.Answering(t, transport.Canary, func(*http.Request) (*http.Response, error) {
					asked++
					return extracttest.Respond(tc.status, tc.body), nil
				}, nil)
				start := time.Now()
				err := countOnly(t.Context(), c)
				e := transport.MustAs[*transport.RequestError](t, err)
				if !tc.is(err) || transport.Temporary(err) != tc.temporary {
					t.Errorf("err = %v, temporary %v", err, transport.Temporary(err))
				}
				least := tc.attempts
				if least == many {
					least -= 2 // long pauses, drawn by chance, may use the patience up first
				}
				if asked < least || asked > tc.attempts || e.Attempts != asked {
					t.Errorf("%d attempts, the error says %d; want %d to %d", asked, e.Attempts, least, tc.attempts)
				}
				if time.Since(start) > transport.DefaultPatience {
					t.Errorf("it took %s", time.Since(start))
				}
			})
		})
	}
}

func isNotService(err error) bool {
	e, ok := errors.AsType[*transport.AnswerError](err)
	return ok && e.NotService()
}

func isAnswerError(err error) bool {
	_, ok := errors.AsType[*transport.AnswerError](err)
	return ok
}

// TestNetworkFailures does the same for attempts that bring no answer.
func TestNetworkFailures(t *testing.T) {
	cut := func() (*http.Response, error) {
		res := extracttest.Respond(200, "")
		res.Body = io.NopCloser(io.MultiReader(strings.NewReader("<fs_resp"), errReader{io.ErrUnexpectedEOF}))
		return res, nil
	}
	for _, tc := range []struct {
		name     string
		answer   func() (*http.Response, error)
		want     string
		attempts int
	}{
		{"cut", cut, "closed before the whole answer came", transport.DefaultRetries + 1},
		{"refused", func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		}, "refused", transport.DefaultRetries + 1},
		{"unknown host", func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "fs1.example.com", IsNotFound: true}}
		}, "the host fs1.example.com is not known", transport.DoubtfulTries},
		{"resolver fails", func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", Name: "fs1.example.com", IsTemporary: true}}
		}, "server misbehaving", transport.DefaultRetries + 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := extracttest.Answering(t, transport.Canary, func(*http.Request) (*http.Response, error) { return tc.answer() }, func(cfg *transport.Config) {
					cfg.FirstPatience = transport.DefaultPatience
				})
				err := countOnly(t.Context(), c)
				least := tc.attempts
				if least > transport.DoubtfulTries {
					least -= 2 // as above
				}
				if e := transport.MustAs[*transport.RequestError](t, err); e.Attempts < least || e.Attempts > tc.attempts || !transport.Temporary(err) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%d attempts, err = %v; want %d, %q", e.Attempts, err, tc.attempts, tc.want)
				}
			})
		})
	}
}

// TestFullJitter: each pause is drawn between none and twice its mean, which
// doubles up to the longest.
func TestFullJitter(t *testing.T) {
	means := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	lows, highs, sums := make([]time.Duration, len(means)), make([]time.Duration, len(means)), make([]time.Duration, len(means))
	const runs = 400
	synctest.Test(t, func(t *testing.T) {
		for run := range runs {
			var last time.Time
			asked := 0
			c := extracttest.Answering(t, transport.Canary, func(*http.Request) (*http.Response, error) {
				if i := asked - 1; i >= 0 {
					pause := time.Since(last)
					if run == 0 {
						lows[i] = pause
					}
					lows[i], highs[i], sums[i] = min(lows[i], pause), max(highs[i], pause), sums[i]+pause
				}
				last, asked = time.Now(), asked+1
				return extracttest.Respond(429, ""), nil
			}, func(cfg *transport.Config) { cfg.BackoffMax, cfg.Retries = 4*time.Second, len(means) })
			_ = countOnly(t.Context(), c)
		}
	})
	means[len(means)-1] = 4 * time.Second // the longest
	for i, mean := range means {
		if lows[i] > mean/10 || highs[i] > 2*mean+1 || highs[i] < 2*mean*9/10 {
			t.Errorf("pause %d from %s to %s, want none to %s", i+1, lows[i], highs[i], 2*mean)
		}
		if got := sums[i] / runs; got < mean*8/10 || got > mean*12/10 {
			t.Errorf("pause %d is %s in the mean, want %s", i+1, got, mean)
		}
	}
}

// TestRetryAfter is waited for, in seconds or as a date; what is beyond the
// patience is not.
func TestRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		header string
		least  time.Duration
		gives  bool // up
	}{
		{"7", 7 * time.Second, false},
		{"100", 100 * time.Second, false},
		{"Sat, 01 Jan 2000 00:01:00 GMT", time.Minute, false}, // synctest's clock begins at 2000-01-01
		{"121", 0, true},
		{"Sat, 01 Jan 2000 01:00:00 GMT", 0, true},
		{"0", 0, false},
	} {
		for _, status := range []int{200, 429, 503} {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				c := extracttest.Answering(t, transport.Canary, func(*http.Request) (*http.Response, error) {
					if asked++; asked == 1 {
						return extracttest.Respond(status, failure("3"), "Retry-After: "+tc.header), nil
					}
					return extracttest.Respond(200, countOf7), nil
				}, nil)
				start := time.Now()
				err := countOnly(t.Context(), c)
				took := time.Since(start)
				if tc.gives {
					if err == nil || !transport.Temporary(err) || took != 0 || !strings.Contains(err.Error(), "it asks to wait") {
						t.Errorf("%s with %d: after %s err = %v, want to give up at once", tc.header, status, took, err)
					}
					return
				}
				if err != nil || took < tc.least || took > max(tc.least, time.Second) {
					t.Errorf("%s with %d: after %s err = %v, want %s", tc.header, status, took, err, tc.least)
				}
			})
		}
	}
}

// TestPatience is what attempts and pauses take, not the waiting for a place
// or for the budget.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
			if asked++; asked > 2 {
				return extracttest.Respond(200, countOf7), nil
			}
			<-r.Context().Done() // both time out
			return nil, r.Context().Err()
		}, func(cfg *transport.Config) { cfg.Budget = slowBudget(10 * time.Minute) })
		if err := countOnly(t.Context(), c); err != nil {
			t.Errorf("the wait for the budget was held against the request: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, func(cfg *transport.Config) { cfg.Retries = 1000 })
		start := time.Now()
		err := countOnly(t.Context(), c)
		if took := time.Since(start); took > transport.DefaultPatience+transport.DefaultTimeout || took < transport.DefaultPatience/2 {
			t.Errorf("it took %s", took)
		}
		if e := transport.MustAs[*transport.NetworkError](t, err); !transport.Temporary(err) || e.Problem != "no complete answer within 30s" {
			t.Errorf("err = %v", err)
		}
	})
}

type slowBudget time.Duration

func (b slowBudget) Reserve(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(b)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestTooHeavy: what fails as an answer that is too large for the service is asked for twice
// if the caller can ask for less. But a service that has answered nothing may be away.
func TestTooHeavy(t *testing.T) {
	const many = transport.DefaultRetries + 1
	for name, tc := range map[string]struct {
		status   int
		body     string
		err      error // in place of an answer; without one, and without a status, none comes in time
		heavy    bool
		attempts int // of a request for a page after the service has answered once
	}{
		"504":                    {504, "<html>", nil, true, 2},
		"504 with an error code": {504, failure("0"), nil, true, 2},
		"cut":                    {200, `<fs_response status="success"><results><result id="1">`, nil, true, 2},
		"reset":                  {0, "", errors.New("connection reset by peer"), true, 2},
		"time limit":             {0, "", nil, true, 2},
		"no connection":          {0, "", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, false, many},
		"no such host":           {0, "", &net.DNSError{IsNotFound: true, Name: "x"}, false, transport.DoubtfulTries},
		"502":                    {502, "<html>", nil, false, many},
		"503":                    {503, "<html>", nil, false, many},
		"busy":                   {429, failure("3"), nil, false, many},
		"refused":                {404, failure("102"), nil, false, 1},
		"no results":             {200, extracttest.Success("<forms/>"), nil, false, transport.DoubtfulTries},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := false
				c := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
					switch {
					case !fails:
						return extracttest.Respond(200, countOf7), nil
					case tc.status > 0:
						return extracttest.Respond(tc.status, tc.body), nil
					case tc.err != nil:
						return nil, tc.err
					}
					<-r.Context().Done()
					return nil, r.Context().Err()
				}, func(cfg *transport.Config) { cfg.Timeout, cfg.Patience = 5*time.Second, time.Hour })
				if err := countOnly(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				fails = true
				_, err := c.Results(t.Context(), "form1", extract.ResultsQuery{Halved: true})
				if transport.TooHeavy(err) != tc.heavy {
					t.Errorf("too heavy is %v: %v", !tc.heavy, err)
				}
				if n := transport.MustAs[*transport.RequestError](t, err).Attempts; n != tc.attempts {
					t.Errorf("%d attempts, want %d: %v", n, tc.attempts, err)
				}
			})
		})
	}
	if transport.TooHeavy(nil) || transport.TooHeavy(&transport.OutageError{Last: &transport.StatusError{Status: 504}}) {
		t.Error("no error, or an outage, is too heavy")
	}
}

// TestHeavyPagesAreNoOutage: several requests at once fail because they ask for too much,
// and smaller ones do not. If those fail too, it is an outage.
func TestHeavyPagesAreNoOutage(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var met atomic.Bool
			c := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
				if !met.Load() || !away && strings.Contains(r.URL.RawQuery, "fs_limit=1&") {
					return extracttest.Respond(200, extracttest.Success("<results/>")), nil
				}
				time.Sleep(10 * time.Second)
				return extracttest.Respond(504, "<html>"), nil
			}, func(cfg *transport.Config) { cfg.Concurrency = 8 })
			page := func(limit int) error {
				p, err := c.Results(t.Context(), "form1", extract.ResultsQuery{Limit: limit, Halved: limit > 1})
				if err == nil {
					p.Release()
				}
				return err
			}
			if err := page(1); err != nil {
				t.Fatal(err)
			}
			met.Store(true)
			start := time.Now()
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					for range 3 {
						err := page(100)
						if !transport.TooHeavy(err) && !away {
							t.Errorf("a large page: %v", err)
						}
						if err = page(1); (err != nil) != away {
							t.Errorf("a small page: %v", err)
						}
					}
				})
			}
			group.Wait()
			if took := time.Since(start); !away && took > 3*time.Minute {
				t.Errorf("it took %s", took)
			}
			if err := page(100); errors.As(err, new(*transport.OutageError)) != away {
				t.Errorf("away is %v: %v", away, err)
			}
		})
	}
}

// TestClocks: the date of the last answer beside our own time. Answers without one, and of
// a cache, say nothing.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var headers []string
		c := extracttest.Answering(t, transport.Canary, func(*http.Request) (*http.Response, error) {
			return extracttest.Respond(200, countOf7, headers...), nil
		}, nil)
		began := time.Now()
		for _, tc := range []struct {
			headers      []string
			theirs, ours time.Duration // after began; -1 is none
		}{
			{nil, -1, -1},
			{[]string{"Date: soon"}, -1, -1},
			{[]string{"Date: " + began.Add(time.Hour).UTC().Format(http.TimeFormat)}, time.Hour, 3 * time.Second},
			{nil, time.Hour, 3 * time.Second},
			{[]string{"Date: " + began.UTC().Format(http.TimeFormat), "Age: 5"}, time.Hour, 3 * time.Second},
			{[]string{"Date: " + began.Add(-time.Hour).UTC().Format(http.TimeFormat)}, -time.Hour, 6 * time.Second},
		} {
			time.Sleep(time.Second)
			headers = tc.headers
			if err := countOnly(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			theirs, ours := c.Fork().Clocks()
			if tc.theirs == -1 {
				if !theirs.IsZero() || !ours.IsZero() {
					t.Errorf("%v: %s, %s", tc.headers, theirs, ours)
				}
			} else if theirs.Sub(began) != tc.theirs || ours.Sub(began) != tc.ours {
				t.Errorf("%v: %s, %s", tc.headers, theirs.Sub(began), ours.Sub(began))
			}
		}
	})
}

// hanging is a body that hangs until its request ends.
type hanging struct{ ctx context.Context }

func (h hanging) Read([]byte) (int, error) {
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

// TestCopyIsNotRepeated unless the service turned it away unheard. Where it may have been
// carried out, the error says that nobody knows.
func TestCopyIsNotRepeated(t *testing.T) {
	made := extracttest.Success(`<form id="9"><directory>copy</directory></form>`)
	answer := func(status int, body string) extracttest.RoundTrip {
		return func(*http.Request) (*http.Response, error) { return extracttest.Respond(status, body), nil }
	}
	const repeated, refused, unclear = "repeated", "refused", "unclear"
	for _, tc := range []struct {
		name  string
		first extracttest.RoundTrip
		want  string
	}{
		{"busy", answer(503, failure("3")), repeated},
		{"busy in 200", answer(200, failure("3")), repeated},
		{"429", answer(429, "slow down"), repeated},
		{"no such form", answer(200, failure("102")), refused},
		{"page of a proxy", answer(200, webPage), refused},
		{"XML of a proxy", answer(200, maintain), refused},
		{"503 of a proxy", answer(503, "<html>"), unclear},
		{"502 of a proxy", answer(502, "<html>"), unclear},
		{"error 0 with 503", answer(503, failure("0")), unclear},
		{"error 0", answer(200, failure("0")), refused},
		{"empty", answer(200, ""), unclear},
		{"without its element", answer(200, noCount), unclear},
		{"malformed", answer(200, malformed), unclear},
		{"truncated", answer(200, made[:70]), unclear},
		{"cut", func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, unclear},
		{"timeout", func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, unclear},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			c := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
				if asked++; asked == 1 {
					return tc.first(r)
				}
				return extracttest.Respond(200, made), nil
			}, nil)
			form, err := c.Copy(t.Context(), "form1", extract.CopyTarget{})
			got := refused
			if _, ok := errors.AsType[*transport.Error](err); ok && !transport.Temporary(err) && strings.Contains(err.Error(), "it is not known whether the copy was made") {
				got = unclear
			} else if err == nil && asked == 2 && form.Directory == "copy" {
				got = repeated
			}
			if got != tc.want || got != repeated && asked != 1 {
				t.Errorf("%s: %s after %d requests, want %s: %v", tc.name, got, asked, tc.want, err)
			}
		})
	}
}

// TestCancelIsPrompt at every stage of a request: no virtual time passes
// between the cancellation and the return, and its cause is the error.
func TestCancelIsPrompt(t *testing.T) {
	hang := func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }
	for _, tc := range []struct {
		name   string
		f      extracttest.RoundTrip
		change func(*transport.Config)
		others int // requests that hold the places
	}{
		{"in the request", hang, nil, 0},
		{"in the body", func(r *http.Request) (*http.Response, error) {
			res := extracttest.Respond(200, "")
			res.Body = io.NopCloser(hanging{r.Context()})
			return res, nil
		}, nil, 0},
		{"in a pause", func(*http.Request) (*http.Response, error) {
			return extracttest.Respond(429, "", "Retry-After: 60"), nil
		}, nil, 0},
		{"at the gate", hang, nil, transport.DefaultConcurrency},
		{"at the budget", hang, func(cfg *transport.Config) { cfg.Budget = slowBudget(time.Hour) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := extracttest.Answering(t, transport.Canary, tc.f, tc.change)
				background, end := context.WithCancel(t.Context())
				for range tc.others {
					go func() { _ = countOnly(background, c) }()
				}
				synctest.Wait()
				stopsAtOnce(t, c, time.Second)
				end()
				synctest.Wait()
				if places(c) != 0 || waiters(c) != 0 {
					t.Errorf("%d places and %d waiters leaked", places(c), waiters(c))
				}
			})
		})
	}
}
