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

func TestControl(t *testing.T) {
	f := NewForm("form1", nil, []Result{finished(1, "2026-01-01 00:00:00", Answer{ID: "1", Values: []string{"a\vb"}})})
	s := startService(t, &Server{Forms: []*Form{f}})
	for control, want := range map[string]string{"": "a\ufffdb", "raw": "a\vb", "ref": "a&#11;b"} {
		s.SetFaults(Faults("").With("control", control))
		if body := s.send(t, "GET", "/api/users/acme/forms/form1/results", "").body; !strings.Contains(body, want) {
			t.Errorf("control %q: the answer does not hold %q", control, want)
		}
	}
}

// FuzzXML writes a text as content and as an attribute; encoding/xml must read it back.
func FuzzXML(f *testing.F) {
	for _, v := range append(Hostile(), append(controlValues(), "", "\xff]]>\xfe", "cut \xe2\x82")...) {
		f.Add(v, false)
		f.Add(v, true)
	}
	f.Fuzz(func(t *testing.T, text string, latin1 bool) {
		w := newXMLWriter(reads(t, Faults("").With("latin1", latin1)))
		w.open("success")
		w.element("v", text, "a", text)
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
