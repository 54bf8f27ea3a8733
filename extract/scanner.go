package extract

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// Scanner is what the scanners of XML and of JSON have in common. They read an answer without
// copying or allocating: names and texts are spans of Buf. Escapes in a text are decoded in
// place, because the decoded text is never longer.
type Scanner struct {
	Buf      []byte // the answer, see page.Builder.Clean
	Pos      int    // offset in Buf up to which the answer was read
	Replaced int    // escaped characters that a page cannot hold, see Put
	Rewrote  bool   // set where Put decoded a character in place; the user of the scanner clears it
	Ours     bool   // the answer has an element or member that only the service's answers have

	wrong error
}

// Bytes returns the text of a span.
func (s *Scanner) Bytes(v page.Span) []byte { return s.Buf[v.Start:v.End] }

// Put writes a decoded character at w, and returns the offset after it. A character that a
// page cannot hold becomes U+FFFD and is counted, so that it does not fail a run.
func (s *Scanner) Put(w int, r rune) int {
	if !page.Allowed(r) {
		s.Replaced++
		r = utf8.RuneError
	}
	s.Rewrote = true
	return w + utf8.EncodeRune(s.Buf[w:], r)
}

// Problem returns the *AnswerError for what is wrong at offset; -1 if no place can be named.
func (s *Scanner) Problem(of transport.Fault, offset int, problem string) error {
	return &transport.AnswerError{Offset: offset, Problem: problem, Fault: of, Ours: s.Ours}
}

// Fail returns the error for an answer that is not well-formed at offset.
func (s *Scanner) Fail(offset int, problem string) error {
	return s.Problem(transport.FaultGarbled, offset, problem)
}

// Truncated returns the error for an answer that ends too early.
func (s *Scanner) Truncated() error {
	return s.Problem(transport.FaultCut, len(s.Buf), "it ends too early")
}

// TooMany returns the error for an answer that holds more of something than the bound most.
func (s *Scanner) TooMany(offset int, what string, most int) error {
	return s.Problem(transport.FaultBeyond, offset, fmt.Sprintf("it has more than %d %s, the most that formetl reads of one answer", most, what))
}

// Deeper returns an error if an answer with open elements or values may not nest deeper at offset.
func (s *Scanner) Deeper(open, offset int) error {
	if open < page.MaxDepth {
		return nil
	}
	return s.Problem(transport.FaultBeyond, offset, "it is nested too deeply")
}

// NoteWrong records that a well-formed answer has wrong content. Reading goes on, because an
// answer that turns out to be damaged further on is worth another attempt, and wrong content is
// not.
func (s *Scanner) NoteWrong(offset int, problem string) {
	if s.wrong == nil {
		s.wrong = s.Problem(transport.FaultWrong, offset, problem)
	}
}

// Wrong returns the first error that NoteWrong recorded; nil if there is none.
func (s *Scanner) Wrong() error { return s.wrong }

// ResultID reads the id of a result from text; a text that is not an id is blamed at offset.
func (s *Scanner) ResultID(text []byte, offset int) int64 {
	id, err := strconv.ParseUint(string(bytes.Trim(text, page.Blanks)), 10, 63)
	if err != nil {
		s.NoteWrong(offset, "a result's id is not a number from 0 to 9223372036854775807")
	}
	return int64(id) //nolint:gosec // of 63 bits
}

// Content returns an answer without the byte order mark and the blanks before it. format names
// the format that the answer should have, and begins holds the characters that it may begin with.
func Content(text []byte, format, begins string) ([]byte, error) {
	opens := func(c byte) bool { return strings.IndexByte(begins, c) >= 0 }
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) ||
		len(text) > 1 && (text[0] == 0 && opens(text[1]) || text[1] == 0 && opens(text[0])) {
		return nil, &transport.AnswerError{Offset: 0, Problem: "it is in UTF-16, which formetl does not read", Fault: transport.FaultBeyond}
	}
	content := bytes.TrimLeft(bytes.TrimPrefix(text, []byte(page.Mark)), page.Blanks)
	if len(content) == 0 {
		return nil, &transport.AnswerError{Offset: -1, Problem: "not " + format + ": it is empty", Fault: transport.FaultEmpty}
	}
	return content, nil
}
