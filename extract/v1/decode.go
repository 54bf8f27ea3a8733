package v1

import (
	"bytes"
	"cmp"
	"sync"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// Bounds limit what an answer may cost. A zero value means the default.
type Bounds struct {
	Bytes   int64 // size of the body, decompressed; default 64 MiB, at most 512 MiB
	Depth   int   // open elements; default 64
	Results int   // results in a page; default 10,000
}

const (
	defaultBytes   = 64 << 20
	mostBytes      = 512 << 20 // offsets are int32, and a replaced byte takes three
	defaultDepth   = 64
	defaultResults = 10_000
)

func (b Bounds) orDefaults() Bounds {
	return Bounds{
		Bytes:   min(cmp.Or(max(0, b.Bytes), defaultBytes), mostBytes),
		Depth:   cmp.Or(max(0, b.Depth), defaultDepth),
		Results: cmp.Or(max(0, b.Results), defaultResults),
	}
}

// decoder decodes answers of Get Results into pages. It is kept for reuse.
type decoder struct {
	page.Builder
	scan   scanner
	layout layout
	spare  []byte    // memory for Text where the answer is not clean UTF-8
	media  mediaType // of the Content-Type seen last
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder returns a decoder with an empty page.
func newDecoder() *decoder {
	d := decoders.Get().(*decoder)
	d.Begin()
	if cap(d.spare) > cap(d.Text) { // the last answer was rewritten
		d.Text, d.spare = d.spare[:0], d.Text
	}
	return d
}

// release keeps the decoder for reuse, and its page where it was not finished.
func (d *decoder) release() {
	if d.Page != nil {
		d.Finish().Release()
	}
	if cap(d.spare) > page.MaxPooled {
		d.spare = nil
	}
	decoders.Put(d)
}

// DecodePage decodes one answer of Get Results into a page of the pool. It
// copies body. contentType is the answer's Content-Type header, "" if it had
// none. The error is an *extract.ServiceError for an error envelope, else a
// *transport.AnswerError; with an error there is no page.
func DecodePage(body []byte, contentType string, bounds Bounds) (*page.Page, error) {
	d := newDecoder()
	defer d.release()
	d.Text = append(d.Text, body...)
	if err := d.decode(contentType, bounds); err != nil {
		return nil, err
	}
	return d.Finish(), nil
}

// decode decodes Text into the page.
func (d *decoder) decode(contentType string, bounds Bounds) error {
	bounds = bounds.orDefaults()
	d.Reset()
	if int64(len(d.Text)) > bounds.Bytes {
		return transport.TooLarge(bounds.Bytes)
	}
	if d.media.header != contentType {
		d.media = parseMediaType(contentType)
	}
	doc := document{text: d.Text, spare: d.spare[:0]}
	err := doc.prepare(d.media)
	d.Text, d.spare = doc.text, doc.spare
	if err != nil {
		return err
	}
	d.scan.init(d.Text, doc.first, bounds.Depth)
	err = d.scan.settle(readEnvelope(&d.scan, doc.html, func() error { return d.readSuccess(bounds) }))
	d.Page.Replaced = doc.replaced + d.scan.replaced
	d.scan.buf = nil
	return err
}

func notXML(why string) error {
	return &transport.AnswerError{Offset: -1, Problem: "not XML: " + why, Fault: transport.FaultGarbled}
}

func notHTML() error { return notXML("it is an HTML page, as a proxy or a login page sends it") }

// document is an answer on its way to clean UTF-8.
type document struct {
	text     []byte
	spare    []byte // memory for a rewritten text; empty
	first    int    // where the XML begins in text
	replaced int
	html     bool
}

// prepare turns text into what the scanner expects.
func (d *document) prepare(media mediaType) error {
	if bytes.HasPrefix(d.text, []byte("\xff\xfe")) || bytes.HasPrefix(d.text, []byte("\xfe\xff")) ||
		bytes.HasPrefix(d.text, []byte("<\x00")) || bytes.HasPrefix(d.text, []byte("\x00<")) {
		return &transport.AnswerError{Offset: 0, Problem: "it is encoded as UTF-16; UTF-8 and ISO-8859-1 are read", Fault: transport.FaultBeyond}
	}
	mark := bytes.HasPrefix(d.text, utf8Mark)
	if mark {
		d.first = len(utf8Mark)
	}
	content := bytes.TrimLeft(d.text[d.first:], blanks)
	if len(content) == 0 {
		return &transport.AnswerError{Offset: -1, Problem: "not XML: it is empty", Fault: transport.FaultEmpty}
	}
	d.html = media.html || isHTML(content)
	if content[0] != '<' {
		if d.html {
			return notHTML()
		}
		return notXML("it does not begin with <")
	}
	declared, err := declaredCharset(content)
	if err != nil {
		return err
	}
	c := charsetUTF8
	if !mark {
		c = pick(media.charset, declared, d.text)
	}
	switch c {
	case charsetUnknown:
		return &transport.AnswerError{Offset: -1, Problem: "its charset is not one that is read: UTF-8, US-ASCII, ISO-8859-1, ISO-8859-15, windows-1252", Fault: transport.FaultBeyond}
	case charsetUTF8:
	default:
		d.rewrite(c.toUTF8(d.spare, d.text))
	}
	if n := cleanEnd(d.text); n < len(d.text) {
		text, replaced := cleanText(append(d.spare, d.text[:n]...), d.text[n:])
		d.rewrite(text)
		d.replaced = replaced
	}
	return nil
}

// rewrite makes a text written to spare the document's.
func (d *document) rewrite(text []byte) { d.text, d.spare = text, d.text[:0] }

// isHTML tells whether text begins as HTML pages do.
func isHTML(text []byte) bool {
	begins := func(with string) bool {
		return len(text) >= len(with) && bytes.EqualFold(text[:len(with)], []byte(with))
	}
	return begins("<!doctype html") || begins("<html")
}
