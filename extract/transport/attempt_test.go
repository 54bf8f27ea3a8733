package transport

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", " 7 ", "-1", "+1", "1.5", "1e9", "99999999999999999999", "Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "12abc", "soon"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, v string) {
		if d := parseRetryAfter(v); d < 0 || d > longestRetryAfter {
			t.Errorf("parseRetryAfter(%q) = %s", v, d)
		}
	})
}

func TestParseRetryAfter(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "-1": 0, "+1": 0, "12abc": 0, "1.5": 0,
		"86401": longestRetryAfter, "99999999999999999999": longestRetryAfter,
		"Fri, 31 Dec 1999 23:59:59 GMT": 0, "Fri, 31 Dec 9999 23:59:59 GMT": longestRetryAfter,
	} {
		if got := parseRetryAfter(v); got != want {
			t.Errorf("parseRetryAfter(%q) = %s, want %s", v, got, want)
		}
	}
}

// TestCauseOfCancellationIsNotTouched: the error of one request ends the others
// of its group, and each of these is told of it.
func TestCauseOfCancellationIsNotTouched(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := &AnswerError{Fault: FaultEmpty}
	was := *cause
	s, err := NewSender(Config{BaseURL: "https://service.example", Account: "a", Key: NewSecret(Canary), Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		cancel(cause)
		return nil, context.Cause(r.Context())
	})}, Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("text")
	err = s.Send(ctx, Call{Transaction: GetForms, Body: &body, Decode: func(Header) error { return nil }})
	if !errors.Is(err, cause) {
		t.Errorf("err = %v", err)
	}
	if *cause != was {
		t.Errorf("the cause is now %+v", cause)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
