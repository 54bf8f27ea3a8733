package extract

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

const redacted = "[redacted]"

// Secret holds an API key. However it is formatted, logged or marshalled it
// shows "[redacted]"; only the client reads the value.
type Secret struct{ value string }

// NewSecret wraps a key. Blanks and line ends around it are cut off, as files
// and environment variables tend to add them.
func NewSecret(value string) Secret { return Secret{strings.TrimSpace(value)} }

// IsZero tells whether there is no key.
func (s Secret) IsZero() bool { return s.value == "" }

// String returns "[redacted]".
func (s Secret) String() string { return redacted }

// Format writes "[redacted]" for every verb, %#v and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue is "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText gives "[redacted]", so that no JSON or YAML can hold the key.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// maxShown bounds the text that Redact gives back, in bytes: nobody reads more
// of a message, and a service may send any length.
const maxShown = 16 << 10

// Redact replaces the key in text: in plain, in the encoded forms that a URL
// may give it, and as others may have spelled it since. Of a very long text
// only the beginning comes back.
func (s Secret) Redact(text string) string {
	if s.value == "" || text == "" {
		return text
	}
	if len(text) <= maxShown {
		return redact(text, s.value, s.forms())
	}
	// A key that lies across the cut is found whole before anything is cut off.
	spelled := 12 * len(s.value) * maxEncoders
	text = redact(text[:min(len(text), maxShown+spelled)], s.value, s.forms())
	return strings.ToValidUTF8(text[:min(len(text), maxShown)], "") + " ..."
}

// forms returns the spellings of the key, encoded ones first: they may contain
// the plain one. Servers and proxies write escapes in either case.
func (s Secret) forms() []string {
	encoded := []string{
		escape(s.value), url.QueryEscape(s.value), url.PathEscape(s.value), (&url.URL{Path: s.value}).EscapedPath(),
	}
	all := make([]string, 0, 2*len(encoded)+1)
	for _, e := range encoded {
		all = append(all, e, lowerEscapes(e))
	}
	return append(all, s.value)
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(encoded string) string {
	b := []byte(encoded)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(encoded[i+1:i+3]))
		}
	}
	return string(b)
}
