package reportpage

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/detail"
)

// openColumns is how many columns are shown without a click.
const openColumns = 40

// columns shows what each column holds.
func (m *markup) columns(f *pipelines.FormReport, columns []detail.Column, room room) {
	if len(columns) == 0 {
		return
	}
	rejected, nulled := map[string]int64{}, map[string]int64{}
	for _, c := range f.Rejects {
		rejected[c.Column] += c.Count
	}
	for _, c := range f.Nulled {
		nulled[c.Column] += c.Count
	}
	m.element("h3", "Columns")
	m.element("p", about(columns), "class", "note")
	m.open("details", "open", either(len(columns) <= openColumns, "open", ""))
	m.element("summary", "Profile of "+show.Plural(len(columns), "column"))
	headings := []string{"Column", "Type", "Filled", "#Nulls", "What it holds"}
	faulty := len(rejected)+len(nulled) > 0
	if faulty {
		headings = append(headings, "#Rejected", "#Made null")
	}
	m.table("columns", headings...)
	for _, c := range columns[:min(len(columns), room.columns)] {
		m.open("tr")
		m.columnName(c)
		m.cells(c.Type)
		m.open("td", "class", "filled")
		m.open("span", "class", "bar")
		m.element("i", "", "style", width(c.Rows-c.Nulls, c.Rows))
		m.end("span")
		m.text(percent(c.Rows-c.Nulls, c.Rows))
		m.end("td")
		m.numbers(some(c.Nulls))
		m.open("td")
		m.holds(c)
		m.end("td")
		if faulty {
			m.numbers(some(rejected[c.Name]), some(nulled[c.Name]))
		}
		m.end("tr")
	}
	m.endTable()
	if n := len(columns) - room.columns; n > 0 {
		m.element("p", "and "+show.Plural(n, "more column")+", which the codebook lists.", "class", "note")
	}
	m.end("details")
}

// about says what is notable about columns as a whole.
func about(columns []detail.Column) string {
	empty, full, personal := 0, 0, 0
	for _, c := range columns {
		if c.Rows > 0 && c.Nulls == c.Rows {
			empty++
		}
		if c.Nulls == 0 {
			full++
		}
		if c.PII != "" {
			personal++
		}
	}
	text := fmt.Sprintf("%s: %s always filled", show.Plural(len(columns), "column"), show.Thousands(full))
	if empty > 0 {
		text += fmt.Sprintf(", %s without any value", show.Thousands(empty))
	}
	if personal > 0 {
		text += fmt.Sprintf(", %s with a rule for personal data, whose values are not shown", show.Thousands(personal))
	}
	return text + "."
}

func (m *markup) columnName(c detail.Column) {
	m.open("td")
	m.element("b", clip(c.Name, mostName))
	if c.PII != "" {
		m.b.WriteByte(' ')
		m.element("span", "pii: "+c.PII, "class", "tag")
	}
	var about []string
	if label := strings.TrimSpace(c.Label); label != "" && !strings.EqualFold(strings.ReplaceAll(label, " ", "_"), c.Name) {
		about = append(about, clip(label, mostName))
	}
	_, id, _ := strings.Cut(c.From, ":")
	if id != "" && c.Name != id && c.Name != "item_"+id { // else the name says it
		about = append(about, c.From)
	}
	if len(about) > 0 {
		m.element("small", strings.Join(about, " · "))
	}
	m.end("td")
}

// holds says what the values of a column are. Nothing is said of a protected one.
func (m *markup) holds(c detail.Column) {
	switch {
	case c.PII != "":
		m.element("span", "not shown", "class", "quiet")
	case len(c.Choices) > 0:
		m.choices(c)
	case c.Measure.Unit == detail.Values:
		m.text(either(c.Measure.Least == c.Measure.Most, c.Measure.Least, c.Measure.Least+" to "+c.Measure.Most))
	case c.Measure.Unit == detail.Characters, c.Measure.Unit == detail.Elements:
		span := either(c.Measure.Least == c.Measure.Most, c.Measure.Least, c.Measure.Least+" to "+c.Measure.Most)
		m.text(span + " " + either(span == "1", strings.TrimSuffix(string(c.Measure.Unit), "s"), string(c.Measure.Unit)))
	}
	if c.Many && c.PII == "" {
		m.element("small", "more different values than are counted")
	}
}

// choices lists the most frequent values of a column.
func (m *markup) choices(c detail.Column) {
	m.open("ol", "class", "choices")
	for _, choice := range c.Choices {
		m.open("li")
		m.element("span", either(choice.Value == "", "(empty)", clip(choice.Value, mostValue)))
		m.element("em", show.Thousands(choice.Count))
		m.end("li")
	}
	m.end("ol")
	if n := c.Distinct - len(c.Choices); n > 0 {
		m.element("small", "and "+show.Plural(n, "more value"))
	}
}
