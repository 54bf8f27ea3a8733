package reportpage

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/formetl/formetl/pipelines"
)

var update = flag.Bool("update-pages", false, "write testdata/*.html anew")

// TestPages compares pages with those that were looked at.
func TestPages(t *testing.T) {
	for name, reports := range pages() {
		got := Page(reports)
		checkPage(t, name, got)
		file := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the page is another one (-update-pages writes it anew, then look at it): %v", name, err)
		}
	}
}

// TestPageSays looks for what a reader looks for first.
func TestPageSays(t *testing.T) {
	all := pages()
	for name, words := range map[string][]string{
		"done":     {"feedback", "✓ done", "720", "Verified", "v1.2.3", "20260411T000000Z-5ac1d0e2", "2026-01-01 to 2026-01-09 (exclusive), America/Chicago", "2026-01-09 00:00:00", "100 ok, 3 busy, 1 failed", "Plan against fact", "−2 (0.3 %)", "Results per day", "Your name", "pii: hmac", "not shown", "red", "and 5 more values", "its result was rejected", "resumed from run"},
		"nothing":  {"Nothing was new", "✓ done", "known to be empty"},
		"notbegun": {"78 – definition wrong", "What to do: mend what the message names"},
		"several":  {"2 runs", "3 forms", "! not begun", "✕ data at fault", "1 of 3", "state/rejects.jsonl", "the disk is full", "Kept for the next run: 300 results"},
		"none":     {"There was nothing to run"},
	} {
		text := text(t, Page(all[name]))
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s: the page does not say %q", name, word)
			}
		}
	}
}

// TestPageOfAYear: a year of daily windows and 200 columns are less than 1 MB, and so are
// more of everything.
func TestPageOfAYear(t *testing.T) {
	many := make([]*pipelines.FormReport, 10*mostForms)
	wide := year(400).Forms[0]
	for i := range many {
		many[i] = wide
	}
	for name, reports := range map[string][]*pipelines.Report{
		"200 columns": {year(200)}, "5,000 columns": {year(5000)}, "many forms": {runOf(many[:mostForms]...)}, "too many forms": {runOf(many...)},
	} {
		page := Page(reports)
		checkPage(t, name, page)
		t.Logf("%s: %d bytes", name, len(page))
		if len(page) >= 1_000_000 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
	}
	if text := text(t, Page([]*pipelines.Report{year(200)})); !strings.Contains(text, "item_199_") || strings.Contains(text, "more column") {
		t.Error("not all of 200 columns are on the page")
	}
	if text := text(t, Page([]*pipelines.Report{year(5000)})); !strings.Contains(text, "4,500 more columns") {
		t.Error("the page does not say how many columns it leaves out")
	}
}

// TestHostileTexts: whatever texts come from a form stay texts.
func TestHostileTexts(t *testing.T) {
	page := Page([]*pipelines.Report{hostileRun(), hostileRun()})
	checkPage(t, "hostile", page)
	if n := strings.Count(text(t, page), "</script></style></title><img src=/stolen"); n < 50 {
		t.Errorf("only %d of the hostile texts are on the page as texts", n)
	}
}

// checkPage holds what must hold of every page: it is well-formed, in UTF-8, loads and runs
// nothing, and its references lead to elements of its own.
func checkPage(t *testing.T, name string, page []byte) {
	t.Helper()
	if !utf8.Valid(page) {
		t.Errorf("%s: the page is not UTF-8", name)
	}
	elements := []string{
		"html", "head", "meta", "title", "link", "style", "body", "main", "header", "section", "div", "span", "p", "h1", "h2", "h3", "ul", "ol", "li", "dl", "dt", "dd",
		"a", "b", "i", "em", "small", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "figure", "figcaption", "svg", "g", "path", "text", "desc",
	}
	attributes := []string{
		"lang", "charset", "name", "content", "http-equiv", "class", "id", "style", "scope", "colspan", "open", "viewBox", "role", "aria-labelledby", "d", "x", "y", "text-anchor",
	}
	ids, references := map[string]bool{}, []string{}
	each(t, page, func(e xml.StartElement) {
		if !slices.Contains(elements, e.Name.Local) {
			t.Errorf("%s: the page has an element <%s>", name, e.Name.Local)
		}
		for _, a := range e.Attr {
			switch v := a.Value; {
			case a.Name.Local == "id":
				if ids[v] {
					t.Errorf("%s: the id %s is there twice", name, v)
				}
				ids[v] = true
				continue
			case a.Name.Local == "aria-labelledby":
				references = append(references, strings.Fields(v)...)
				continue
			case a.Name.Local == "href" && e.Name.Local == "a" && strings.HasPrefix(v, "#"):
				references = append(references, v[1:])
				continue
			case e.Name.Local == "link" && (a.Name.Local == "rel" && v == "icon" || a.Name.Local == "href" && v == "data:,"):
				continue
			case a.Name.Local == "style" && !regexp.MustCompile(`^width:[0-9.]+%?$`).MatchString(v):
				t.Errorf("%s: style=%q", name, v)
			}
			if !slices.Contains(attributes, a.Name.Local) {
				t.Errorf("%s: <%s> has %s=%q", name, e.Name.Local, a.Name.Local, a.Value)
			}
		}
	})
	for _, r := range references {
		if !ids[r] {
			t.Errorf("%s: nothing has the id %q", name, r)
		}
	}
	if !bytes.Contains(page, []byte(`http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;; img-src data:"`)) {
		t.Errorf("%s: the page has no policy that lets it load nothing", name)
	}
	for _, never := range []string{"url(", "@import", "http:", "https:", "\v", "\x00", "\u202e"} {
		if bytes.Contains(page, []byte(never)) {
			t.Errorf("%s: the page holds %q", name, never)
		}
	}
}

// each parses a page as XML, strictly.
func each(t *testing.T, page []byte, visit func(xml.StartElement)) {
	t.Helper()
	walk(t, page, func(token xml.Token) {
		if e, ok := token.(xml.StartElement); ok {
			visit(e)
		}
	})
}

// text is what a page says: its texts, a blank between two of them.
func text(t *testing.T, page []byte) string {
	t.Helper()
	var b strings.Builder
	walk(t, page, func(token xml.Token) {
		if data, ok := token.(xml.CharData); ok {
			b.WriteString(string(data) + " ")
		}
	})
	return b.String()
}

func walk(t *testing.T, page []byte, visit func(xml.Token)) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		visit(token)
	}
	if depth != 0 {
		t.Error("an element is open at the end")
	}
}
