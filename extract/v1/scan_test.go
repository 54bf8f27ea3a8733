package v1

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/transport"
)

// events reads a document and lists its events.
func events(doc string) (string, error) {
	text, _ := clean([]byte(doc), true)
	var s scanner
	s.init(text, 0)
	var b strings.Builder
	for {
		ev, err := s.next()
		if err != nil {
			return b.String(), err
		}
		switch ev {
		case eventEOF:
			return b.String(), nil
		case eventStart:
			b.WriteString("<" + string(s.Bytes(s.name)))
			for _, a := range s.attrs {
				b.WriteString(" " + string(s.Bytes(a.name)) + "=[" + string(s.Bytes(a.value)) + "]")
			}
			b.WriteString(">")
		case eventEnd:
			b.WriteString("</>")
		case eventText:
			b.WriteString("[" + string(s.Bytes(s.text)) + "]")
		}
	}
}

func TestScan(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{"<a/>", "<a></>"},
		{"<a></a>", "<a></>"},
		{" \n<a>\t</a >\r\n", "<a>[\t]</>"},
		{"<a b='1' c=\"2\" d = '3'/>", "<a b=[1] c=[2] d=[3]></>"},
		{"<a b=''/>", "<a b=[]></>"},
		{`<a b='"' c="'" d='>'/>`, `<a b=["] c=['] d=[>]></>`},
		{"<a b='&lt;&amp;&#65;x&gt;'/>", "<a b=[<&Ax>]></>"},
		{"<a b='1\r\n2\r3\n4\t5'/>", "<a b=[1\n2\n3\n4\t5]></>"},
		{"<a\n\tb='1'\n/>", "<a b=[1]></>"},
		{"<a>x<b>y</b>z</a>", "<a>[x]<b>[y]</>[z]</>"},
		{"<a>&lt;&gt;&amp;&quot;&apos;</a>", `<a>[<>&"']</>`},
		{"<a>&#65;&#x41;&#x00000041;&#0000065;&#x1F600;</a>", "<a>[AAAA\U0001f600]</>"},
		{"<a>x&amp;amp;y</a>", "<a>[x&amp;y]</>"},
		{"<a>&#13;&#10;\r\n\r</a>", "<a>[\r\n\n\n]</>"},
		{"<a><![CDATA[]]></a>", "<a>[]</>"},
		{"<a><![CDATA[<b>&amp;]]]></a>", "<a>[<b>&amp;]]</>"},
		{"<a>]] ]> > ]]&gt;</a>", "<a>[]] ]> > ]]>]</>"},
		{"<a>&#93;]></a>", "<a>[]]>]</>"},
		{"<a><!----><!-- x - > <b> & --></a>", "<a></>"},
		{"<!-- x --><?y z?><a/><!-- x --><?y?>", "<a></>"},
		{"<?xml version='1.0'?><a/>", "<a></>"},
		{"\n<?xml version='1.0'?><a/>", "<a></>"},
		{"<?xml-stylesheet href='x'?><a/>", "<a></>"},
		{"<!DOCTYPE a><a/>", "<a></>"},
		{"<!DOCTYPE a PUBLIC '[<' \">]\"><a/>", "<a></>"},
		{"<_:.-9/>", "<_:.-9></>"},
		{"<\u00e9l\u00e9ment\u00b7 \u4e2d='1'/>", "<\u00e9l\u00e9ment\u00b7 \u4e2d=[1]></>"},
		{"<a>\u0085\u2028\ufeff\ufffd\U0010ffff</a>", "<a>[\u0085\u2028\ufeff\ufffd\U0010ffff]</>"},
	} {
		if got, err := events(c.doc); err != nil || got != c.want {
			t.Errorf("%q: %q, %v; want %q", c.doc, got, err, c.want)
		}
		if !acceptedByXML(c.doc) {
			t.Errorf("%q: encoding/xml refuses it", c.doc)
		}
	}
}

const (
	truncated = "ends too early"
	reference = "a & that does not begin"
	mismatch  = "an end tag that does not match"
)

// manyAttributes are one more than the bound, whose check for duplicates must not take
// quadratic time.
func manyAttributes() string {
	var b strings.Builder
	for i := range maxAttributes + 1 {
		b.WriteString(" a" + strings.Repeat("x", i) + "='1'")
	}
	return b.String()
}

