package v1

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/page"
)

// zeroBytes finds the first zero byte of w: the lowest set bit of the result is
// the highest bit of that byte. The result is 0 if no byte is zero.
func zeroBytes(w uint64) uint64 { return (w - page.LowBits) &^ w & page.HighBits }

// textEnd returns the offset of the first <, > or & in b from i, len(b) if
// there is none. < and > differ in one bit, so one comparison finds both.
func textEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := zeroBytes((w|2*page.LowBits)^'>'*page.LowBits) | zeroBytes(w^'&'*page.LowBits); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '<' || c == '>' || c == '&' {
			return i
		}
	}
	return i
}

// isAt tells whether text stands at b[i]. It is fast where text is a constant.
func isAt(b []byte, i int, text string) bool {
	return len(b)-i >= len(text) && string(b[i:i+len(text)]) == text
}

// scanText reads character data up to the next markup.
func (s *scanner) scanText() error {
	start := s.Pos
	for i := start; ; {
		i = textEnd(s.Buf, i)
		if i == len(s.Buf) {
			return s.Truncated()
		}
		switch s.Buf[i] {
		case '<':
			s.text, s.Pos = page.Span{Start: int32(start), End: int32(i)}, i
			return nil
		case '&':
			// References are rewritten in place from here to the end of the text.
			n := bytes.IndexByte(s.Buf[i:], '<')
			if n < 0 {
				return s.Truncated()
			}
			if at := bytes.Index(s.Buf[i:i+n], []byte("]]>")); at >= 0 {
				return s.Fail(i+at, "a ]]> without a CDATA section")
			}
			end, err := s.decodeReferences(i, i+n)
			s.text, s.Pos = page.Span{Start: int32(start), End: int32(end)}, i+n
			return err
		default: // '>'
			if i-start >= 2 && s.Buf[i-1] == ']' && s.Buf[i-2] == ']' {
				return s.Fail(i-2, "a ]]> without a CDATA section")
			}
			i++
		}
	}
}

// decodeReferences decodes the references in s.Buf[i:end] in place; the first begins at i. It
// returns the offset at which the decoded text ends.
func (s *scanner) decodeReferences(i, end int) (int, error) {
	w := i
	for {
		r, n := decodeReference(s.Buf[i:end])
		if n == 0 {
			return 0, s.Fail(i, "a & that does not begin &amp; &lt; &gt; &quot; &apos; &#n; or &#xn;")
		}
		w = s.Put(w, r)
		i += n
		next := bytes.IndexByte(s.Buf[i:end], '&')
		if next < 0 {
			return w + copy(s.Buf[w:], s.Buf[i:end]), nil
		}
		w += copy(s.Buf[w:], s.Buf[i:i+next])
		i += next
	}
}

// decodeReference decodes the reference at the start of b. It returns the character
// and the length of the reference, 0 if b begins with no reference.
func decodeReference(b []byte) (rune, int) {
	if len(b) > 1 && b[1] == '#' {
		return numericReference(b)
	}
	for _, e := range [...]struct {
		text string
		r    rune
	}{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}} {
		if len(b) >= len(e.text) && string(b[:len(e.text)]) == e.text {
			return e.r, len(e.text)
		}
	}
	return 0, 0
}

// numericReference reads a reference &#n; or &#xn; at the start of b. n is its length in bytes, 0
// if there is none. The character r may lie beyond Unicode.
func numericReference(b []byte) (r rune, n int) {
	base, i := rune(10), 2
	if len(b) > 2 && b[2] == 'x' {
		base, i = 16, 3
	}
	for first := i; i < len(b); i++ {
		var d rune
		switch c := b[i]; {
		case '0' <= c && c <= '9':
			d = rune(c - '0')
		case base == 16 && 'a' <= c|0x20 && c|0x20 <= 'f':
			d = rune(c|0x20-'a') + 10
		case c == ';' && i > first:
			return r, i + 1
		default:
			return 0, 0
		}
		r = min(r*base+d, utf8.MaxRune+1)
	}
	return 0, 0
}

// join returns the span of all texts, one behind the other. The texts move left in s.Buf, over
// markup that was read already.
func (s *scanner) join(texts []page.Span) (all page.Span) {
	for i, text := range texts {
		if i == 0 {
			all = text
		} else {
			all.End += int32(copy(s.Buf[all.End:], s.Bytes(text)))
		}
	}
	return all
}

