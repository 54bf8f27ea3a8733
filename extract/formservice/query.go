package formservice

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// pair is one parameter of a query, decoded.
type pair struct{ name, value string }

// parseQuery reads a URL's query by the letter, more strictly than net/url, so
// that a wrong client is caught: names and values are percent-encoded, no name is empty and none occurs twice. A raw "+" is an
// error, because it is unclear whether a plus or a space was meant; loose
// takes it as a plus. The pairs read before and after an error are returned
// with it, so that the API key can be checked first.
func parseQuery(raw string, loose bool) ([]pair, error) {
	if raw == "" {
		return nil, nil
	}
	var pairs []pair
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(raw, "&") {
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, err := unescape(rawName, loose)
		if err != nil {
			note(fmt.Errorf("a parameter's name %w", err))
			continue
		}
		value, err := unescape(rawValue, loose)
		switch {
		case err != nil:
			note(fmt.Errorf("the value of %s %w", name, err))
		case name == "":
			note(fmt.Errorf("a parameter has no name"))
		case seen[name]:
			note(fmt.Errorf("%s is given twice", name))
		default:
			seen[name] = true
			pairs = append(pairs, pair{name, value})
		}
	}
	return pairs, first
}

// unescape decodes a percent-encoded name or value.
func unescape(s string, loose bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
				return "", fmt.Errorf("holds %% without two hexadecimal digits")
			}
			b.WriteByte(byte(unhex(s[i+1])<<4 | unhex(s[i+2])))
			i += 2
		case c == '+' && !loose:
			return "", fmt.Errorf("holds a raw +; write %%2B for a plus, %%20 for a space")
		case !inQuery(c):
			return "", fmt.Errorf("holds the byte %#02x unencoded", c)
		default:
			b.WriteByte(c)
		}
	}
	if !utf8.ValidString(b.String()) {
		return "", fmt.Errorf("is not UTF-8")
	}
	return b.String(), nil
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// inQuery tells whether RFC 3986 lets a byte stand in a query as it is.
func inQuery(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("-._~!$'()*+,;=:@/?", c) >= 0
}

// without returns a raw query without the parameters that secret names, for
// logs. What cannot be read is left out too, because it may be one of them.
func without(raw string, secret func(pair) bool) string {
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, err := unescape(rawName, true)
		if err != nil || part == "" {
			continue
		}
		value, err := unescape(rawValue, true)
		if err != nil {
			value = rawValue
		}
		if !secret(pair{name, value}) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

// digits reads a number that is written with digits only and is at most most.
func digits(s string, most int64) (int64, bool) {
	if s == "" {
		return 0, false
	}
	var n int64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' || n > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, n <= most
}
