package v2

import (
	"bytes"
	"cmp"
	"sync"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// Bounds limit what an answer may cost. A zero value means the default.
type Bounds struct {
	Bytes   int64 // size of the body, decompressed; default 256 MiB, at most 512 MiB
	Depth   int   // open objects and arrays; default 64
	Results int   // results in a page; default 10,000
	Values  int   // cells and values of a page; default 16 million
}

const (
	defaultBytes   = 256 << 20
	mostBytes      = 512 << 20 // offsets are int32, and a replaced byte becomes three bytes
	defaultDepth   = 64
	mostDepth      = 10_000 // skipping what is nested takes a stack
	defaultResults = 10_000
	defaultValues  = 16_000_000
)

func (b Bounds) orDefaults() Bounds {
	return Bounds{
		Bytes:   min(cmp.Or(max(0, b.Bytes), defaultBytes), mostBytes),
		Depth:   min(cmp.Or(max(0, b.Depth), defaultDepth), mostDepth),
		Results: cmp.Or(max(0, b.Results), defaultResults),
		Values:  cmp.Or(max(0, b.Values), defaultValues),
	}
}

// decoder decodes answers. It is reused for the next answer.
type decoder struct {
	page.Builder
	bounds  Bounds
	scan    scanner
	layout  layout
	clock   clock
	entries []entry // of the item that is being read
	row     int32   // number of the result that is being read, from 1
	early   int64   // a second of Unix time: results that were finished in it are early
	begun   []int   // results that were begun in this second
	left    int     // cells and values that the bound still allows
	name    []byte  // of a meta whose name was put together
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder returns a decoder with an empty page. Dates become wall-clock time of zone.
func newDecoder(zone *time.Location) *decoder {
	d := decoders.Get().(*decoder)
	d.Begin()
	d.clock.use(zone)
	d.early = earliest
	return d
}

// release keeps the decoder for reuse, and its page if Finish was not called.
func (d *decoder) release() {
	d.End()
	decoders.Put(d)
}

// DecodePage decodes a copy of one answer of Get Form Results into a page from the pool.
// Dates become wall-clock time of zone (nil is UTC). The error is an
// *extract.ServiceError if the service answered with an error, else a
// *transport.AnswerError.
func DecodePage(body []byte, zone *time.Location, bounds Bounds) (*page.Page, error) {
	d := newDecoder(cmp.Or(zone, time.UTC))
	defer d.release()
	d.Text = append(d.Text, body...)
	if err := d.decode(bounds); err != nil {
		return nil, err
	}
	return d.Finish(), nil
}

// decode decodes the answer in Text.
func (d *decoder) decode(bounds Bounds) error {
	d.bounds = bounds.orDefaults()
	d.Reset()
	if int64(len(d.Text)) > d.bounds.Bytes {
		return transport.TooLarge(d.bounds.Bytes)
	}
	first, err := contentOf(d.Text)
	if err != nil {
		return err
	}
	if !isClean(d.Text) {
		text, replaced := clean(d.Spare[:0], d.Text)
		d.Text, d.Spare, d.Page.Replaced = text, d.Text, replaced
	}
	d.scan.init(d.Text, first, d.bounds.Depth)
	d.left, d.begun = d.bounds.Values, d.begun[:0]
	err = d.readAnswer()
	d.Page.Replaced += d.scan.replaced
	d.scan.buf = nil
	return cmp.Or(err, d.scan.wrong)
}

const blanks = " \n\r\t"

// contentOf returns the offset at which the JSON text of an answer begins. A byte order
// mark before it is ignored (RFC 8259, section 8.1).
func contentOf(text []byte) (int, error) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) ||
		bytes.HasPrefix(text, []byte("{\x00")) || bytes.HasPrefix(text, []byte("\x00{")) {
		return 0, &transport.AnswerError{Offset: 0, Problem: "it is encoded as UTF-16; JSON is sent as UTF-8", Fault: transport.FaultBeyond}
	}
	content := bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), blanks)
	switch {
	case len(content) == 0:
		return 0, &transport.AnswerError{Offset: -1, Problem: "not JSON: it is empty", Fault: transport.FaultEmpty}
	case content[0] == '<':
		return 0, &transport.AnswerError{Offset: -1, Problem: "not JSON: it is a page of HTML or XML, as a proxy, a login page or API v1 sends it", Fault: transport.FaultGarbled}
	case content[0] != '{' && content[0] != '[':
		return 0, &transport.AnswerError{Offset: -1, Problem: "not JSON: it begins with neither { nor [", Fault: transport.FaultGarbled}
	}
	return len(text) - len(content), nil
}

// readAnswer reads the whole document. If the answer reports an error, readAnswer
// returns that.
func (d *decoder) readAnswer() error {
	s := &d.scan
	if s.buf[s.pos] == '[' {
		if err := s.skip(); err != nil {
			return err
		}
		return cmp.Or(s.end(), s.problem(transport.FaultForeign, -1, "not an answer of the service: it is an array"))
	}
	if err := s.enter(); err != nil {
		return err
	}
	var a answer
	for first := true; ; first = false {
		more, err := s.more(first, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := d.readAnswerMember(&a); err != nil {
			return err
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	switch {
	case a.failure.End > 0:
		return failureOf(s.bytes(a.failure))
	case a.found:
		return nil
	case s.ours:
		return s.problem(transport.FaultWrong, -1, "another form's shape: it has no member results that is an array")
	}
	return s.problem(transport.FaultForeign, -1, "not an answer of the service: it has neither a member results that is an array nor one named error")
}

// answer is what the members of an answer have told so far.
type answer struct {
	found   bool      // the array of results
	failure page.Span // the value of the member error, empty for none
}

// readAnswerMember reads one member of the answer.
func (d *decoder) readAnswerMember(a *answer) error {
	s := &d.scan
	name, err := s.key()
	if err != nil {
		return err
	}
	start := s.pos
	switch string(s.bytes(name)) {
	case "results":
		s.ours = true
		switch {
		case s.buf[start] != '[':
			return s.skip()
		case a.found:
			s.blame(start, "a second member results")
			return s.skip()
		}
		a.found = true
		return d.readResults()
	case "error":
		s.ours = true
		if err = s.skip(); s.buf[start] != 'n' {
			a.failure = page.Span{Start: int32(start), End: int32(s.pos)}
		}
		return err
	case "forms", "form", "items": // another request's
		s.ours = true
	}
	return s.skip()
}

// end reads blanks to the end of the answer.
func (s *scanner) end() error {
	rest := bytes.TrimLeft(s.buf[s.pos:], blanks)
	s.pos = len(s.buf) - len(rest)
	if len(rest) > 0 {
		return s.fail(s.pos, "text after the answer")
	}
	return nil
}