// refusedDocuments are not well-formed, with a part of the problem that is named.
var refusedDocuments = []struct{ doc, want string }{
	{"", truncated},
	{"<a><?", truncated},
	{"<a><?x ?", truncated},
	{"<!DOCTYPE", truncated},
	{"<!DOCTYPE a '>", truncated},
	{"<!-- x -->", truncated},
	{"</a>", "an end tag without a start tag"},
	{"<a></b>", mismatch},
	{"<a></ab>", mismatch},
	{"<ab></a>", mismatch},
	{"<a><b></a></b>", mismatch},
	{"<a></ a>", mismatch},
	{"<a></a b='1'>", mismatch},
	{"<a></>", mismatch},
	{"<a/></a>", "an end tag without a start tag"},
	{"<a/>x", "text after the root element"},
	{"<a/>&#32;", "text after the root element"},
	{"<a/><b/>", "a second root element"},
	{"x<a/>", "text before the root element"},
	{"< a/>", "a < that does not begin a tag"},
	{"<a>1 < 2</a>", "a < that does not begin a tag"},
	{"<1/>", "a < that does not begin a tag"},
	{"<-a/>", "a < that does not begin a tag"},
	{"<a$/>", "a bad name"},
	{"<a 1='2'/>", "a bad attribute name"},
	{"<a / >", "a / in the middle of a tag"},
	{"<a b/>", "an attribute without ="},
	{"<a b c='1'/>", "an attribute without ="},
	{"<a b=1/>", "an attribute without quotes"},
	{"<a b='<'/>", "a < inside an attribute"},
	{"<a b='&'/>", reference},
	{"<a b='&#60'/>", reference},
	{"<a b='1' b='2'/>", "a duplicate attribute"},
	{"<a b='1'c='2'/>", "without a space before an attribute"},
	{"<a" + manyAttributes() + "/>", "too many attributes"},
	{"<a>&</a>", reference},
	{"<a>& </a>", reference},
	{"<a>&;</a>", reference},
	{"<a>&amp</a>", reference},
	{"<a>&am&amp;</a>", reference},
	{"<a>&nbsp;</a>", reference},
	{"<a>&AMP;</a>", reference},
	{"<a>&#;</a>", reference},
	{"<a>&#x;</a>", reference},
	{"<a>&#X41;</a>", reference},
	{"<a>&#-65;</a>", reference},
	{"<a>&#6 5;</a>", reference},
	{"<a>&#4A;</a>", reference},
	{"<a>]]></a>", "a ]]> without a CDATA section"},
	{"<a>&amp;]]></a>", "a ]]> without a CDATA section"},
	{"<a>x]]]></a>", "a ]]> without a CDATA section"},
	{"<a><!-- -- --></a>", "a -- inside a comment"},
	{"<a><!-- ---></a>", "a -- inside a comment"},
	{"<a><!x></a>", "a <! that does not begin a comment"},
	{"<a><![cdata[]]></a>", "a <! that does not begin a comment"},
	{"<![CDATA[x]]><a/>", "a CDATA section outside"},
	{"<!DOCTYPE a []><a/>", "a DOCTYPE with an internal subset"},
	{"<!DOCTYPE a><!DOCTYPE a><a/>", "a second DOCTYPE, or one that is not"},
	{"<a><!DOCTYPE a></a>", "a second DOCTYPE, or one that is not"},
	{"<a><? x?></a>", "a processing instruction without a name"},
	{"<a/><?xml version='1.0'?>", "an XML declaration that is not at the beginning"},
	{"<!-- x --><?XML version='1.0'?><a/>", "an XML declaration that is not at the beginning"},
	{"<a\v/>", "a bad name"},
	{"<a \xff='1'/>", "a bad attribute name"},
}

func TestScanRefuses(t *testing.T) {
	for _, c := range refusedDocuments {
		got, err := events(c.doc)
		var answer *transport.AnswerError
		if !errors.As(err, &answer) || !strings.Contains(answer.Problem, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.doc, got, err, c.want)
			continue
		}
		if answer.Offset < 0 || answer.Offset > len(c.doc)+2 {
			t.Errorf("%q: offset %d", c.doc, answer.Offset)
		}
	}
}

func acceptedByXML(doc string) bool {
	d := xml.NewDecoder(strings.NewReader(doc))
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// TestTextEnd tries every special character at every place in a word.
func TestTextEnd(t *testing.T) {
	for length := range 40 {
		for at := range length {
			for c := range 256 {
				b := []byte(strings.Repeat("\xbd", length)) // '<' | 0x81: a near miss
				b[at] = byte(c)
				want := length
				if c == '<' || c == '>' || c == '&' {
					want = at
				}
				if got := textEnd(b, 0); got != want {
					t.Fatalf("%q: %d, want %d", b, got, want)
				}
				if got := textEnd(b, at+1); got != length {
					t.Fatalf("%q from %d: %d", b, at+1, got)
				}
			}
		}
	}
}
