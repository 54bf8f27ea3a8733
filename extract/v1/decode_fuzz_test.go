package v1

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// fuzzSeeds are answers that between them reach every branch of the grammar.
var fuzzSeeds = []string{
	`<fs_response status="success"><results/></fs_response>`,
	`<?xml version="1.0" encoding="UTF-8"?>
<fs_response status="success" timestamp="2026-01-01 00:00:00">
  <headings><heading for="1">Name</heading><heading id='result_status'><![CDATA[St
atus ]]></heading><metas><meta id="m">M</meta></metas><items><heading for="353-0-0"/></items></headings>
  <results>
    <result id="7"><metas><meta id="result_status">Complete</meta><meta id="m"/></metas>
      <items><item id="1" index="1" type="text"><value>a &amp;amp; b</value></item>
      <item id="353-0-0" index="2" type="matrix"><value>x</value><value/><value index="3">]]&gt;</value></item></items></result>
    <result id=" 8 "><metas><meta id="result_status">Incomplete</meta><meta id="m">&#13;&#10;</meta></metas>
      <items><item id="353-0-0" index="2" type="matrix"/><item id="1">direct<!-- c --> text</item><item id="9"> </item></items></result>
  </results>
</fs_response>`,
	`<fs_result status="error"><error code="3">System too busy</error></fs_result>`,
	`<fs_response status="error"><error>no code</error></fs_response>`,
	`<fs_response status="success"><count>5</count></fs_response>`,
	"\xef\xbb\xbf<fs_response status='success'><results><result id='1'><items><item id='a'><value>\xf0\x9f\x98\x80\r\n\xe2\x80\xa8\xef\xbb\xbf\xc2\x85</value></item></items></result></results></fs_response>\n<!-- end -->",
	"<?xml version='1.0' encoding='ISO-8859-1'?><fs_response status='success'><results><result id='1'><metas><meta id='a'>\xe9\x80</meta></metas></result></results></fs_response>",
	"<fs_response status='success'><results><result id='1'><metas><meta id='a'>\x0b&#11;&#0;&#xD800;&#x110000;\xff</meta></metas></result></results></fs_response>",
	`<!DOCTYPE fs_response SYSTEM "a>b"><fs_response status="success"><results/></fs_response>`,
	`<!DOCTYPE x [<!ENTITY a "b">]><fs_response status="success"><results/></fs_response>`,
	`<fs_response status="success"><results><result id="1"><items><item id="1"><value>a<b>c<value>d</value></b>e<![CDATA[<f>&amp;]]>g<?p i?>h</value></item></items></result></results></fs_response>`,
	`<fs_response status="success"><results><result id="1" id="2"/></results></fs_response>`,
	`<fs_response status="success"><x:results/><results><x y="<"/></results></fs_response>`,
	`<!doctype html><html><body>502 Bad Gateway</body></html>`,
	`{"status":"success"}`,
	`<fs_response status="success"><results><result id="1"><metas>`,
	`<fs_response status="success"><results></result></results></fs_response>`,
	// What is wrong before its end, and well-formed to there or not.
	`<fs_response status="success"><results><result/></results></fs_response>`,
	`<fs_response status="success"><results><result/></results></wrong>`,
	`<fs_response status="success"><results><result id="&amp;"/><result>`,
	`<fs_response status="success"><results/><results><!-- a -- b --></results></fs_response>`,
	`<fs_response status="busy"><a><b/></a></fs_response>`,
	`<fs_response status="busy"><a></b></a></fs_response>`,
	`<other><a b="&lt;">&gt;</a></other>`,
	`<other><a></other>`,
	`<html><body/></html>`,
	``,
	` `,
}

// policyRefusals are what the decoder refuses though encoding/xml, which reads streams
// and is lenient in places, accepts it. Most is not well-formed.
var policyRefusals = []string{
	"a duplicate attribute", // which of two ids counts must not be guessed
	"a tag with a bad name, or without a space before an attribute",
	"a tag with too many attributes",
	"it is nested too deeply",
	"a second root element",        // two answers glued together
	"text before the root element", // a program's warning
	"text after the root element",  // as above
	"a CDATA section outside the root element",
	"a DOCTYPE with an internal subset", // it could define entities
	"a second DOCTYPE, or one that is not before the root element",
	"a <! that does not begin a comment, a CDATA section or a DOCTYPE",
	"an XML declaration that is not at the beginning",
}

// refusedByPolicy tells whether err is one of policyRefusals.
func refusedByPolicy(err error) bool {
	var answer *transport.AnswerError
	return errors.As(err, &answer) && slices.Contains(policyRefusals, strings.TrimPrefix(answer.Problem, "broken XML: "))
}

