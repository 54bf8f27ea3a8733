package v2

import (
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// scanner reads JSON (RFC 8259) without copying or allocating: texts are spans of buf.
// buf must be clean, see isClean. Escapes are decoded in place.
type scanner struct {
	buf      []byte
	pos      int
	open     int // objects and arrays that are open
	replaced int // escapes of characters that a page cannot hold

	rewrote bool  // an escape was decoded since somebody cleared this
	ours    bool  // the answer has a member that the service's answers have
	wrong   error // the first fault of an answer that is well-formed so far
}

// init prepares s to read text from offset first.
func (s *scanner) init(text []byte, first int) {
	*s = scanner{buf: text, pos: first}
}

// fail returns the error for an answer that is not well-formed at offset.
func (s *scanner) fail(offset int, problem string) error {
	return s.problem(transport.FaultGarbled, offset, problem)
}

// blame records that a well-formed answer is wrong. Reading goes on, because an answer
// that turns out to be damaged further on is worth another attempt.
func (s *scanner) blame(offset int, problem string) {
	if s.wrong == nil {
		s.wrong = s.problem(transport.FaultWrong, offset, problem)
	}
}

func (s *scanner) problem(of transport.Fault, offset int, problem string) error {
	return &transport.AnswerError{Offset: offset, Problem: problem, Fault: of, Ours: s.ours}
}

func (s *scanner) truncated() error {
	return s.problem(transport.FaultCut, len(s.buf), "it is truncated: it ends before its last bracket")
}

func (s *scanner) bytes(v page.Span) []byte { return s.buf[v.Start:v.End] }

// next passes over blanks and returns the byte after them, which is not read.
func (s *scanner) next() (byte, error) {
	for i := s.pos; i < len(s.buf); i++ {
		if c := s.buf[i]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			s.pos = i
			return c, nil
		}
	}
	s.pos = len(s.buf)
	return 0, s.truncated()
}

// enter reads the bracket at pos that opens an object or array.
func (s *scanner) enter() error {
	if s.open >= maxDepth {
		return s.problem(transport.FaultBeyond, s.pos, "it is nested deeper than the bound")
	}
	s.open++
	s.pos++
	return nil
}

// members calls read with the name of each member of the object at pos. read must read the
// member's value. first is as in more.
func (s *scanner) members(first bool, read func(name []byte) error) error {
	for ; ; first = false {
		more, err := s.more(first, '}')
		if err != nil || !more {
			return err
		}
		name, err := s.key()
		if err != nil {
			return err
		}
		if err := read(s.bytes(name)); err != nil {
			return err
		}
	}
}

// more reads to the next member or element of the innermost open object or array. first
// tells that none was read yet. At the closing bracket it reads that, and returns false.
func (s *scanner) more(first bool, closing byte) (bool, error) {
	c, err := s.next()
	switch {
	case err != nil:
		return false, err
	case c == closing:
		s.pos++
		s.open--
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, s.fail(s.pos, "no comma between two members or elements")
	}
	s.pos++
	_, err = s.next()
	return err == nil, err
}

// key reads the name of a member and the colon after it.
func (s *scanner) key() (page.Span, error) {
	if s.buf[s.pos] != '"' {
		return page.Span{}, s.fail(s.pos, "a member whose name is not a string")
	}
	name, err := s.text(s.pos + 1)
	if err != nil {
		return name, err
	}
	return name, s.colon()
}

// skipKey is key without decoding the name.
func (s *scanner) skipKey() error {
	if s.buf[s.pos] != '"' {
		return s.fail(s.pos, "a member whose name is not a string")
	}
	if err := s.skipText(); err != nil {
		return err
	}
	return s.colon()
}

// colon reads to the value of the member whose name was just read.
func (s *scanner) colon() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != ':' {
		return s.fail(s.pos, "no colon after the name of a member")
	}
	s.pos++
	_, err = s.next()
	return err
}

// scalar reads a string, number, true or false as text. ok is false for null, which
// counts as absent. An object or array is not text: what is blamed, and it is skipped.
func (s *scanner) scalar(what string) (text page.Span, ok bool, err error) {
	switch s.buf[s.pos] {
	case '"':
		text, err = s.text(s.pos + 1)
		return text, err == nil, err
	case '{', '[':
		s.blame(s.pos, what)
		return text, false, s.skip()
	case 'n':
		return text, false, s.word("null")
	}
	start := s.pos
	err = s.literal()
	return page.Span{Start: int32(start), End: int32(s.pos)}, err == nil, err
}

// skip reads a value of any kind.
func (s *scanner) skip() error {
	closing := byte('}')
	switch s.buf[s.pos] {
	case '"':
		return s.skipText()
	case '{':
	case '[':
		closing = ']'
	default:
		return s.literal()
	}
	if err := s.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.more(first, closing)
		if err != nil || !more {
			return err
		}
		if closing == '}' {
			if err := s.skipKey(); err != nil {
				return err
			}
		}
		if err := s.skip(); err != nil {
			return err
		}
	}
}

// literal reads a number, true, false or null.
func (s *scanner) literal() error {
	switch s.buf[s.pos] {
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

const noValue = "a value that is neither a string nor a number, object, array, true, false or null"

// word reads one of the three words that are values.
func (s *scanner) word(word string) error {
	rest := s.buf[s.pos:]
	switch n := min(len(rest), len(word)); {
	case string(rest[:n]) != word[:n]:
		return s.fail(s.pos, noValue)
	case n < len(word):
		return s.truncated()
	}
	s.pos += len(word)
	return nil
}

// number reads a number (RFC 8259, section 6).
func (s *scanner) number() error {
	start, i := s.pos, s.pos
	if s.buf[i] == '-' {
		i++
	}
	whole := i
	i = digitsEnd(s.buf, i)
	ok := i > whole && (i == whole+1 || s.buf[whole] != '0')
	if i < len(s.buf) && ok && s.buf[i] == '.' {
		from := i + 1
		i = digitsEnd(s.buf, from)
		ok = i > from
	}
	if i < len(s.buf) && ok && s.buf[i]|0x20 == 'e' {
		if i++; i < len(s.buf) && (s.buf[i] == '+' || s.buf[i] == '-') {
			i++
		}
		from := i
		i = digitsEnd(s.buf, from)
		ok = i > from
	}
	switch {
	case i >= len(s.buf):
		return s.truncated()
	case !ok && i == start:
		return s.fail(start, noValue)
	case !ok:
		return s.fail(start, "a malformed number")
	}
	s.pos = i
	return nil
}

// digitsEnd returns the offset of the first byte of b from i that is no digit.
func digitsEnd(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}