// scanDeclaration reads markup that begins with <!. For a CDATA section isData is true, and s.text
// is the section's text. A comment or a DOCTYPE is skipped.
func (s *scanner) scanDeclaration() (isData bool, err error) {
	rest := s.Buf[s.Pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		return false, s.skipComment()
	case bytes.HasPrefix(rest, []byte("<![CDATA[")):
		if len(s.open) == 0 {
			return false, s.Fail(s.Pos, "a CDATA section outside the root element")
		}
		start := s.Pos + len("<![CDATA[")
		n := bytes.Index(s.Buf[start:], []byte("]]>"))
		if n < 0 {
			return false, s.Truncated()
		}
		s.text, s.Pos = page.Span{Start: int32(start), End: int32(start + n)}, start+n+len("]]>")
		return true, nil
	case bytes.HasPrefix(rest, []byte("<!DOCTYPE")):
		return false, s.skipDoctype()
	}
	for _, whole := range [...]string{"<!--", "<![CDATA[", "<!DOCTYPE"} {
		if len(rest) < len(whole) && whole[:len(rest)] == string(rest) {
			return false, s.Truncated()
		}
	}
	return false, s.Fail(s.Pos, "a <! that does not begin a comment, a CDATA section or a DOCTYPE")
}

func (s *scanner) skipComment() error {
	start := s.Pos + len("<!--")
	n := bytes.Index(s.Buf[start:], []byte("--"))
	if n < 0 || start+n+2 >= len(s.Buf) {
		return s.Truncated()
	}
	if s.Buf[start+n+2] != '>' {
		return s.Fail(start+n, "a -- inside a comment")
	}
	s.Pos = start + n + len("-->")
	return nil
}

// skipDoctype passes over a DOCTYPE. A DOCTYPE with an internal subset is refused,
// because the subset could define entities.
func (s *scanner) skipDoctype() error {
	if s.rootSeen || s.typeSeen {
		return s.Fail(s.Pos, "a second DOCTYPE, or one that is not before the root element")
	}
	s.typeSeen = true
	var quote byte
	for i := s.Pos + len("<!DOCTYPE"); i < len(s.Buf); i++ {
		switch c := s.Buf[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '<':
			return s.Fail(i, "a DOCTYPE with an internal subset")
		case c == '>':
			s.Pos = i + 1
			return nil
		}
	}
	return s.Truncated()
}

// skipInstruction passes over <?target …?>. With the target xml this is the XML
// declaration, which is allowed only at the beginning of the document. Blanks before the
// declaration are tolerated, because some programs write them.
func (s *scanner) skipInstruction() error {
	start := s.Pos + len("<?")
	end := nameEnd(s.Buf, start)
	n := bytes.Index(s.Buf[end:], []byte("?>"))
	switch {
	case n < 0:
		return s.Truncated()
	case end == start:
		return s.Fail(start, "a processing instruction without a name")
	case s.Pos != s.first && bytes.EqualFold(s.Buf[start:end], []byte("xml")):
		return s.Fail(s.Pos, "an XML declaration that is not at the beginning")
	}
	s.Pos = end + n + len("?>")
	return nil
}

// Roles of an ASCII byte in a name (XML 1.0, fifth edition, productions 4 and
// 4a).
const (
	nameStarts    = 1 << iota // a name may begin with the byte
	nameContinues             // a name may contain the byte
)

var nameTable = func() (t [utf8.RuneSelf]uint8) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == ':':
			t[c] = nameStarts | nameContinues
		case '0' <= c && c <= '9', c == '-', c == '.':
			t[c] = nameContinues
		}
	}
	return t
}()

// nameEnd returns the offset after the name at b[i], i if there is none. Beyond ASCII a name may
// have every character but U+FFFD, which here marks a replaced character: a damaged name must not
// pass for an unknown element.
func nameEnd(b []byte, i int) int {
	role := uint8(nameStarts)
	for ; i < len(b); role = nameContinues {
		size := 1
		if c := b[i]; c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(b[i:]); r == utf8.RuneError {
				return i
			}
		} else if nameTable[c]&role == 0 {
			return i
		}
		i += size
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
