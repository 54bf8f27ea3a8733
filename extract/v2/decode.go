package v2

import (
	"bytes"
	"cmp"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// maxValues bounds the cells and values of a page, because two bytes may spell a value.
const maxValues = 16_000_000

// decoder decodes answers of Get Form Results. It is used again for later answers.
type decoder struct {
	page.Builder
	scan    scanner
	layout  page.Layout
	known   []known        // what is known of each slot of the layout
	zone    *time.Location // the time zone in which dates are written to the page
	entries []entry        // the values of the item that is being read
	row     int32          // number of the result that is being read, from 1
	early   int64          // the second before the window, in Unix time: see page.Page.Early
	begun   []int          // results whose date_start lies in the second early
	spare   int            // cells and values that maxValues still allows
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder returns a decoder with an empty page. Dates become wall-clock time of zone.
func newDecoder(zone *time.Location) *decoder {
	d := decoders.Get().(*decoder)
	d.Begin()
	d.zone = zone
	d.early, d.spare = earliest, maxValues
	return d
}

// release keeps the decoder for reuse. It releases the page too if Finish was not called.
func (d *decoder) release() {
	d.End()
	decoders.Put(d)
}

// decode decodes the answer in Text.
func (d *decoder) decode() error {
	d.Reset()
	first, err := contentOf(d.Text)
	if err != nil {
		return err
	}
	d.Text = respell(d.Text)
	d.Clean(false)
	d.scan = scanner{Scanner: extract.Scanner{Buf: d.Text, Pos: first}}
	d.begun = d.begun[:0]
	d.Page.Tells = true
	err = d.readAnswer()
	d.Page.Replaced += d.scan.Replaced
	d.scan.Buf = nil
	return cmp.Or(err, d.scan.Wrong())
}

// contentOf returns the offset at which the JSON text of an answer begins. A byte order
// mark before it is ignored (RFC 8259, section 8.1).
func contentOf(text []byte) (int, error) {
	content, err := extract.Content(text, "JSON", "{[")
	switch {
	case err != nil:
		return 0, err
	case content[0] == '<' && bytes.Contains(content, []byte("<fs_response")):
		return 0, &transport.AnswerError{Offset: -1, Problem: "not JSON: it is XML", Fault: transport.FaultGarbled, API: "v1"}
	case content[0] == '<':
		return 0, &transport.AnswerError{Offset: -1, Problem: "not JSON: it is HTML or XML, such as a login page or a proxy's error page", Fault: transport.FaultGarbled}
	case content[0] != '{' && content[0] != '[':
		return 0, &transport.AnswerError{Offset: -1, Problem: "not JSON: it begins with neither { nor [", Fault: transport.FaultGarbled}
	}
	return len(text) - len(content), nil
}

const isArray = "not from the service: it is an array"

// readAnswer reads the whole document. If the answer reports an error, readAnswer
// returns that error.
func (d *decoder) readAnswer() error {
	s := &d.scan
	if s.Buf[s.Pos] == '[' {
		return cmp.Or(s.skip(), s.end(), s.Problem(transport.FaultForeign, -1, isArray))
	}
	if err := s.enter(); err != nil {
		return err
	}
	found := false        // an array of results was read
	var failure page.Span // the value of the member error, empty for none
	err := s.members(true, func(name []byte) error {
		start := s.Pos
		switch string(name) {
		case "results":
			s.Ours = true
			switch {
			case s.Buf[start] != '[':
				return s.skip()
			case found:
				s.NoteWrong(start, `a second "results"`)
				return s.skip()
			}
			found = true
			return d.readResults()
		case "error":
			s.Ours = true
			err := s.skip()
			if s.Buf[start] != 'n' {
				failure = page.Span{Start: int32(start), End: int32(s.Pos)}
			}
			return err
		case "forms", "form", "items": // answers of other requests
			s.Ours = true
		}
		return s.skip()
	})
	if err = cmp.Or(err, s.end()); err != nil {
		return err
	}
	switch {
	case failure.End > 0:
		return failureOf(s.Bytes(failure))
	case found:
		return nil
	case s.Ours:
		return s.Problem(transport.FaultWrong, -1, `it has no list "results"`)
	}
	return s.Problem(transport.FaultForeign, -1, `not from the service: it has neither "results" nor "error"`)
}

// end reads blanks to the end of the answer.
func (s *scanner) end() error {
	rest := bytes.TrimLeft(s.Buf[s.Pos:], page.Blanks)
	s.Pos = len(s.Buf) - len(rest)
	if len(rest) == 0 {
		return nil
	}
	return s.Fail(s.Pos, "text after the answer")
}
