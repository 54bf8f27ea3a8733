package transport

import (
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"
)

const redacted = "[redacted]"

// Secret holds an API key. If it is formatted, logged or marshalled, it shows
// "[redacted]". Only the Sender reads the value.
type Secret struct{ value string }

// NewSecret wraps a key without the blanks and line ends that files and
// environment variables tend to add.
func NewSecret(value string) Secret { return Secret{strings.TrimSpace(value)} }

// IsZero tells whether there is no key.
func (s Secret) IsZero() bool { return s.value == "" }

// String returns "[redacted]".
func (s Secret) String() string { return redacted }

// Format writes "[redacted]" for every verb, %#v and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue returns "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]", so that no JSON or YAML can hold the key.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// RedactAll returns text without any of the secrets, see Secret.Redact.
func RedactAll(text string, secrets ...Secret) string {
	for _, s := range secrets {
		text = s.Redact(text)
	}
	return text
}

// maxShown bounds the text that Redact returns, in bytes.
const maxShown = 16 << 10

// shortKey is how many characters a key has that may be part of an ordinary word.
const shortKey = 7

// Redact returns text with the key replaced by "[redacted]", also if the key is
// encoded. A key of at most seven characters is replaced where it is a whole word or
// stands in an address, so that "try" does not make "entry" unreadable. Redact
// returns only the beginning of a very long text.
func (s Secret) Redact(text string) string {
	return s.redact(text, utf8.RuneCountInString(s.value) <= shortKey)
}

// RedactSent is Redact for a text that shows what is sent, such as an address or the
// parameters of a request: every key is replaced, however short.
func (s Secret) RedactSent(text string) string { return s.redact(text, false) }

func (s Secret) redact(text string, words bool) string {
	if s.value == "" || text == "" {
		return text
	}
	if len(text) <= maxShown {
		return redact(text, s.value, words)
	}
	// Redact more than is shown, so that a key across the cut is found whole.
	spelled := 12 * len(s.value) * maxEncoders
	text = redact(text[:min(len(text), maxShown+spelled)], s.value, words)
	return strings.ToValidUTF8(text[:min(len(text), maxShown)], "") + " ..."
}
