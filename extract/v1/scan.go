package v1

import (
	"bytes"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// event is what the scanner has just read.
type event uint8

const (
	eventEOF   event = iota
	eventStart       // a start tag: name, attributes
	eventEnd         // the end of the innermost open element, also of <a/>
	eventText        // character data or a CDATA section: text
)

// maxAttributes bounds the attributes of one start tag, because the check for
// duplicate names compares each attribute with all before it.
const maxAttributes = 64

// attribute is one attribute of a start tag. Its value is decoded.
type attribute struct{ name, value page.Span }

// scanner turns a well-formed XML 1.0 document into events. References (&amp;, &#10;) are
// decoded in place. Names are compared together with their prefixes. The service never uses
// prefixes, so <x:value> is an unknown element.
type scanner struct {
	extract.Scanner

	name     page.Span   // the name in the last start tag
	attrs    []attribute // the attributes of the last start tag
	text     page.Span   // what the last text event holds
	pending  bool        // the last start tag was of an empty element (<a/>): its end comes next
	rootSeen bool
	typeSeen bool // a DOCTYPE was met
	first    int  // the only offset at which an XML declaration may stand
	open     []page.Span
}

// init prepares s to read text from offset first.
func (s *scanner) init(text []byte, first int) {
	*s = scanner{Scanner: extract.Scanner{Buf: text, Pos: first}, first: blanksEnd(text, first), attrs: s.attrs[:0], open: s.open[:0]}
}

// Fail returns the error for an answer that is not well-formed XML at offset.
func (s *scanner) Fail(offset int, problem string) error {
	return s.Scanner.Fail(offset, "broken XML: "+problem)
}

// next reads the next event and returns it. Comments, processing instructions
// and a DOCTYPE are checked and skipped.
func (s *scanner) next() (event, error) {
	if s.pending {
		s.pending = false
		s.open = s.open[:len(s.open)-1]
		return eventEnd, nil
	}
	for s.Pos < len(s.Buf) {
		if s.Buf[s.Pos] != '<' {
			if len(s.open) > 0 {
				return eventText, s.scanText()
			}
			if err := s.skipBlanks(); err != nil {
				return eventEOF, err
			}
			continue
		}
		if s.Pos+1 == len(s.Buf) {
			return eventEOF, s.Truncated()
		}
		switch s.Buf[s.Pos+1] {
		case '/':
			return eventEnd, s.scanEnd()
		case '?':
			if err := s.skipInstruction(); err != nil {
				return eventEOF, err
			}
		case '!':
			if isData, err := s.scanDeclaration(); isData || err != nil {
				return eventText, err
			}
		default:
			return eventStart, s.scanStart()
		}
	}
	if len(s.open) > 0 || !s.rootSeen {
		return eventEOF, s.Truncated()
	}
	return eventEOF, nil
}

// child reads past the start tag of the next child of the innermost open
// element, and skips text before it. It returns false at the end of the open element.
func (s *scanner) child() (bool, error) {
	s.Pos = blanksEnd(s.Buf, s.Pos)
	for {
		ev, err := s.next()
		if err != nil || ev == eventStart {
			return err == nil, err
		}
		if ev == eventEnd {
			return false, nil
		}
	}
}

// children calls read after the start tag of each child of the innermost open
// element, with the child's name. read must read that child to its end.
func (s *scanner) children(read func(name []byte) error) error {
	for {
		more, err := s.child()
		if err != nil || !more {
			return err
		}
		if err := read(s.Bytes(s.name)); err != nil {
			return err
		}
	}
}

// opened reads past the start tag from at to end, whose name has name bytes. It is a faster
// scanStart for a tag whose bytes were compared already. It returns false, with nothing read, if
// no further element may be opened.
func (s *scanner) opened(at, end, name int) bool {
	if s.pending || len(s.open) >= page.MaxDepth {
		return false
	}
	s.open = append(s.open, page.Span{Start: int32(at + 1), End: int32(at + 1 + name)})
	s.Pos = end
	return true
}

// skip reads to the end of the element whose start tag was read last.
func (s *scanner) skip() error {
	for outer := len(s.open) - 1; len(s.open) > outer; {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// skipBlanks passes over white space outside the root element.
func (s *scanner) skipBlanks() error {
	s.Pos = blanksEnd(s.Buf, s.Pos)
	switch {
	case s.Pos == len(s.Buf) || s.Buf[s.Pos] == '<':
		return nil
	case s.rootSeen:
		return s.Fail(s.Pos, "text after the root element")
	}
	return s.Fail(s.Pos, "text before the root element")
}

// push records an open element. It fails if too many elements are open.
func (s *scanner) push(name page.Span) error {
	if err := s.Deeper(len(s.open), int(name.Start)); err != nil {
		return err
	}
	s.open = append(s.open, name)
	return nil
}

// scanStart reads a start tag.
func (s *scanner) scanStart() error {
	start := s.Pos + 1
	i := nameEnd(s.Buf, start)
	if i == start {
		return s.Fail(start, "a < that does not begin a tag")
	}
	if len(s.open) == 0 && s.rootSeen {
		return s.Fail(s.Pos, "a second root element")
	}
	s.rootSeen = true
	s.name = page.Span{Start: int32(start), End: int32(i)}
	s.attrs, s.Rewrote = s.attrs[:0], false
	for {
		j := blanksEnd(s.Buf, i)
		if j >= len(s.Buf) {
			return s.Truncated()
		}
		switch c := s.Buf[j]; {
		case c == '>':
			s.Pos = j + 1
			return s.push(s.name)
		case c == '/':
			if j+1 >= len(s.Buf) {
				return s.Truncated()
			}
			if s.Buf[j+1] != '>' {
				return s.Fail(j, "a / in the middle of a tag")
			}
			s.Pos, s.pending = j+2, true
			return s.push(s.name)
		case i == j:
			return s.Fail(j, "a tag with a bad name, or without a space before an attribute")
		}
		var err error
		if i, err = s.scanAttribute(j); err != nil {
			return err
		}
	}
}

// scanAttribute reads name="value" at i and returns the offset after it.
func (s *scanner) scanAttribute(i int) (int, error) {
	end := nameEnd(s.Buf, i)
	if end == i {
		return 0, s.Fail(i, "a bad attribute name")
	}
	name := page.Span{Start: int32(i), End: int32(end)}
	for _, a := range s.attrs {
		if string(s.Bytes(a.name)) == string(s.Bytes(name)) {
			return 0, s.Fail(i, "a duplicate attribute")
		}
	}
	if len(s.attrs) == maxAttributes {
		return 0, s.Problem(transport.FaultBeyond, i, "a tag with too many attributes")
	}
	i = blanksEnd(s.Buf, end)
	if i >= len(s.Buf) {
		return 0, s.Truncated()
	}
	if s.Buf[i] != '=' {
		return 0, s.Fail(i, "an attribute without =")
	}
	i = blanksEnd(s.Buf, i+1)
	if i >= len(s.Buf) {
		return 0, s.Truncated()
	}
	quote := s.Buf[i]
	if quote != '"' && quote != '\'' {
		return 0, s.Fail(i, "an attribute without quotes")
	}
	i++
	n := bytes.IndexByte(s.Buf[i:], quote)
	if n < 0 {
		return 0, s.Truncated()
	}
	value := s.Buf[i : i+n]
	if at := bytes.IndexByte(value, '<'); at >= 0 {
		return 0, s.Fail(i+at, "a < inside an attribute")
	}
	end = i + n
	if at := bytes.IndexByte(value, '&'); at >= 0 {
		var err error
		if end, err = s.decodeReferences(i+at, i+n); err != nil {
			return 0, err
		}
	}
	s.attrs = append(s.attrs, attribute{name, page.Span{Start: int32(i), End: int32(end)}})
	return i + n + 1, nil
}

// scanEnd reads an end tag and closes the innermost open element.
func (s *scanner) scanEnd() error {
	i := s.Pos + 2
	if len(s.open) == 0 {
		return s.Fail(s.Pos, "an end tag without a start tag")
	}
	name := s.Bytes(s.open[len(s.open)-1])
	if !bytes.HasPrefix(s.Buf[i:], name) {
		if len(s.Buf)-i < len(name) && bytes.HasPrefix(name, s.Buf[i:]) {
			return s.Truncated()
		}
		return s.Fail(s.Pos, "an end tag that does not match its start tag")
	}
	i += len(name)
	if i < len(s.Buf) && s.Buf[i] != '>' {
		i = blanksEnd(s.Buf, i)
	}
	if i >= len(s.Buf) {
		return s.Truncated()
	}
	if s.Buf[i] != '>' {
		return s.Fail(s.Pos, "an end tag that does not match its start tag")
	}
	s.Pos = i + 1
	s.open = s.open[:len(s.open)-1]
	return nil
}

// attr returns the value of an attribute of the last start tag, false if there is none.
func (s *scanner) attr(name string) ([]byte, bool) {
	for _, a := range s.attrs {
		if string(s.Bytes(a.name)) == name {
			return s.Bytes(a.value), true
		}
	}
	return nil, false
}

// blanksEnd returns the offset of the first byte of b from i that is no blank.
func blanksEnd(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}
