package transport

import (
	"log/slog"
	"testing"
	"time"
)

// TestCircuitOpens after a streak, by what the attempts of requests a and b
// brought: a or b nothing, A or B the same without being there at all.
func TestCircuitOpens(t *testing.T) {
	down := &NetworkError{Problem: "refused"}
	outcomes := map[rune]struct {
		outcome string
		err     error
	}{
		'g': {OutcomeOK, nil},
		'y': {OutcomeBusy, &ServiceError{Code: CodeBusy}},
		'r': {OutcomeRefused, &ServiceError{Code: CodeInvalidKey}},
		'i': {OutcomeInvalid, &AnswerError{}},
		'f': {OutcomeFailed, &NetworkError{Final: true}},
		'c': {OutcomeCancelled, down}, // the cause of another's cancellation
		'n': {"", down},               // not sent
	}
	for _, tc := range []struct {
		attempts string // a, b: the service was not there for that request
		open     bool
	}{
		{"abab", false},
		{"ababa", true},
		{"aaaab", true},
		{"aaaaaaaaaaaaaa", false}, // one request alone
		{"aaaaaaaaaaaaaab", true},
		{"ababgabab", false},
		{"ababyabab", false},
		{"ababrabab", false},
		{"ababgababa", true},
		{"aaaagbbbb", false},
		{"aaaagbbbbb", false},
		{"abiabifcn", false},
		{"abiabifcna", true}, // what tells nothing neither counts nor ends the streak
		{"ababag", false},
		{"ababay", false},
		{"ababar", false},
		{"ababai", true},
		{"ababac", true},
		{"ababagabab", false},
	} {
		c := newCircuit(Config{BackoffMin: time.Second, BackoffMax: time.Minute, Logger: slog.New(slog.DiscardHandler)})
		requests := map[rune]*effort{'a': {}, 'b': {}}
		for _, letter := range tc.attempts {
			e, o := requests[letter], OutcomeFailed
			if e == nil {
				e, o = &effort{last: outcomes[letter].err}, outcomes[letter].outcome
			} else {
				e.last = down
			}
			c.leave(t.Context(), false, e, o)
		}
		if c.open != tc.open {
			t.Errorf("after %s it is open: %v, want %v", tc.attempts, c.open, tc.open)
		}
	}
}

// TestCircuitPauses double up to the longest, each drawn between half and all.
func TestCircuitPauses(t *testing.T) {
	c := newCircuit(Config{BackoffMin: 500 * time.Millisecond, BackoffMax: 30 * time.Second})
	for i, seconds := range []int{1, 2, 4, 8, 16, 30, 30, 30} {
		c.failed = i
		want := time.Duration(seconds) * time.Second
		low, high := time.Hour, time.Duration(0)
		for range 500 {
			p := c.pause()
			low, high = min(low, p), max(high, p)
		}
		if low < want/2 || low > want*6/10 || high > want || high < want*9/10 {
			t.Errorf("pauses after %d probes from %s to %s, want %s to %s", i, low, high, want/2, want)
		}
	}
}

// TestOneSickFormIsNoOutage: where several forms are read, the failures of one
// of them open nothing, those of two do.
func TestOneSickFormIsNoOutage(t *testing.T) {
	for _, c := range []struct {
		forms int
		sick  []string
		open  bool
	}{
		{0, []string{"a"}, true}, {1, []string{"a"}, true}, {2, []string{"a"}, false}, {2, []string{"a", "b"}, true}, {500, []string{"a", "", "a"}, true},
	} {
		client, err := NewSender(Config{BaseURL: "https://service.example", Account: "a", Key: NewSecret("k"), BackoffMin: time.Second}, Dialect{})
		if err != nil {
			t.Fatal(err)
		}
		client.Reads(c.forms)
		for i := range 4 * opensAfter {
			e := &effort{form: c.sick[i%len(c.sick)], last: &NetworkError{Problem: "refused"}}
			client.circuit.leave(t.Context(), false, e, OutcomeFailed)
		}
		if client.circuit.open != c.open {
			t.Errorf("%d forms, sick %q: open is %t", c.forms, c.sick, !c.open)
		}
	}
}
