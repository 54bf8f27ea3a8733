package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// pageOf is the page of reports. What must hold of every page was checked.
func pageOf(t *testing.T, name string, reports ...*pipelines.Report) []byte {
	t.Helper()
	html, err := page(reports)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	checkPage(t, name, html)
	return html
}

// TestPageSays looks for what a reader looks for.
func TestPageSays(t *testing.T) {
	all := pages()
	for name, words := range map[string][]string{
		"done":     {"feedback", "✓ done", "720", "Verified", "v1.2.3", "20260411T000000Z-5ac1d0e2", "2026-01-01 00:00:00 to 2026-01-09 00:00:00 (exclusive), America/Chicago", "2026-01-09 00:00:00", "100 ok, 3 busy, 1 failed", "Planned and done", "−1 (−0.1 %)", "Time line", "Your name", "the result was rejected", "Resumed from run"},
		"nothing":  {"Nothing new", "✓ done"},
		"notbegun": {"78 – definition or address wrong", "What to do: mend what the message names"},
		"several":  {"2 runs", "3 forms", "! not begun", "✕ problem with the data", "1 of 3", "the disk is full", "The next run continues after 300 results already read"},
		"none":     {"There was nothing to run"},
	} {
		text := text(t, pageOf(t, name, all[name]...))
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s: the page does not say %q", name, word)
			}
		}
	}
}

// TestPageText holds every text of a page with all that can be told of forms, and the lengths of
// its bars.
func TestPageText(t *testing.T) {
	all := doneForm("feedback", 6)
	all.Undated, all.Reread, all.Older, all.WindowsKept, all.Planned.AtMost = 20, 5, 7, 2, true
	all.Planned.Undated = &pipelines.PlannedUndated{Results: 21, Requests: 3}
	all.Requests = load.Requests{Results: 12, Count: 4, Retries: 1}
	all.Drift = append(all.Drift, "new columns that the schema does not list were added: item_11")
	all.Spans[5].Results += 9 // more than planned
	between := doneForm("between", 1)
	between.Verified, between.Rows, between.Planned = &load.Verified{Counted: 10, Extracted: 11}, 0, nil
	unwritten := failedForm("unwritten", 73, errors.New("the disk is full"))
	unwritten.Verified, unwritten.Planned, unwritten.Spans = &load.Verified{Counted: 455, Match: true}, all.Planned, spans(5)
	hungUp, late := failedForm("hung-up", console.ExitHungUp, errors.New("hung up")), failedForm("late", 69, &pipelines.NotRunError{Form: "late", Err: errors.New("refused")})
	hungUp.Rows, hungUp.Rejected, late.Rejected, late.EndedAt = 0, 0, 0, late.StartedAt.Add(-time.Second)
	several := runOf(all, between, unwritten, hungUp, late)
	several.ExitCode, several.Error, several.EndedAt = 73, "3 of 5 forms failed", several.StartedAt.Add(59400*time.Millisecond)
	unread := pages()["notbegun"][0]
	alone := runOf(between)
	alone.EndedAt = alone.StartedAt.Add(61400 * time.Millisecond)

	var got strings.Builder
	walk(t, pageOf(t, "all", several, unread, alone), func(token xml.Token) {
		switch v := token.(type) {
		case xml.StartElement:
			if v.Name.Local == "i" && len(v.Attr) == 2 {
				fmt.Fprintln(&got, v.Attr[0].Value, v.Attr[1].Value)
			}
		case xml.CharData:
			if text := strings.TrimSpace(string(v)); text != "" {
				fmt.Fprintln(&got, text)
			}
		}
	})
	_, said, _ := strings.Cut(got.String(), "formetl run report\n") // before it stands the style
	want, err := os.ReadFile("testdata/page.txt")
	if *update {
		want, err = []byte(said), os.WriteFile("testdata/page.txt", []byte(said), 0o600)
	}
	if err != nil || said != string(want) {
		t.Errorf("%v, got\n%s", err, said)
	}
	if slices.Contains(all.Drift, "") {
		t.Errorf("the page changed the report: %q", all.Drift)
	}
}

// TestPageOfManyForms: of more than mostForms forms only those that failed have a section.
func TestPageOfManyForms(t *testing.T) {
	for n, want := range map[int]int{mostForms: mostForms, mostForms + 1: 1} {
		forms := []*pipelines.FormReport{failedForm("bad", 66, errors.New("gone"))}
		for len(forms) < n {
			forms = append(forms, doneForm("good", 1))
		}
		if got := bytes.Count(pageOf(t, "many", runOf(forms...)), []byte(`class="form"`)); got != want {
			t.Errorf("of %d forms %d have a section, want %d", n, got, want)
		}
	}
}

