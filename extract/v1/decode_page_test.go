package v1

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// hostileValues must come through byte for byte.
var hostileValues = []string{
	"", " ", "\n", " padded ", `"quoted"`, "it's", "a\r\nb", "\r", "a\nb\n", "]]>", "&amp;amp;", "&", "<value>x</value>",
	"=1+1", "+1", "-1", "@x", "\U0001f600\U0001f468\u200d\U0001f469", "\u0634\u0643\u0631\u0627 \u202eabc", "a\u2028b", "\ufeffmark", `back\slash`,
	"a|b", "007", "NULL", "null", "\u0085", "\u007f\u0080\u009f", "\ufffd", "\t", "\U0010ffff", "caf\u00e9", "e\u0301",
}

// oneValue is an answer with one result of one item, whose value is given as XML.
func oneValue(value string) string {
	return inResult(`<items><item id="1"><value>` + value + `</value></item></items>`)
}

// inResult is an answer with one result that holds the XML given.
func inResult(content string) string {
	return inResponse(`<results><result id="1">` + content + `</result></results>`)
}

func inResponse(content string) string {
	return `<fs_response status="success">` + content + `</fs_response>`
}

func mustDecode(t *testing.T, body string) *page.Page {
	t.Helper()
	p, err := decodeViewed(t, []byte(body), "")
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return p
}