// declaresOther tells whether data declares an encoding that encoding/xml
// would not read (or, where blanks surround the =, would overlook).
func declaresOther(data []byte) bool {
	content := bytes.TrimLeft(bytes.TrimPrefix(data, []byte(page.Mark)), " \t\r\n")
	c := charsetOf(string(declaredCharset(content)))
	return c != charsetNone && c != charsetUTF8
}

// FuzzDecodePage holds the decoder to encoding/xml: on every document that
// encoding/xml accepts both give the same results or refuse the answer, and
// what encoding/xml refuses the decoder refuses, policy excepted. They agree
// too on whether an answer that is refused is well-formed.
func FuzzDecodePage(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodeViewed(t, data, "")
		if err == nil {
			defer p.Release()
		}
		tree, xmlErr := oracleTree(data)
		if xmlErr != nil {
			// Accepted beyond encoding/xml: replaced characters, other charsets and
			// versions, names of XML's fifth edition (TestPolicyAcceptances).
			beyond := err != nil || p.Replaced > 0 || bytes.Contains(data, []byte("<?xml")) || !isASCII(data)
			if !beyond {
				t.Fatalf("accepted, but encoding/xml refuses it: %v", xmlErr)
			}
			if isWellFormed(err) && isASCII(data) && !bytes.Contains(data, []byte("<?xml")) && !forbids(data) {
				t.Fatalf("%v: taken for well-formed, but encoding/xml refuses it: %v", err, xmlErr)
			}
			return
		}
		if refusedByPolicy(err) || declaresOther(data) || emptyNamespace(tree) {
			return
		}
		content := bytes.TrimLeft(bytes.TrimPrefix(data, []byte(page.Mark)), page.Blanks)
		if isAnswerError(err) && !isWellFormed(err) && len(tree.children()) > 0 && content[0] == '<' && !isHTML(content) {
			t.Fatalf("%v: not taken for well-formed, but encoding/xml accepts it", err)
		}
		want, wantErr := oraclePage(tree)
		compareWithOracle(t, p, err, want, wantErr)
	})
}

func isAnswerError(err error) bool {
	_, ok := errors.AsType[*transport.AnswerError](err)
	return ok
}

// isWellFormed tells whether an answer is refused for what it says.
func isWellFormed(err error) bool {
	a, ok := errors.AsType[*transport.AnswerError](err)
	return ok && (a.Fault == transport.FaultWrong || a.Fault == transport.FaultForeign)
}

// forbids tells whether data holds characters that encoding/xml refuses and the
// decoder replaces.
func forbids(data []byte) bool {
	return bytes.ContainsFunc(data, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' }) || bytes.Contains(data, []byte("&#"))
}

// emptyNamespace tells whether a prefix is bound to nothing, which is illegal
// and makes encoding/xml drop the prefix.
func emptyNamespace(n *oracleNode) bool {
	for _, a := range n.attrs {
		if a.Name.Space == "xmlns" && a.Value == "" {
			return true
		}
	}
	return slices.ContainsFunc(n.children(), emptyNamespace)
}

func isASCII(data []byte) bool {
	return !slices.ContainsFunc(data, func(c byte) bool { return c >= utf8.RuneSelf })
}

func compareWithOracle(t *testing.T, page *page.Page, err error, want plainPage, wantErr error) {
	t.Helper()
	var service, wantService *transport.ServiceError
	switch {
	case errors.As(wantErr, &wantService):
		if !errors.As(err, &service) || *service != *wantService {
			t.Fatalf("err = %v, the oracle has %v", err, wantErr)
		}
	case wantErr != nil:
		var answer *transport.AnswerError
		if !errors.As(err, &answer) {
			t.Fatalf("err = %v, the oracle refuses the answer", err)
		}
	case err != nil:
		t.Fatalf("refused: %v; the oracle has %+v", err, want)
	default:
		if got := plain(page); !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded\n%+v\nthe oracle has\n%+v", got, want)
		}
	}
}

// decodeViewed is decodePage, and checks the views of the page.
func decodeViewed(t *testing.T, body []byte, contentType string) (*page.Page, error) {
	t.Helper()
	d := newDecoder()
	defer d.release()
	d.Text = append(d.Text, body...)
	if err := d.decode(contentType, d.readPage); err != nil {
		return nil, err
	}
	text := d.Text
	p := d.Finish()
	checkViews(t, p, text)
	return p, nil
}

