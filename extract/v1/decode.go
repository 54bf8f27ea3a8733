package v1

import (
	"bytes"
	"cmp"
	"fmt"
	"sync"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// decoder decodes answers: those of Get Results into a page, those of other transactions into a
// tree. A decoder is used again for later answers.
type decoder struct {
	page.Builder
	scan   scanner
	layout page.Layout
	texts  []page.Span // the texts of the cell that is being read
	media  mediaType   // of the Content-Type header seen last
	html   bool        // the answer is labelled as an HTML page, or begins as one
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder returns a decoder with an empty page.
func newDecoder() *decoder {
	d := decoders.Get().(*decoder)
	d.Begin()
	return d
}

// release keeps the decoder for reuse. It releases the page too if Finish was not called.
func (d *decoder) release() {
	d.End()
	decoders.Put(d)
}

// decode decodes the answer in Text. It calls success to read the content of an
// answer that reports no error; otherwise it returns the reported error.
func (d *decoder) decode(contentType string, success func() error) error {
	d.Reset()
	if d.media.header != contentType {
		d.media = parseMediaType(contentType)
	}
	if err := d.prepare(); err != nil {
		return err
	}
	err := d.readEnvelope(success)
	d.Page.Replaced += d.scan.Replaced
	d.scan.Buf = nil
	return err
}

func notXML(why string) error {
	return &transport.AnswerError{Offset: -1, Problem: "not XML: " + why, Fault: transport.FaultGarbled}
}

func notHTML() error { return notXML("it is an HTML page, such as a login page") }

// prepare converts Text to clean UTF-8 and prepares the scanner to read it.
func (d *decoder) prepare() error {
	content, err := extract.Content(d.Text, "XML", "<")
	if err != nil {
		return err
	}
	first := 0
	if bytes.HasPrefix(d.Text, []byte(page.Mark)) {
		first = len(page.Mark)
	}
	d.html = d.media.html || isHTML(content)
	if content[0] != '<' {
		if d.html {
			return notHTML()
		}
		if content[0] == '{' {
			return &transport.AnswerError{Offset: -1, Problem: "not XML: it is JSON", Fault: transport.FaultGarbled, API: "v2"}
		}
		return notXML("it does not begin with <")
	}
	declared := declaredCharset(content)
	c := charsetUTF8
	if first == 0 {
		c = pick(d.media.charset, charsetOf(string(declared)), d.Text)
	}
	switch c {
	case charsetUnknown:
		problem := fmt.Sprintf("its charset %.40q is not supported, only UTF-8, US-ASCII and ISO-8859-1", cmp.Or(d.media.label, string(declared)))
		return &transport.AnswerError{Offset: -1, Problem: problem, Fault: transport.FaultBeyond}
	case charsetLatin1:
		d.Text, d.Spare = latin1ToUTF8(d.Spare[:0], d.Text), d.Text
	}
	d.Clean(true)
	d.scan.init(d.Text, first)
	return nil
}

// isHTML tells whether text begins as an HTML page does.
func isHTML(text []byte) bool {
	begins := func(with string) bool {
		return len(text) >= len(with) && bytes.EqualFold(text[:len(with)], []byte(with))
	}
	return begins("<!doctype html") || begins("<html")
}
