package transport

import (
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// Canary is a key whose encoded forms differ from the plain one.
const Canary = "c4n4ry/key+with %special&signs=é"

// HidesKey fails the test if text holds the canary, plain or encoded.
func HidesKey(t testing.TB, what, text string) {
	t.Helper()
	for _, form := range spellings(Canary) {
		if strings.Contains(text, form) {
			t.Errorf("%s holds the key as %q:\n%s", what, form, text)
		}
	}
	if strings.Contains(text, "c4n4ry") {
		t.Errorf("%s holds a part of the key:\n%s", what, text)
	}
}

func MustAs[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("err = %v (%T), want a %T", err, err, e)
	}
	return e
}

// Raise keeps the highest.
func Raise(peak *atomic.Int64, n int64) {
	for was := peak.Load(); n > was && !peak.CompareAndSwap(was, n); was = peak.Load() {
	}
}

// spellings are the ways in which a URL may hold a key. Servers and proxies
// write escapes in either case.
func spellings(key string) []string {
	encoded := []string{Escape(key), url.QueryEscape(key), url.PathEscape(key), (&url.URL{Path: key}).EscapedPath()}
	all := make([]string, 0, 2*len(encoded)+1)
	for _, e := range encoded {
		all = append(all, e, LowerEscapes(e))
	}
	return append(all, key)
}

// LowerEscapes writes %2F as %2f.
func LowerEscapes(encoded string) string {
	b := []byte(encoded)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(encoded[i+1:i+3]))
		}
	}
	return string(b)
}
