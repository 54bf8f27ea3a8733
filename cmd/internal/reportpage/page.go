package reportpage

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines"
)

//go:embed style.css
var style string

// policy lets the page load nothing. Styles are those that it holds itself, and its icon is
// an empty address.
const policy = `default-src 'none'; style-src 'unsafe-inline'; img-src data:`

// Page makes a page of the reports of runs. There may be none or several.
func Page(reports []*pipelines.Report) []byte {
	m := &markup{}
	m.b.WriteString("<!DOCTYPE html>\n")
	m.open("html", "lang", "en")
	m.open("head")
	m.void("meta", "charset", "utf-8")
	m.void("meta", "http-equiv", "Content-Security-Policy", "content", policy)
	m.void("meta", "name", "viewport", "content", "width=device-width, initial-scale=1")
	m.void("meta", "name", "color-scheme", "content", "light dark")
	m.element("title", title(reports))
	m.void("link", "rel", "icon", "href", "data:,")
	m.open("style")
	m.b.WriteString(style)
	m.end("style", "head")
	m.open("body")
	m.open("main")
	forms := 0
	for _, r := range reports {
		forms += len(r.Forms)
	}
	room := roomFor(forms)
	switch len(reports) {
	case 0:
		m.element("h1", "No run")
		m.element("p", "There was nothing to run.")
	case 1:
	default:
		m.overview(reports)
	}
	for i, r := range reports {
		m.run(r, anchor(i), room)
	}
	m.end("main", "body", "html")
	return []byte(m.b.String())
}

// anchor is the id of a run on the page.
func anchor(i int) string { return "run" + strconv.Itoa(i+1) }

func title(reports []*pipelines.Report) string {
	if len(reports) == 1 {
		return clip(reports[0].Pipeline, mostName) + " – formetl run"
	}
	return "formetl – " + show.Plural(len(reports), "run")
}

// Bounds of texts, in characters.
const (
	mostName  = 200
	mostValue = 60
	mostDrift = 400
	mostError = 4000
)

// room bounds what the page shows of each form. It is less where there are many.
type room struct {
	columns, windows, bars, changes int

	failed bool // there are so many forms that only those that failed are shown
}

// mostForms is how many forms the page shows.
const mostForms = 30

func (r room) shows(f *pipelines.FormReport) bool { return !r.failed || f.Error != "" }

func roomFor(forms int) room {
	share := func(all, least int) int { return max(least, all/max(1, forms)) }
	return room{columns: share(500, 8), windows: share(400, 6), bars: share(420, 16), changes: share(400, 8), failed: forms > mostForms}
}

// overview lists the runs of a page that has several.
func (m *markup) overview(reports []*pipelines.Report) {
	m.open("header", "class", "top")
	m.element("p", "formetl run report", "class", "kicker")
	m.element("h1", show.Plural(len(reports), "run"))
	m.end("header")
	m.table("", "Pipeline", "Outcome", "#Forms", "#Rows", "#Rejected", "#Requests", "#Duration")
	for i, r := range reports {
		t := totalOf(r)
		m.open("tr")
		m.open("td")
		m.element("a", clip(r.Pipeline, mostName), "href", "#"+anchor(i))
		m.end("td")
		m.open("td")
		m.badge(r.ExitCode, r.Error == "" || len(r.Forms) > 0)
		m.end("td")
		m.numbers(show.Plural(len(r.Forms), "form"), show.Thousands(t.rows), some(t.rejected), show.Thousands(r.Requests.All()), took(r.EndedAt.Sub(r.StartedAt)))
		m.end("tr")
	}
	m.endTable()
}

// table begins a table. A heading that begins with # is of numbers.
func (m *markup) table(class string, headings ...string) {
	m.open("div", "class", "scroll")
	m.open("table", "class", class)
	m.open("thead")
	m.open("tr")
	for _, h := range headings {
		name, right := strings.CutPrefix(h, "#")
		m.element("th", name, "scope", "col", "class", either(right, "n", ""))
	}
	m.end("tr", "thead")
	m.open("tbody")
}

func (m *markup) endTable() { m.end("tbody", "table", "div") }

// cells are cells of a row.
func (m *markup) cells(texts ...string) {
	for _, s := range texts {
		m.element("td", s)
	}
}

// numbers are cells of a row that hold numbers.
func (m *markup) numbers(texts ...string) {
	for _, s := range texts {
		m.element("td", s, "class", "n")
	}
}
