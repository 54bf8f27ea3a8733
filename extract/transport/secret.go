package transport

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
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

// maxEncoders is how many encodings on top of each other redact undoes to find a
// key. A proxy may percent-encode our request again and show it in HTML or JSON.
const maxEncoders = 3

// redact replaces a key in text by "[redacted]", also if the key is encoded. It
// knows percent-encoding, "+" for a blank, JSON and Go escapes, and XML and
// HTML references, also combined. It also knows base64 and hex. It records
// where every decoded byte came from, so that it removes only the key. With words set it
// leaves the key inside a longer word, unless that stands in an address.
func redact(text, key string, words bool) string {
	plain := []byte(key)
	keys := [][]byte{
		plain, hex.AppendEncode(nil, plain),
		base64.StdEncoding.AppendEncode(nil, plain), base64.RawStdEncoding.AppendEncode(nil, plain),
		base64.URLEncoding.AppendEncode(nil, plain), base64.RawURLEncoding.AppendEncode(nil, plain),
	}
	l := layer{text: []byte(text), from: make([]place, len(text))}
	for i := range l.from {
		l.from[i] = place{i, i + 1}
	}
	f := finder{keys: keys, words: words}
	if words {
		f.addresses = address.FindAllStringIndex(text, -1)
	}
	found := f.find(l, maxEncoders)
	slices.SortFunc(found, func(a, b place) int { return a.start - b.start })
	var out []byte
	done := 0
	for i := 0; i < len(found); {
		start, end := found[i].start, found[i].end
		for i++; i < len(found) && found[i].start < end; i++ {
			end = max(end, found[i].end)
		}
		out = append(append(out, text[done:start]...), redacted...)
		done = end
	}
	return string(append(out, text[done:]...))
}

// address finds the addresses in a text.
var address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]*`)

// finder looks for a key in its spellings.
type finder struct {
	keys      [][]byte
	words     bool    // a key counts as a whole word, and in addresses
	addresses [][]int // their places in the original text
}

// counts tells whether a key from at up to end in a layer is one.
func (f *finder) counts(l layer, at, end int) bool {
	inWord := at > 0 && wordByte(l.text[at-1]) && wordByte(l.text[at]) || end < len(l.text) && wordByte(l.text[end]) && wordByte(l.text[end-1])
	return !f.words || !inWord || slices.ContainsFunc(f.addresses, func(a []int) bool { return a[0] <= l.from[at].start && l.from[end-1].end <= a[1] })
}

// wordByte tells whether a byte is of a word: of a letter, a digit or "_".
func wordByte(c byte) bool {
	return c >= utf8.RuneSelf || c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// place is a range of bytes of the original text.
type place struct{ start, end int }

// layer is the text after some encodings were undone.
type layer struct {
	text []byte
	from []place // the place in the original text that each byte came from
}

// find returns the places where a key occurs. It also undoes up to depth further encodings
// and looks there.
func (f *finder) find(l layer, depth int) (found []place) {
	for _, key := range f.keys {
		for at := 0; at+len(key) <= len(l.text); at++ {
			i := bytes.Index(l.text[at:], key)
			if i < 0 {
				break
			}
			at += i
			if f.counts(l, at, at+len(key)) {
				found = append(found, place{l.from[at].start, l.from[at+len(key)-1].end})
			}
		}
	}
	if depth == 0 {
		return found
	}
	for _, d := range []decoder{percentDecoder, queryDecoder, backslashDecoder, markupDecoder} {
		if next, occurred := l.decode(d); occurred {
			found = append(found, f.find(next, depth-1)...)
		}
	}
	return found
}

// decoder decodes what is encoded at text[at:]. n is the number of encoded
// bytes, 0 if nothing is encoded there.
type decoder func(text []byte, at int) (decoded []byte, n int)

// decode undoes one encoding everywhere. It also tells whether the encoding occurred at all.
func (l layer) decode(d decoder) (layer, bool) {
	var out layer
	occurred := false
	for at := 0; at < len(l.text); {
		decoded, n := d(l.text, at)
		if n == 0 {
			decoded, n = l.text[at:at+1], 1
		} else {
			occurred = true
		}
		from := place{l.from[at].start, l.from[at+n-1].end}
		for _, b := range decoded {
			out.text, out.from = append(out.text, b), append(out.from, from)
		}
		at += n
	}
	return out, occurred
}

// percentDecoder decodes a percent-encoded byte, such as %2F or %2f.
func percentDecoder(text []byte, at int) ([]byte, int) {
	if text[at] != '%' || at+3 > len(text) {
		return nil, 0
	}
	v, err := strconv.ParseUint(string(text[at+1:at+3]), 16, 8)
	if err != nil {
		return nil, 0
	}
	return []byte{byte(v)}, 3
}

// queryDecoder decodes a percent-encoded byte, or "+" as a blank.
func queryDecoder(text []byte, at int) ([]byte, int) {
	if text[at] == '+' {
		return []byte{' '}, 1
	}
	return percentDecoder(text, at)
}

// backslashDecoder decodes an escape of JSON or of a Go string.
func backslashDecoder(text []byte, at int) ([]byte, int) {
	if text[at] != '\\' || at+2 > len(text) {
		return nil, 0
	}
	switch c := text[at+1]; c {
	case '"', '\'', '/':
		return []byte{c}, 2
	case 'u':
		return unicodeEscape(text, at)
	}
	const longest = 10
	rest := string(text[at:min(len(text), at+longest)])
	r, isRune, tail, err := strconv.UnquoteChar(rest, 0)
	switch n := len(rest) - len(tail); {
	case err != nil:
		return nil, 0
	case isRune:
		return utf8.AppendRune(nil, r), n
	default:
		return []byte{byte(r)}, n //nolint:gosec // a byte, says UnquoteChar
	}
}

// unicodeEscape decodes an escape such as \u00fc. A character beyond the basic
// plane takes two escapes.
func unicodeEscape(text []byte, at int) ([]byte, int) {
	for _, n := range []int{12, 6} {
		var plain string
		if at+n <= len(text) && json.Unmarshal([]byte(`"`+string(text[at:at+n])+`"`), &plain) == nil && utf8.RuneCountInString(plain) == 1 {
			return []byte(plain), n
		}
	}
	return nil, 0
}

// markupDecoder decodes a reference such as &amp;, &#38; or &#x26;.
func markupDecoder(text []byte, at int) ([]byte, int) {
	if text[at] != '&' {
		return nil, 0
	}
	const longest = 12
	n := bytes.IndexByte(text[at:min(len(text), at+longest)], ';') + 1
	if n == 0 {
		return nil, 0
	}
	name := string(text[at : at+n])
	if plain := html.UnescapeString(name); plain != name {
		return []byte(plain), n
	}
	return nil, 0
}