func TestCells(t *testing.T) {
	meta := func(id, v string) plainCell { return plainCell{page.KindMeta, id, []string{v}} }
	item := func(id string, v ...string) plainCell { return plainCell{page.KindItem, id, v} }
	for _, c := range []struct {
		name, xml string
		want      []plainCell
	}{
		{"empty result", ``, nil},
		{"empty groups", `<metas/><items></items>`, nil},
		{"metas", `<metas><meta id="a">1</meta><meta id="b"/><meta id="c"></meta></metas>`, []plainCell{meta("a", "1"), meta("b", ""), meta("c", "")}},
		{"a meta keeps blanks", "<metas><meta id=\"a\"> x\n</meta></metas>", []plainCell{meta("a", " x\n")}},
		{"one value", `<items><item id="1"><value>x</value></item></items>`, []plainCell{item("1", "x")}},
		{"several values", `<items><item id="1"> <value index="1">x</value> <value index="2">y</value> </item></items>`, []plainCell{item("1", "x", "y")}},
		{"an empty value", `<items><item id="1"><value/></item></items>`, []plainCell{item("1", "")}},
		{"an item without value", `<items><item id="1"/><item id="2"></item><item id="3"> </item></items>`, []plainCell{item("1"), item("2"), item("3")}},
		{"an item's own text", `<items><item id="1"> a<![CDATA[b]]>&lt; </item></items>`, []plainCell{item("1", " ab< ")}},
		{"own text beside a value", `<items><item id="1">a<value>x</value>b</item></items>`, []plainCell{item("1", "x")}},
		{"own text around an unknown element", `<items><item id="1">a<u>x</u>b</item></items>`, []plainCell{item("1", "axb")}},
		{"own text inside an unknown element", `<items><item id="1"> <u> x</u></item><item id="2"><u> </u></item></items>`, []plainCell{item("1", "  x"), item("2")}},
		{"markup in a value", `<items><item id="1"><value>a <b>bold</b> c</value><value><p>&lt;d&gt; <i x="/&gt;">e</i><br/><![CDATA[<f>]]></p></value></item></items>`, []plainCell{item("1", "a bold c", "<d> e<f>")}},
		{"markup in a meta", `<metas><meta id="a">a <b>b&amp;<b>c</b></b> d</meta></metas>`, []plainCell{meta("a", "a b&c d")}},
		{"one id twice", `<items><item id="1"><value>x</value></item><item id="1"><value>y</value></item></items>`, []plainCell{item("1", "x"), item("1", "y")}},
		{"meta and item of one id", `<metas><meta id="1">m</meta></metas><items><item id="1"><value>i</value></item></items>`, []plainCell{meta("1", "m"), item("1", "i")}},
		{"ids that are no numbers", `<items><item id="353-0-0"><value>x</value></item><item id="007"/></items>`, []plainCell{item("353-0-0", "x"), item("007")}},
		{"an id with a reference", `<items><item id="a&amp;b"><value>x</value></item></items>`, []plainCell{item("a&b", "x")}},
		{"items before metas", `<items><item id="1"/></items><metas><meta id="a">m</meta></metas>`, []plainCell{item("1"), meta("a", "m")}},
		{"several groups", `<metas><meta id="a">m</meta></metas><metas><meta id="b">n</meta></metas>`, []plainCell{meta("a", "m"), meta("b", "n")}},
		{"unknown elements", `<x><items><item id="9"/></items></x><items y="z"><x/><item id="1"><x><value>no</value></x><value>a<b>b</b>c</value></item></items>`, []plainCell{item("1", "abc")}},
		{"elements in the wrong group", `<metas><item id="1"/></metas><items><meta id="1"/></items>`, nil},
		{"prefixed elements", `<items><item id="1"><p:value xmlns:p="u">no</p:value><value>x</value></item></items>`, []plainCell{item("1", "x")}},
		{"parts", "<items><item id='1'><value>a<!-- - -->b<![CDATA[<c>]]]]><![CDATA[>]]><?p?>d</value></item></items>", []plainCell{item("1", "ab<c>]]>d")}},
		{"blanks in tags", "<items\n><item\tid = '1'\n  index='2' ><value\n>x</value\n></item ></items >", []plainCell{item("1", "x")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustDecode(t, inResult(c.xml))
			defer p.Release()
			if got := plain(p).Results[0].Cells; !reflect.DeepEqual(got, c.want) {
				t.Errorf("cells %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestFields(t *testing.T) {
	p := mustDecode(t, inResponse(`<results>
	<result id="1"><metas><meta id="a">x</meta></metas><items><item id="5" index="2" type="list"/><item id="4" index="1"/></items></result>
	<result id="2"><metas><meta id="b">x</meta></metas><items><item id="5" index="9" type="text"/><item id="6" index=" 7 "/><item id="7" index="x"/><item id="8" index="99999999999999999999"/></items></result>
	</results>`))
	defer p.Release()
	want := []page.Field{
		{Kind: page.KindMeta, ID: "a", Type: "", Index: 0},
		{Kind: page.KindItem, ID: "5", Type: "list", Index: 2},
		{Kind: page.KindItem, ID: "4", Type: "", Index: 1},
		{Kind: page.KindMeta, ID: "b", Type: "", Index: 0},
		{Kind: page.KindItem, ID: "6", Type: "", Index: 7},
		{Kind: page.KindItem, ID: "7", Type: "", Index: 0},
		{Kind: page.KindItem, ID: "8", Type: "", Index: 0},
	}
	if !reflect.DeepEqual(p.Fields, want) {
		t.Errorf("fields %+v, want %+v", p.Fields, want)
	}
}

// TestLayoutGuesses reads results whose fields come, go, move, repeat and
// change their tags: a wrong guess must never show.
func TestLayoutGuesses(t *testing.T) {
	orders := []string{"abcdef", "abcdef", "abdef", "f", "", "fedcba", "aabbcc", "abcdef", "acef", "abcdef", "bdf"}
	want := make([]plainResult, 0, len(orders))
	var b strings.Builder
	for i, order := range orders {
		r := plainResult{ID: int64(i)}
		b.WriteString(`<result id="` + string(rune('0'+i/10)) + string(rune('0'+i%10)) + `">`)
		for _, kind := range []page.Kind{page.KindMeta, page.KindItem} {
			b.WriteString("<" + kind.String() + "s>")
			for j, c := range order {
				id, v := string(c), string(c)+string(rune('0'+i%10))
				index := ""
				if i%4 == j%4 {
					index = ` index="7"`
				}
				if kind == page.KindMeta {
					b.WriteString(`<meta id="` + id + `">` + v + `</meta>`)
				} else {
					b.WriteString(` <item id="` + id + `"` + index + `><value>` + v + `</value></item>`)
				}
				r.Cells = append(r.Cells, plainCell{kind, id, []string{v}})
			}
			b.WriteString("</" + kind.String() + "s>")
		}
		b.WriteString("</result>")
		want = append(want, r)
	}
	p := mustDecode(t, inResponse("<results>"+b.String()+"</results>"))
	defer p.Release()
	if got := plain(p).Results; !reflect.DeepEqual(got, want) {
		t.Errorf("results\n%+v\nwant\n%+v", got, want)
	}
	if len(p.Fields) != 12 {
		t.Errorf("%d fields, want 12: %+v", len(p.Fields), p.Fields)
	}
}

func TestHeadings(t *testing.T) {
	const results = `<results><result id="1"/></results>`
	for _, c := range []struct {
		name, xml string
		want      []page.Heading
	}{
		{"none", results, nil},
		{"before", `<headings><heading for="1">Name</heading></headings>` + results, []page.Heading{{ID: "1", Label: "Name", Kind: 0}}},
		{"after", results + `<headings><heading for="1">Name</heading></headings>`, []page.Heading{{ID: "1", Label: "Name", Kind: 0}}},
		{"inside", `<results><headings><heading for="1">Name</heading></headings></results>`, []page.Heading{{ID: "1", Label: "Name", Kind: 0}}},
		{"id", `<headings><heading id="1">Name</heading><heading id="2" for="3"/></headings>` + results, []page.Heading{{ID: "1", Label: "Name", Kind: 0}, {ID: "3", Label: "", Kind: 0}}},
		{"groups", `<headings><metas><heading for="s">S</heading></metas><items><heading id="1">N</heading></items></headings>` + results, []page.Heading{{ID: "s", Label: "S", Kind: page.KindMeta}, {ID: "1", Label: "N", Kind: page.KindItem}}},
		{"named as columns", `<headings><meta id="s">S</meta><item id="1">N</item></headings>` + results, []page.Heading{{ID: "s", Label: "S", Kind: page.KindMeta}, {ID: "1", Label: "N", Kind: page.KindItem}}},
		{"with HTML", "<headings><heading for=\"1\"><![CDATA[First\nname <b>&amp;</b> ]]> </heading></headings>" + results, []page.Heading{{ID: "1", Label: "First name &", Kind: 0}}},
		{"repeated and empty", `<headings><heading for="1">A</heading><heading for="2">A</heading><heading for="3"></heading></headings>` + results, []page.Heading{{ID: "1", Label: "A", Kind: 0}, {ID: "2", Label: "A", Kind: 0}, {ID: "3", Label: "", Kind: 0}}},
		{"without an id", `<headings><heading>A</heading><x/><heading for="">B</heading></headings>` + results, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustDecode(t, inResponse(c.xml))
			defer p.Release()
			if got := plain(p).Headings; !reflect.DeepEqual(got, c.want) {
				t.Errorf("headings %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestServiceErrors(t *testing.T) {
	for _, c := range []struct {
		name, xml string
		want      transport.ServiceError
	}{
		{"busy", `<fs_response status="error"><error code="3">System too busy</error></fs_response>`, transport.ServiceError{Code: 3, Message: "System too busy"}},
		{"earlier root", `<fs_result status="error"><error code="100">Invalid API key</error></fs_result>`, transport.ServiceError{Code: 100, Message: "Invalid API key"}},
		{"blanks", "<fs_response status='error'> <error code=' 0 '>\n a <![CDATA[& b]]>\n</error></fs_response>", transport.ServiceError{Code: 0, Message: "a & b"}},
		{"no code", `<fs_response status="error"><error>Oh</error></fs_response>`, transport.ServiceError{Code: transport.CodeNone, Message: "Oh"}},
		{"no number", `<fs_response status="error"><error code="x">Oh</error></fs_response>`, transport.ServiceError{Code: transport.CodeNone, Message: "Oh"}},
		{"no error", `<fs_response status="error"/>`, transport.ServiceError{Code: transport.CodeNone}},
		{"results beside", `<fs_response status="error"><results><result id="1"/></results><error code="2">Bad</error></fs_response>`, transport.ServiceError{Code: 2, Message: "Bad"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := decodePage([]byte(c.xml), "")
			var got *transport.ServiceError
			if p != nil || !errors.As(err, &got) || *got != c.want {
				t.Errorf("page %v, err %#v, want %#v", p, err, c.want)
			}
			root, err := decodeTree([]byte(c.xml), "")
			if root != nil || !errors.As(err, &got) || *got != c.want {
				t.Errorf("tree %v, err %#v, want %#v", root, err, c.want)
			}
		})
	}
}

func TestUnreadableAnswers(t *testing.T) {
	result := func(s string) string { return inResponse("<results>" + s + "</results>") }
	for _, c := range []struct{ name, body, want string }{
		{"empty", "", "not XML: it is empty"},
		{"blank", " \r\n\t", "not XML: it is empty"},
		{"only a mark", "\xef\xbb\xbf", "not XML: it is empty"},
		{"json", `{"status":"success"}`, "not XML: it is JSON"},
		{"text", "Bad Gateway", "not XML: it does not begin with <"},
		{"html", "<html><body><p>Bad Gateway<br></html>", "not XML: it is an HTML page"},
		{"html5", "\n<!DOCTYPE html>\n<html></html>", "not XML: it is an HTML page"},
		{"another root", "<response status='success'><results/></response>", "neither fs_response nor fs_result"},
		{"a prefixed root", "<x:fs_response status='success'><results/></x:fs_response>", "neither fs_response nor fs_result"},
		{"no status", "<fs_response><results/></fs_response>", "status is neither success nor error"},
		{"another status", "<fs_response status='ok'><results/></fs_response>", "status is neither success nor error"},
		{"no results", inResponse(""), "reports success but has no results element"},
		{"a count", inResponse("<count>5</count>"), "it has a count element"},
		{"forms", inResponse("<forms><form id='1'/></forms>"), "it has a forms element"},
		{"nested results", inResponse("<x><results/></x>"), "reports success but has no results element"},
		{"two results", inResponse("<results/><results/>"), "a second results element"},
		{"a result without id", result("<result/>"), "a result without an id"},
		{"an empty id", result("<result id=''/>"), "id is not a number"},
		{"a text id", result("<result id='x'/>"), "id is not a number"},
		{"a negative id", result("<result id='-1'/>"), "id is not a number"},
		{"a signed id", result("<result id='+1'/>"), "id is not a number"},
		{"an underscored id", result("<result id='1_0'/>"), "id is not a number"},
		{"a fractional id", result("<result id='1.0'/>"), "id is not a number"},
		{"a huge id", result("<result id='9223372036854775808'/>"), "id is not a number"},
		{"a meta without id", inResult("<metas><meta>x</meta></metas>"), "one of a result's meta elements"},
		{"an item without id", inResult("<items><item index='1'/></items>"), "one of a result's item elements"},
		{"an item with an empty id", inResult("<items><item id=''/></items>"), "one of a result's item elements"},
		{"UTF-16", "\xff\xfe<\x00", "UTF-16"},
		{"UTF-16 big", "\xfe\xff\x00<", "UTF-16"},
		{"UTF-16 without a mark", "<\x00f\x00", "UTF-16"},
		{"another charset", "<?xml version='1.0' encoding='EBCDIC'?><fs_response/>", "charset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := decodePage([]byte(c.body), "")
			var answer *transport.AnswerError
			if p != nil || !errors.As(err, &answer) || !strings.Contains(answer.Problem, c.want) {
				t.Errorf("page %v, err %v, want a problem with %q", p, err, c.want)
			}
		})
	}
}

func TestHTMLLabel(t *testing.T) {
	p, err := decodePage([]byte(inResponse("<results/>")), "text/html; charset=UTF-8")
	if err != nil {
		t.Fatalf("an answer labelled as HTML: %v", err)
	}
	p.Release()
	_, err = decodePage([]byte("<p>Bad Gateway"), "text/html")
	if err == nil || !strings.Contains(err.Error(), "not XML: it is an HTML page") {
		t.Errorf("err = %v", err)
	}
	_, err = decodePage([]byte("<fs_response status='success'><results>"), "text/html")
	if err == nil || !strings.Contains(err.Error(), "ends too early") {
		t.Errorf("err = %v", err)
	}
}

// TestTruncation cuts an answer at every byte: no part of it is a page.
func TestTruncation(t *testing.T) {
	body := fuzzSeeds[1]
	end := strings.LastIndex(body, ">") + 1
	for i := range end {
		p, err := decodePage([]byte(body[:i]), "")
		var answer *transport.AnswerError
		if p != nil || !errors.As(err, &answer) {
			t.Fatalf("cut at byte %d: page %v, err %v", i, p, err)
		}
		if i > 0 && !strings.Contains(answer.Problem, "ends too early") {
			t.Errorf("cut at byte %d: %v", i, err)
		}
	}
}

// TestNoAnswerText checks that errors do not show what the answer holds, but for the name of
// a charset.
func TestNoAnswerText(t *testing.T) {
	for _, s := range fuzzSeeds {
		for i := range len(s) {
			for _, cut := range []string{s[:i] + "canary" + s[i:], s[:i] + "<canary" + s[i:], s[:i] + "&canary" + s[i:]} {
				_, err := decodePage([]byte(cut), "")
				var answer *transport.AnswerError
				if errors.As(err, &answer) && strings.Contains(err.Error(), "canary") && !strings.Contains(err.Error(), "its charset") {
					t.Fatalf("%v shows the text of\n%s", err, cut)
				}
			}
		}
	}
}
