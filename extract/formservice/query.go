package formservice

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pair is one parameter of a query, decoded.
type pair struct{ name, value string }

// parseQuery reads a URL's query by the letter, more strictly than net/url, so
// that a wrong client is caught: names and values are percent-encoded, no name is empty and
// none occurs twice. A raw "+" is an error, because it is unclear whether a plus or a space
// was meant. The pairs read before and after an error are returned with it, so that the API
// key can be checked first.
func parseQuery(raw string) ([]pair, error) {
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
		name, err := unescape(rawName, false)
		if err != nil {
			note(fmt.Errorf("a parameter's name %w", err))
			continue
		}
		value, err := unescape(rawValue, false)
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
	if i := strings.IndexFunc(s, func(r rune) bool { return r != '%' && !inQuery(r) }); i >= 0 {
		return "", fmt.Errorf("contains the byte %#02x unencoded", s[i])
	}
	if !loose && strings.Contains(s, "+") {
		return "", fmt.Errorf("contains a raw +; write %%2B for a plus, %%20 for a space")
	}
	text, err := url.PathUnescape(s)
	if err != nil {
		return "", fmt.Errorf("contains %% without two hexadecimal digits")
	}
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("is not UTF-8")
	}
	return text, nil
}

// inQuery tells whether RFC 3986 lets a character stand in a query as it is.
func inQuery(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~!$'()*+,;=:@/?", r)
}

// without returns a raw query without the parameters that secret names, for
// logs. What cannot be read is left out too, because it may be one of them.
func without(raw string, secret func(pair) bool) string {
	var shown []string
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
			shown = append(shown, part)
		}
	}
	return strings.Join(shown, "&")
}

// digits reads a number that is written with digits only and is at most most.
func digits(s string, most int64) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && int64(n) <= most
}
