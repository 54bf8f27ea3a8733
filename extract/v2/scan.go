package v2

import (
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
)

// scanner reads JSON (RFC 8259). Escapes are decoded in place, so the text must have been through
// respell.
type scanner struct {
	extract.Scanner
	open int // objects and arrays that are open
}

// next passes over blanks and returns the byte after them, without reading past that byte.
func (s *scanner) next() (byte, error) {
	for i := s.Pos; i < len(s.Buf); i++ {
		if c := s.Buf[i]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			s.Pos = i
			return c, nil
		}
	}
	s.Pos = len(s.Buf)
	return 0, s.Truncated()
}

// enter reads the bracket at s.Pos that opens an object or array.
func (s *scanner) enter() error {
	if err := s.Deeper(s.open, s.Pos); err != nil {
		return err
	}
	s.open++
	s.Pos++
	return nil
}

// members calls read with the name of each member of the innermost open object. read must read the
// member's value. first tells that no member was read yet, as in more.
func (s *scanner) members(first bool, read func(name []byte) error) error {
	for ; ; first = false {
		more, err := s.more(first, '}')
		if err != nil || !more {
			return err
		}
		var name page.Span
		if err := s.key(&name); err != nil {
			return err
		}
		if err := read(s.Bytes(name)); err != nil {
			return err
		}
	}
}

// more reads to the next member or element of the innermost open object or array. first tells that
// none was read yet. At the closing bracket more reads the bracket and returns false.
func (s *scanner) more(first bool, closing byte) (bool, error) {
	c, err := s.next()
	switch {
	case err != nil:
		return false, err
	case c == closing:
		s.Pos++
		s.open--
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, s.Fail(s.Pos, "a comma between two members or elements is missing")
	}
	s.Pos++
	_, err = s.next()
	return err == nil, err
}

// key reads the name of a member and the colon after it. The decoded name goes into name; if that
// is nil, the name is skipped.
func (s *scanner) key(name *page.Span) (err error) {
	if s.Buf[s.Pos] != '"' {
		return s.Fail(s.Pos, "the name of a member is not a string")
	}
	if name != nil {
		*name, err = s.text(s.Pos + 1)
	} else {
		err = s.skipText()
	}
	if err != nil {
		return err
	}
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != ':' {
		return s.Fail(s.Pos, "the colon after the name of a member is missing")
	}
	s.Pos++
	_, err = s.next()
	return err
}

// scalar reads a string, number, true or false as text. ok is false for null, which counts as
// absent. An object or array is skipped, and blamed with the message what.
func (s *scanner) scalar(what string) (text page.Span, ok bool, err error) {
	switch s.Buf[s.Pos] {
	case '"':
		text, err = s.text(s.Pos + 1)
		return text, err == nil, err
	case '{', '[':
		s.NoteWrong(s.Pos, what)
		return text, false, s.skip()
	case 'n':
		return text, false, s.word("null")
	}
	start := s.Pos
	err = s.literal()
	return page.Span{Start: int32(start), End: int32(s.Pos)}, err == nil, err
}

// skip reads a value of any type without using it.
func (s *scanner) skip() error {
	closing := byte('}')
	switch s.Buf[s.Pos] {
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
			if err := s.key(nil); err != nil {
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
	switch s.Buf[s.Pos] {
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

const noValue = "a value that JSON does not know"

// word reads one of the literals true, false and null.
func (s *scanner) word(word string) error {
	rest := s.Buf[s.Pos:]
	switch n := min(len(rest), len(word)); {
	case string(rest[:n]) != word[:n]:
		return s.Fail(s.Pos, noValue)
	case n < len(word):
		return s.Truncated()
	}
	s.Pos += len(word)
	return nil
}

// number reads a number (RFC 8259, section 6).
func (s *scanner) number() error {
	start, i := s.Pos, s.Pos
	if s.Buf[i] == '-' {
		i++
	}
	whole := i
	i = digitsEnd(s.Buf, i)
	ok := i > whole && (i == whole+1 || s.Buf[whole] != '0')
	if i < len(s.Buf) && ok && s.Buf[i] == '.' {
		from := i + 1
		i = digitsEnd(s.Buf, from)
		ok = i > from
	}
	if i < len(s.Buf) && ok && s.Buf[i]|0x20 == 'e' {
		if i++; i < len(s.Buf) && (s.Buf[i] == '+' || s.Buf[i] == '-') {
			i++
		}
		from := i
		i = digitsEnd(s.Buf, from)
		ok = i > from
	}
	switch {
	case i >= len(s.Buf):
		return s.Truncated()
	case !ok && i == start:
		return s.Fail(start, noValue)
	case !ok:
		return s.Fail(start, "a malformed number")
	}
	s.Pos = i
	return nil
}

// digitsEnd returns the offset of the first byte of b from i that is no digit.
func digitsEnd(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}
