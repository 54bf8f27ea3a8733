package extract

import (
	"bytes"
	"errors"
	"io"
	"strconv"
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
	if b.Bytes <= 0 {
		b.Bytes = defaultBytes
	}
	b.Bytes = min(b.Bytes, mostBytes)
	if b.Depth <= 0 {
		b.Depth = defaultDepth
	}
	if b.Results <= 0 {
		b.Results = defaultResults
	}
	return b
}

func tooLarge(b Bounds) error {
	return &AnswerError{Offset: -1, Problem: "it is larger than the bound of " + strconv.FormatInt(b.Bytes, 10) + " bytes", fault: faultBeyond}
}

// CodeNone is the code of an error envelope that holds no readable code.
const CodeNone = -1

// DecodePage decodes one answer of Get Results into a page of the pool. It
// copies body. The error is a *ServiceError for an error envelope, else an
// *AnswerError; with an error there is no page.
func DecodePage(body []byte, contentType string, bounds Bounds) (*Page, error) {
	p := NewPage()
	p.text = append(p.text[:0], body...)
	if err := p.Decode(contentType, bounds); err != nil {
		p.Release()
		return nil, err
	}
	return p, nil
}

// ReadBody reads r to its end into the page's own memory, to be decoded by
// Decode. An error of r is returned as it is; a body beyond the bound is an
// *AnswerError.
func (p *Page) ReadBody(r io.Reader, bounds Bounds) error {
	return p.readBody(r, 0, bounds)
}

// readBody is ReadBody of a body that is said to have size bytes; 0 or less
// where nobody says.
func (p *Page) readBody(r io.Reader, size int64, bounds Bounds) error {
	p.reset()
	if cap(p.spare) > cap(p.text) { // the last answer was rewritten
		p.text, p.spare = p.spare[:0], p.text
	}
	var err error
	if p.text, err = readOver(p.text, r, size, bounds.orDefaults()); err != nil {
		p.reset()
	}
	return err
}

// Decode decodes the body that ReadBody read. contentType is the answer's
// Content-Type header, "" if it had none. The error is a *ServiceError for an
// error envelope, else an *AnswerError; with an error the page is empty.
func (p *Page) Decode(contentType string, bounds Bounds) error {
	bounds = bounds.orDefaults()
	err := p.decode(contentType, bounds)
	if err != nil {
		if a, ok := errors.AsType[*AnswerError](err); ok {
			a.sum = sumOf(p.text) // as far as it was decoded: alike for like answers
		}
		p.reset()
	}
	return err
}

func (p *Page) decode(contentType string, bounds Bounds) error {
	if int64(len(p.text)) > bounds.Bytes {
		return tooLarge(bounds)
	}
	if p.media.header != contentType {
		p.media = parseMediaType(contentType)
	}
	var d document
	d.text, d.spare = p.text, p.spare[:0]
	err := d.prepare(p.media)
	p.text, p.spare = d.text, d.spare
	if err != nil {
		return err
	}
	p.Replaced = d.replaced
	p.scan.init(p.text, d.first, bounds.Depth)
	err = p.scan.settle(p.readAnswer(d.html, bounds))
	p.Replaced += p.scan.replaced
	p.scan.buf = nil
	return err
}

func notXML(why string) error {
	return &AnswerError{Offset: -1, Problem: "not XML: " + why, fault: faultGarbled}
}

func notHTML() error { return notXML("it is an HTML page, as a proxy or a login page sends it") }

func isEmpty() error {
	return &AnswerError{Offset: -1, Problem: "not XML: it is empty", fault: faultEmpty}
}

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
		return &AnswerError{Offset: 0, Problem: "it is encoded as UTF-16; UTF-8 and ISO-8859-1 are read", fault: faultBeyond}
	}
	mark := bytes.HasPrefix(d.text, utf8Mark)
	if mark {
		d.first = len(utf8Mark)
	}
	content := bytes.TrimLeft(d.text[d.first:], blanks)
	if len(content) == 0 {
		return isEmpty()
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
		return &AnswerError{Offset: -1, Problem: "its charset is not one that is read: UTF-8, US-ASCII, ISO-8859-1, ISO-8859-15, windows-1252", fault: faultBeyond}
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
	for _, begin := range [...]string{"<!doctype html", "<html"} {
		if len(text) >= len(begin) && bytes.EqualFold(text[:len(begin)], []byte(begin)) {
			return true
		}
	}
	return false
}
