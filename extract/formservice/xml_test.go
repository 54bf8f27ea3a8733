package formservice

import (
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// readable is what of a text can arrive: characters that XML forbids, and
// bytes that are not UTF-8, become U+FFFD.
func readable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if !allowed(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TestEveryValueArrives sends hostile values in every spelling and encoding.
func TestEveryValueArrives(t *testing.T) {
	values := append(Hostile(), controlValues()...)
	values = append(values, "", "invalid \xff\xfe utf8", "cut \xe2\x82")
	results := make([]Result, 0, 8*len(values))
	for i, v := range values {
		for spelling := range int64(8) {
			r := finished(int64(i)*8+spelling+1, "2026-01-01 00:00:00", Answer{"a\"\n<", "t'&\t", 3, []string{v, v}})
			r.Metas = append(r.Metas, Meta{"note", v})
			results = append(results, r)
		}
	}
	f := NewForm("form1", nil, results)
	s := startService(t, &Server{Forms: []*Form{f}})
	for _, faults := range []Faults{{}, {Latin1: true}, {NoGzip: true, OldRoot: true}} {
		s.SetFaults(faults)
		got := make([]Result, 0, len(results))
		for page := range (len(results) + 99) / 100 {
			got = append(got, s.get(t, "results", "fs_sort_direction=asc&fs_page="+string(rune('1'+page))).results(t)...)
		}
		if len(got) != len(results) {
			t.Fatalf("%s: %d results, want %d", faults, len(got), len(results))
		}
		for i, r := range results {
			want := r.Clone()
			for j := range want.Metas {
				want.Metas[j].Value = readable(want.Metas[j].Value)
			}
			for j := range want.Items[0].Values {
				want.Items[0].Values[j] = readable(want.Items[0].Values[j])
			}
			if !same(got[i], want) {
				t.Errorf("%s: result %d is %+v, want %+v", faults, r.ID, got[i], want)
			}
		}
	}
}

// TestSpellings checks that all the ways to write a character are used.
func TestSpellings(t *testing.T) {
	results := make([]Result, 0, 8)
	for id := range int64(8) {
		results = append(results, finished(id+1, "2026-01-01 00:00:00", Answer{ID: "1", Values: []string{"a&\"b]]>\r", "a&]]>", ""}}))
	}
	s := startService(t, &Server{Forms: []*Form{NewForm("form1", nil, results)}})
	body := s.send(t, "GET", "/api/users/acme/forms/form1/results", "").body
	for _, want := range []string{
		"&amp;", "&#38;", "&#x26;", "<![CDATA[a&]]]]><![CDATA[>]]>", "&#13;", "<value/>", `<value index="3"></value>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no result is spelled with %s", want)
		}
	}
	if strings.ContainsAny(body, "\r") {
		t.Error("a raw carriage return would arrive as a line feed")
	}
}

func TestControl(t *testing.T) {
	f := NewForm("form1", nil, []Result{finished(1, "2026-01-01 00:00:00", Answer{ID: "1", Values: []string{"a\vb"}})})
	s := startService(t, &Server{Forms: []*Form{f}})
	for control, want := range map[string]string{"": "a\ufffdb", "raw": "a\vb", "ref": "a&#11;b"} {
		s.SetFaults(Faults{Control: control})
		if body := s.send(t, "GET", "/api/users/acme/forms/form1/results", "").body; !strings.Contains(body, want) {
			t.Errorf("control %q: the answer does not hold %q", control, want)
		}
	}
}

func TestLatin1(t *testing.T) {
	f := NewForm("form1", nil, []Result{finished(1, "2026-01-01 00:00:00", Answer{ID: "1", Values: []string{"é€\u0085"}})})
	s := startService(t, &Server{Forms: []*Form{f}, Faults: Faults{Latin1: true}})
	r := s.send(t, "GET", "/api/users/acme/forms/form1/results", "")
	if !strings.Contains(r.body, `encoding="ISO-8859-1"`) || !strings.Contains(r.header.Get("Content-Type"), "charset=ISO-8859-1") {
		t.Errorf("declared as %q in %.60q", r.header.Get("Content-Type"), r.body)
	}
	if !strings.Contains(r.body, "\xe9&#8364;&#133;") {
		t.Errorf("the value is not in ISO-8859-1: %q", r.body)
	}
}

// FuzzXML writes a text as content and as an attribute, in every spelling;
// encoding/xml must read it back.
func FuzzXML(f *testing.F) {
	for _, v := range append(Hostile(), controlValues()...) {
		f.Add(v, uint8(3), false)
		f.Add(v, uint8(1), true)
	}
	f.Add("\xff]]>\xfe", uint8(3), true)
	f.Fuzz(func(t *testing.T, text string, spell uint8, latin1 bool) {
		w := newXMLWriter(Faults{Latin1: latin1})
		w.open("success")
		w.spell = xmlSpelling(spell % 4)
		w.raw("<v")
		w.attribute("a", text)
		w.raw(">")
		w.text(text)
		w.raw("</v>")
		body := w.close()
		var root node
		d := xml.NewDecoder(strings.NewReader(string(body)))
		d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return latin1Reader{in}, nil }
		if err := d.Decode(&root); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		v := root.one(t, "v")
		if want := readable(text); v.Text != want || v.attr("a") != want {
			t.Fatalf("%q arrives as %q and, in an attribute, as %q", text, v.Text, v.attr("a"))
		}
	})
}

// TestSeveralItemsOfOneID checks that split answers stay as they were given.
func TestSeveralItemsOfOneID(t *testing.T) {
	r := finished(1, "2026-01-01 00:00:00", Answer{"7", "list", 1, []string{"a"}}, Answer{"7", "list", 1, nil}, Answer{"7", "list", 1, []string{"b", ""}})
	s := startService(t, &Server{Forms: []*Form{NewForm("form1", nil, []Result{r})}})
	got := s.get(t, "results", "").results(t)
	if len(got) != 1 || !same(got[0], r) {
		t.Errorf("got %+v, want %+v", got, r)
	}
	if values, ok := r.Values("7"); !ok || !slices.Equal(values, []string{"a", "b", ""}) {
		t.Errorf("values %q", values)
	}
	equalIDs(t, "search", s.ids(t, "fs_search_equals_7=b"), 1)
}