// checkViews checks that every view lies in the answer's text, is valid UTF-8
// and, if it is not empty, overlaps no other.
func checkViews(t *testing.T, p *page.Page, text []byte) {
	t.Helper()
	at := func(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
	end, last := at(text), at(text)+uintptr(len(text))
	for i := range p.Len() {
		for _, c := range p.Cells(i) {
			for j := range int(c.Values) {
				v := p.Value(c, j)
				if len(v) == 0 {
					continue
				}
				if at(v) < end || at(v)+uintptr(len(v)) > last {
					t.Fatalf("the view %q overlaps the one before, or is out of the text's %d bytes", v, len(text))
				}
				end = at(v) + uintptr(len(v))
				if !utf8.Valid(v) {
					t.Fatalf("the view %q is not valid UTF-8", v)
				}
			}
		}
	}
	for i := range p.Len() {
		for _, c := range p.Cells(i) {
			if int(c.Field) >= len(p.Fields) || p.Fields[c.Field].Kind == page.KindMeta && c.Values != 1 {
				t.Fatalf("result %d has the cell %+v with %d fields", p.ID(i), c, len(p.Fields))
			}
		}
	}
}

// FuzzScan drives the scanner alone over any bytes: it must end, in bounds,
// and accept only what closes what it opens.
func FuzzScan(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(strings.Repeat("<a>", page.MaxDepth+1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, _ := clean(data, true)
		var s scanner
		s.init(text, 0)
		open := 0
		for last := -1; ; last = s.Pos {
			ev, err := s.next()
			if err != nil {
				return
			}
			if ev != eventEnd && ev != eventEOF && s.Pos <= last {
				t.Fatalf("event %d does not advance from byte %d", ev, last)
			}
			switch ev {
			case eventStart:
				open++
				_ = s.Bytes(s.name)
			case eventEnd:
				open--
			case eventText:
				if !utf8.Valid(s.Bytes(s.text)) {
					t.Fatalf("text %q", s.Bytes(s.text))
				}
			case eventEOF:
				if open != 0 || s.Pos != len(text) {
					t.Fatalf("ended at byte %d of %d with %d open elements", s.Pos, len(text), open)
				}
				return
			}
			if open != len(s.open) || open > page.MaxDepth {
				t.Fatalf("%d open elements, the stack has %d, the bound is %d", open, len(s.open), page.MaxDepth)
			}
		}
	})
}

// The ways to write a value that FuzzValueRoundTrip tries.
var valueWriters = map[string]func(string) string{
	"escaped": func(v string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(v))
		return b.String()
	},
	"references": func(v string) string {
		var b strings.Builder
		for i, r := range v {
			fmt.Fprintf(&b, []string{"&#%d;", "&#x%x;", "&#x%06X;"}[i%3], r)
		}
		return b.String()
	},
	"cdata": func(v string) string {
		return "<![CDATA[" + strings.ReplaceAll(v, "]]>", "]]]]><![CDATA[>") + "]]>"
	},
	"parts": func(v string) string {
		var b strings.Builder
		for i, r := range v {
			switch i % 4 {
			case 0:
				_ = xml.EscapeText(&b, []byte(string(r)))
			case 1:
				fmt.Fprintf(&b, "<!-- x -->&#%d;<?y z?>", r)
			case 2:
				fmt.Fprintf(&b, "<w><x/><value>&#x%X;</value></w>", r)
			case 3:
				b.WriteString("<![CDATA[]]>")
				_ = xml.EscapeText(&b, []byte(string(r)))
			}
		}
		return b.String()
	},
}

// asRead returns what a value becomes: forbidden characters and invalid bytes
// are replaced, and in a CDATA section, which has no references, line ends are
// normalised.
func asRead(v, writer string) string {
	if writer == "cdata" {
		v = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(v)
	}
	var b strings.Builder
	for _, r := range v {
		if !page.Allowed(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

// FuzzValueRoundTrip writes two values as XML in every way and reads them back.
func FuzzValueRoundTrip(f *testing.F) {
	for _, v := range hostileValues {
		f.Add(v, "plain")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for name, write := range valueWriters {
			body := `<fs_response status="success"><results><result id="1"><metas><meta id="m">` + write(a) +
				`</meta></metas><items><item id="i"><value>` + write(b) + `</value><value>` + write(a) + `</value></item>` +
				`</items></result></results></fs_response>`
			p, err := decodeViewed(t, []byte(body), "application/xml; charset=utf-8")
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, body)
			}
			got := plain(p).Results[0].Cells
			want := []plainCell{
				{page.KindMeta, "m", []string{asRead(a, name)}},
				{page.KindItem, "i", []string{asRead(b, name), asRead(a, name)}},
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: read %q, want %q\n%s", name, got, want, body)
			}
			p.Release()
		}
	})
}
