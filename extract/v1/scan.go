package v1

import (
	"bytes"
	"errors"

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
// duplicates compares each with all before it.
const maxAttributes = 64

// attribute is one attribute of a start tag. Its value is decoded.
type attribute struct{ name, value page.Span }

// scanner turns a well-formed XML 1.0 document into events without copying or
// allocating: names and texts are spans of buf. buf must be clean, see
// cleanText. References (&amp;, &#10;) are decoded in place, because the result
// is never longer. Names are compared with their prefixes. The service never
// uses prefixes, so <x:value> is an unknown element.
type scanner struct {
	buf      []byte
	pos      int
	replaced int // references to characters that XML 1.0 forbids

	name     page.Span   // of the last start tag
	attrs    []attribute // of the last start tag
	text     page.Span   // of the last text event
	rewrote  bool        // the last start tag held a reference
	pending  bool        // the last start tag was empty: its end comes next
	rootSeen bool
	typeSeen bool // a DOCTYPE was met
	ours     bool // the root element is the service's
	first    int  // offset of the only place for an XML declaration
	open     []page.Span
}

// init prepares s to read text from offset first.
func (s *scanner) init(text []byte, first int) {
	*s = scanner{buf: text, pos: first, first: blanksEnd(text, first), attrs: s.attrs[:0], open: s.open[:0]}
}

// fail returns the error for an answer that is not well-formed at offset.
func (s *scanner) fail(offset int, problem string) error {
	return s.problem(transport.FaultGarbled, offset, problem)
}

func (s *scanner) problem(of transport.Fault, offset int, problem string) error {
	return &transport.AnswerError{Offset: offset, Problem: problem, Fault: of, Ours: s.ours}
}

// settle decides on the error of an answer. If err reports a well-formed but
// wrong answer, settle reads the rest. If that is not well-formed, the answer
// was damaged, and settle returns the damage. Else it returns err.
func (s *scanner) settle(err error) error {
	a, ok := errors.AsType[*transport.AnswerError](err)
	if !ok || a.Fault != transport.FaultWrong && a.Fault != transport.FaultForeign {
		return err
	}
	for {
		event, damage := s.next()
		if damage != nil {
			return damage
		}
		if event == eventEOF {
			return err
		}
	}
}

// next reads the next event and returns it. Comments, processing instructions
// and a DOCTYPE are checked and skipped.
func (s *scanner) next() (event, error) {
	if s.pending {
		s.pending = false
		s.open = s.open[:len(s.open)-1]
		return eventEnd, nil
	}
	for s.pos < len(s.buf) {
		if s.buf[s.pos] != '<' {
			if len(s.open) > 0 {
				return eventText, s.scanText()
			}
			if err := s.skipBlanks(); err != nil {
				return eventEOF, err
			}
			continue
		}
		if s.pos+1 == len(s.buf) {
			return eventEOF, s.truncated()
		}
		switch s.buf[s.pos+1] {
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
		return eventEOF, s.truncated()
	}
	return eventEOF, nil
}

func (s *scanner) truncated() error {
	return s.problem(transport.FaultCut, len(s.buf), "it is truncated: it ends before its root element does")
}

// child reads past the start tag of the next child of the innermost open
// element. It skips text on the way. It returns false at the end of the element.
func (s *scanner) child() (bool, error) {
	s.pos = blanksEnd(s.buf, s.pos)
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
		if err := read(s.bytes(s.name)); err != nil {
			return err
		}
	}
}

// take reads past the start tag tag if it comes next after blanks. Else it reads
// nothing and returns false. name is the length of the tag's name in bytes. take
// is a faster scanStart for tags that were read before or hold only a name.
func (s *scanner) take(tag []byte, name int) bool {
	i := blanksEnd(s.buf, s.pos)
	return bytes.HasPrefix(s.buf[i:], tag) && s.opened(i, len(tag), name)
}

// takeShort is take for a short tag.
func (s *scanner) takeShort(t tag, name int) bool {
	i := blanksEnd(s.buf, s.pos)
	return t.at(s.buf, i) && s.opened(i, t.size, name)
}

// opened reads past a start tag of that size at i, unless no element may be opened.
func (s *scanner) opened(i, size, name int) bool {
	if s.pending || len(s.open) >= maxDepth {
		return false
	}
	s.open = append(s.open, page.Span{Start: int32(i + 1), End: int32(i + 1 + name)})
	s.pos = i + size
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
	s.pos = blanksEnd(s.buf, s.pos)
	switch {
	case s.pos == len(s.buf) || s.buf[s.pos] == '<':
		return nil
	case s.rootSeen:
		return s.fail(s.pos, "text after the root element")
	}
	return s.fail(s.pos, "text before the root element")
}

// push records an open element. It fails if too many are open.
func (s *scanner) push(name page.Span) error {
	if len(s.open) >= maxDepth {
		return s.problem(transport.FaultBeyond, int(name.Start), "elements are nested deeper than the bound")
	}
	s.open = append(s.open, name)
	return nil
}

// scanStart reads a start tag.
func (s *scanner) scanStart() error {
	start := s.pos + 1
	i := nameEnd(s.buf, start)
	if i == start {
		return s.fail(start, "a < that begins no tag")
	}
	if len(s.open) == 0 && s.rootSeen {
		return s.fail(s.pos, "a second root element")
	}
	s.rootSeen = true
	s.name = page.Span{Start: int32(start), End: int32(i)}
	s.attrs, s.rewrote = s.attrs[:0], false
	for {
		j := blanksEnd(s.buf, i)
		if j >= len(s.buf) {
			return s.truncated()
		}
		switch c := s.buf[j]; {
		case c == '>':
			s.pos = j + 1
			return s.push(s.name)
		case c == '/':
			if j+1 >= len(s.buf) {
				return s.truncated()
			}
			if s.buf[j+1] != '>' {
				return s.fail(j, "a / inside a tag that does not end it")
			}
			s.pos, s.pending = j+2, true
			return s.push(s.name)
		case i == j:
			return s.fail(j, "a tag in which no space stands before an attribute, or a bad name")
		}
		var err error
		if i, err = s.scanAttribute(j); err != nil {
			return err
		}
	}
}

// scanAttribute reads name="value" at i and returns the offset after it.
func (s *scanner) scanAttribute(i int) (int, error) {
	end := nameEnd(s.buf, i)
	if end == i {
		return 0, s.fail(i, "a bad attribute name")
	}
	name := page.Span{Start: int32(i), End: int32(end)}
	for _, a := range s.attrs {
		if string(s.bytes(a.name)) == string(s.bytes(name)) {
			return 0, s.fail(i, "a duplicate attribute")
		}
	}
	if len(s.attrs) == maxAttributes {
		return 0, s.problem(transport.FaultBeyond, i, "a tag with more attributes than the bound")
	}
	i = blanksEnd(s.buf, end)
	if i >= len(s.buf) {
		return 0, s.truncated()
	}
	if s.buf[i] != '=' {
		return 0, s.fail(i, "an attribute without =")
	}
	i = blanksEnd(s.buf, i+1)
	if i >= len(s.buf) {
		return 0, s.truncated()
	}
	quote := s.buf[i]
	if quote != '"' && quote != '\'' {
		return 0, s.fail(i, "an attribute without quotes")
	}
	i++
	n := bytes.IndexByte(s.buf[i:], quote)
	if n < 0 {
		return 0, s.truncated()
	}
	value := s.buf[i : i+n]
	if at := bytes.IndexByte(value, '<'); at >= 0 {
		return 0, s.fail(i+at, "a < inside an attribute")
	}
	end = i + n
	if at := bytes.IndexByte(value, '&'); at >= 0 {
		s.rewrote = true
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
	i := s.pos + 2
	if len(s.open) == 0 {
		return s.fail(s.pos, "an end tag without a start tag")
	}
	name := s.bytes(s.open[len(s.open)-1])
	if !bytes.HasPrefix(s.buf[i:], name) {
		if len(s.buf)-i < len(name) && bytes.HasPrefix(name, s.buf[i:]) {
			return s.truncated()
		}
		return s.fail(s.pos, "an end tag that does not match the element it stands in")
	}
	i += len(name)
	if i < len(s.buf) && s.buf[i] != '>' {
		i = blanksEnd(s.buf, i)
	}
	if i >= len(s.buf) {
		return s.truncated()
	}
	if s.buf[i] != '>' {
		return s.fail(s.pos, "an end tag that does not match the element it stands in")
	}
	s.pos = i + 1
	s.open = s.open[:len(s.open)-1]
	return nil
}

func (s *scanner) bytes(v page.Span) []byte { return s.buf[v.Start:v.End] }

// attr returns the value of an attribute of the last start tag, false if there is none.
func (s *scanner) attr(name string) ([]byte, bool) {
	for _, a := range s.attrs {
		if string(s.bytes(a.name)) == name {
			return s.bytes(a.value), true
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
