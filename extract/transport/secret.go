package transport

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const redacted = "[redacted]"

// Secret holds an API key. If it is formatted, logged or marshalled, it shows
// "[redacted]". Only the Sender reads the value.
type Secret struct {
	value string
	from  string // what the key was read from, for messages: "FORMETL_API_KEY"; "" if unknown
}

// NewSecret wraps a key without the blanks and line ends that files and
// environment variables tend to add.
func NewSecret(value string) Secret { return Secret{value: strings.TrimSpace(value)} }

// From returns the key with the name of the variable, file or command that it was read from.
func (s Secret) From(origin string) Secret { return Secret{s.value, origin} }

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

// shortKey is the most characters of an API key that may be part of an ordinary word.
const shortKey = 7

// Redact returns text with the API key replaced by "[redacted]", also where the key is spelled as
// addresses, JSON, Go or HTML spell it, by up to three of these on top of one another, and in
// base64 and hexadecimal. A key of at most seven characters is replaced only where it is a whole
// word or stands in an address, so that the key "try" does not make "entry" unreadable. Redact
// returns only the beginning of a text of more than 16 KiB.
func (s Secret) Redact(text string) string {
	return s.redact(text, utf8.RuneCountInString(s.value) <= shortKey)
}

// RedactSent is like Redact, for a text that shows what is sent, such as an address or the
// parameters of a request: the key is replaced everywhere, however short it is.
func (s Secret) RedactSent(text string) string { return s.redact(text, false) }

// mostSpellings is how many spellings of the key on top of each other are looked for. A proxy may
// percent-encode our request again, or show it in HTML.
const mostSpellings = 3

// redact replaces the key in text. With words set, it leaves the key where it is part of a longer
// word that is not in an address.
func (s Secret) redact(text string, words bool) string {
	if s.value == "" || text == "" {
		return text
	}
	long := len(text) > maxShown
	if long { // more is searched than is shown, so that a key across the cut is found whole
		text = text[:min(len(text), maxShown+40*len(s.value))]
	}
	var addresses [][]int
	if words {
		addresses = address.FindAllStringIndex(text, -1)
	}
	key := []byte(s.value)
	encoded := []string{
		hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key), base64.RawStdEncoding.EncodeToString(key),
		base64.URLEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key),
	}
	var out strings.Builder
	known := spelled{}
	for at := 0; at < len(text); {
		ends := append(known.ends(text[at:], s.value, mostSpellings), 0)
		for _, key := range encoded {
			if strings.HasPrefix(text[at:], key) {
				ends = append(ends, len(key))
			}
		}
		end := at + slices.Max(ends)
		inAddress := func(a []int) bool { return a[0] <= at && end <= a[1] }
		if end == at || words && inWord(text, at, end) && !slices.ContainsFunc(addresses, inAddress) {
			out.WriteByte(text[at])
			at++
			continue
		}
		out.WriteString(redacted)
		at = end
	}
	if long {
		return strings.ToValidUTF8(out.String()[:min(out.Len(), maxShown)], "") + " ..."
	}
	return out.String()
}

// address matches the addresses in a text; escape matches a text that ends with an escape such
// as %3D or \n.
var (
	address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]*`)
	escape  = regexp.MustCompile(`(%[0-9A-Fa-f]{2}|\\[a-z]|\\u[0-9A-Fa-f]{4})$`)
)

// inWord tells whether the text from at up to end is a part of a longer word.
func inWord(text string, at, end int) bool {
	begins := at == 0 || !wordByte(text[at-1]) || !wordByte(text[at]) || escape.MatchString(text[max(0, at-len(`\u0000`)):at])
	ends := end == len(text) || !wordByte(text[end]) || !wordByte(text[end-1])
	return !begins || !ends
}

// wordByte tells whether a byte belongs to a word: to a letter, a digit or "_".
func wordByte(c byte) bool {
	return c >= utf8.RuneSelf || c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// spelled holds the other spellings of characters, by character, see of.
type spelled map[string][]string

// ends returns the offsets in text at which the key may end, if text begins with the key,
// plain or with characters that are spelled in other ways, up to depth ways on top of each other.
func (known spelled) ends(text, key string, depth int) []int {
	ends := []int{0}
	for key != "" && len(ends) > 0 {
		_, size := utf8.DecodeRuneInString(key)
		char := key[:size]
		key = key[size:]
		var further []int
		for _, at := range ends {
			rest := text[at:]
			if strings.HasPrefix(rest, char) {
				further = append(further, at+size)
			}
			if depth > 0 && rest != "" && strings.IndexByte(`%+\&`, rest[0]) >= 0 { // all other spellings begin with one of these
				for _, spelling := range known.of(char) {
					for _, n := range known.ends(rest, spelling, depth-1) {
						further = append(further, at+n)
					}
				}
			}
		}
		slices.Sort(further)
		ends = slices.Compact(further)
	}
	return ends
}

// of returns the spellings of a character in addresses, JSON, Go strings, XML and HTML.
func (known spelled) of(char string) []string {
	if all, ok := known[char]; ok {
		return all
	}
	r, _ := utf8.DecodeRuneInString(char)
	quoted := strconv.QuoteToASCII(char)
	percent, units, reference := "", "", fmt.Sprintf("&#x%x;", r)
	for _, b := range []byte(char) {
		percent += fmt.Sprintf("%%%02x", b)
	}
	for _, unit := range utf16.Encode([]rune(char)) {
		units += fmt.Sprintf(`\u%04x`, unit)
	}
	all := []string{
		percent, strings.ToUpper(percent), units, strings.ReplaceAll(strings.ToUpper(units), `\U`, `\u`), quoted[1 : len(quoted)-1], `\` + char,
		reference, strings.ToUpper(reference), fmt.Sprintf("&#%d;", r), html.EscapeString(char),
	}
	switch char {
	case " ":
		all = append(all, "+")
	case `"`:
		all = append(all, "&quot;")
	case "'":
		all = append(all, "&apos;")
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == char })
	known[char] = all
	return all
}