// TestPlanNotes: a note stands only where it holds.
func TestPlanNotes(t *testing.T) {
	minutes, share := 2.5, 0.125
	f := form{FormReport: &pipelines.FormReport{Planned: &pipelines.Planned{}}}
	if got := f.PlanNotes(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	f.Requests.Retries = 3
	f.Planned.AtMost, f.Planned.Budget = true, pipelines.Budget{PerMinute: 60, Minutes: &minutes, PerDay: 1200, DayShare: &share}
	const want = "The planned results are the most that can come: the service counts all results, not only those of the search or view. " +
		"Retries, which this table does not count: 3. At most 60 requests a minute are allowed, so the planned requests take about 2m30s. The planned requests are 12.5 % of the 1,200 requests that are allowed in 24 hours."
	if got := f.PlanNotes(); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestPageOfAYear: a year of daily windows and 200 changes are less than 1 MB, and so are
// more of everything.
func TestPageOfAYear(t *testing.T) {
	many := make([]*pipelines.FormReport, 10*mostForms)
	wide := year(400).Forms[0]
	for i := range many {
		many[i] = wide
	}
	for name, reports := range map[string][]*pipelines.Report{
		"200 changes": {year(200)}, "5,000 changes": {year(5000)}, "many forms": {runOf(many[:mostForms]...)}, "too many forms": {runOf(many...)},
	} {
		page := pageOf(t, name, reports...)
		t.Logf("%s: %d bytes", name, len(page))
		if len(page) >= 1_000_000 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
	}
	if text := text(t, pageOf(t, "200", year(200))); !strings.Contains(text, "item_199_") || strings.Contains(text, "more change") {
		t.Error("not all of 200 changes are on the page")
	}
	if text := text(t, pageOf(t, "5,000", year(5000))); !strings.Contains(text, "4,600 more changes") {
		t.Error("the page does not say how many changes it leaves out")
	}
}

// TestHostileTexts: whatever texts come from a form stay texts. No attribute holds one, and
// neither does a script, a style or an address, since the page has none that are not its own.
func TestHostileTexts(t *testing.T) {
	everywhere := doneForm("feedback", 6)
	replaceTexts(reflect.ValueOf(everywhere).Elem())
	everywhere.ExitCode, everywhere.Err = 65, errors.New(hostile)
	all := runOf(everywhere, everywhere)
	all.RequestOutcomes = map[string]int64{hostile: 1}
	replaceTexts(reflect.ValueOf(all).Elem())
	for name, reports := range map[string][]*pipelines.Report{"where texts come from elsewhere": {hostileRun(), hostileRun()}, "in every field": {all, all}} {
		page := pageOf(t, name, reports...)
		if n := strings.Count(text(t, page), "</script></style></title><img src=/stolen"); n < 50 {
			t.Errorf("%s: only %d of the hostile texts are on the page as texts", name, n)
		}
		each(t, page, func(e xml.StartElement) {
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "stolen") {
					t.Errorf("%s: <%s> has %s=%q", name, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		})
	}
}

// replaceTexts makes each text that a value holds a hostile one.
func replaceTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Pointer:
		if !v.IsNil() {
			replaceTexts(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			replaceTexts(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				replaceTexts(v.Field(i))
			}
		}
	}
}

// TestTimeLine: each window with results has a bar, with a part of it for what was rejected
// and one for what was planned and not read.
func TestTimeLine(t *testing.T) {
	page, bars := pageOf(t, "done", pages()["done"]...), map[string]int{}
	each(t, page, func(e xml.StartElement) {
		if e.Name.Local == "i" && len(e.Attr) == 2 {
			bars[e.Attr[0].Value+" "+e.Attr[1].Value]++
		}
	})
	want := map[string]int{ // of 8 windows one was empty
		"accent width:100.0%": 3, "accent width:98.9%": 3, "accent width:87.9%": 1, "bad width:1.1%": 3, "soft width:12.1%": 1,
	}
	if !maps.Equal(bars, want) {
		t.Errorf("%v", bars)
	}
	if said := text(t, page); !strings.Contains(said, "planned and not read") {
		t.Error("the page does not say what the colours are")
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
		"a", "i", "small", "table", "thead", "tbody", "tr", "th", "td", "details", "summary",
	}
	attributes := []string{
		"lang", "charset", "name", "content", "http-equiv", "class", "id", "scope", "open", "style",
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
			case a.Name.Local == "href" && e.Name.Local == "a" && strings.HasPrefix(v, "#"):
				references = append(references, v[1:])
				continue
			case e.Name.Local == "link" && (a.Name.Local == "rel" && v == "icon" || a.Name.Local == "href" && v == "data:,"):
				continue
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
	if !bytes.Contains(page, []byte(`http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"`)) {
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
