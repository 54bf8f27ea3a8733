package transport

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxEncoders is through how many encoders in a row a key is found. A proxy may
// percent-encode our request once more, and write it as HTML or JSON.
const maxEncoders = 3

// redact replaces a key in text however it is spelled: percent-encoded, with "+"
// for a blank, in the escapes of JSON and Go strings, in the references of XML
// and HTML, in several of these, or in base64 or hex. It undoes the encodings and
// remembers where every byte came from, so that only the key goes.
func redact(text, key string) string {
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
	found := l.find(keys, maxEncoders)
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

// place is a part of the original text.
type place struct{ start, end int }

// layer is the text with some encodings undone.
type layer struct {
	text []byte
	from []place // where in the original text each byte came from
}

// find returns where keys stand, also behind so many more encodings.
func (l layer) find(keys [][]byte, depth int) (found []place) {
	for _, key := range keys {
		for at := 0; at+len(key) <= len(l.text); at++ {
			i := bytes.Index(l.text[at:], key)
			if i < 0 {
				break
			}
			at += i
			found = append(found, place{l.from[at].start, l.from[at+len(key)-1].end})
		}
	}
	if depth == 0 {
		return found
	}
	for _, d := range []decoder{percentDecoder, queryDecoder, backslashDecoder, markupDecoder} {
		if next, occurred := l.decode(d); occurred {
			found = append(found, next.find(keys, depth-1)...)
		}
	}
	return found
}

// decoder undoes one encoding at text[at:]. n is the number of bytes that it took,
// 0 if nothing is encoded there.
type decoder func(text []byte, at int) (decoded []byte, n int)

// decode undoes an encoding throughout. It tells whether it occurred at all.
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

// percentDecoder undoes %2F and %2f.
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

// queryDecoder also undoes "+" for a blank.
func queryDecoder(text []byte, at int) ([]byte, int) {
	if text[at] == '+' {
		return []byte{' '}, 1
	}
	return percentDecoder(text, at)
}

// backslashDecoder undoes the escapes of JSON and Go strings.
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

// unicodeEscape undoes \u00fc. What lies beyond the basic plane takes two such
// escapes.
func unicodeEscape(text []byte, at int) ([]byte, int) {
	for _, n := range []int{12, 6} {
		var plain string
		if at+n <= len(text) && json.Unmarshal([]byte(`"`+string(text[at:at+n])+`"`), &plain) == nil && utf8.RuneCountInString(plain) == 1 {
			return []byte(plain), n
		}
	}
	return nil, 0
}

// markupDecoder undoes &amp;, &#38; and &#x26;.
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
