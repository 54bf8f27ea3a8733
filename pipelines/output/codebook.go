package output

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// codebookVersion is the version of the format of <name>.schema.json.
const codebookVersion = 1

// codebook is the content of <name>.schema.json: what a reader needs to understand the data of
// an output. It holds neither a time nor a run's id, so that equal results give equal bytes.
type codebook struct {
	Version  int          `json:"version"`
	Pipeline string       `json:"pipeline"`
	Form     string       `json:"form"`
	Account  string       `json:"account"`
	Timezone string       `json:"timezone"`
	Rows     int64        `json:"rows"` // rows that the run wrote; the columns' counts refer to these
	Columns  []bookColumn `json:"columns"`
}

// bookColumn describes a column of the data in the codebook. JSON keys that schema files have
// too mean the same here.
type bookColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	From     string `json:"from"`
	Label    string `json:"label"`
	ItemType string `json:"item_type,omitempty"`
	Index    int    `json:"index,omitempty"` // the item's place on the form, from 1; 0 if not known
	PII      string `json:"pii,omitempty"`
	ListAs   string `json:"list_as,omitempty"`
	Explode  bool   `json:"explode,omitempty"` // a child output has a row for each list element
	// Choices are those that the schema declares, in its order, then others sorted by value. The
	// count is 0 for a choice that only earlier runs saw, or that no run saw.
	Choices     []bookChoice `json:"choices,omitempty"`
	ManyChoices bool         `json:"many_choices,omitempty"` // too many or too long values to list
	Rows        int64        `json:"rows"`
	Nulls       int64        `json:"nulls"`
	Nullable    bool         `json:"nullable"`
	OnError     string       `json:"on_error"`
	Format      []string     `json:"format,omitempty"`
	True        []string     `json:"true_values,omitempty"`
	False       []string     `json:"false_values,omitempty"`
	Decimal     string       `json:"decimal_separator,omitempty"`
	Group       string       `json:"group_separator,omitempty"`

	known []string // choices that come first
}

// bookChoice is a value of a list, or of an item that offers choices.
type bookChoice struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// codebookFacts are what the codebook of a committed output is made from.
type codebookFacts struct {
	columns []load.Column   // columns of the output's manifest; nil if it gets no codebook
	stats   transform.Stats // statistics of the results that the run wrote to the output
	adds    bool            // parts of earlier runs stay in the output
}

// writeCodebooks writes the codebooks of the committed outputs, in the order of
// the definition. A failure goes to the log and the report, but the run still
// succeeds.
func (s *Set) writeCodebooks(ctx context.Context, schema *schemas.Schema) {
	ctx, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	var places []definition.CodebookPlace
	sharing := map[definition.CodebookPlace][]*place{}
	for _, out := range s.committed() {
		p := out.at()
		at, ok := definition.CodebookPlaceOf(p.out, p.Path, s.job.BuiltIn.Formats)
		if !ok || p.book.columns == nil {
			continue
		}
		if sharing[at] == nil {
			places = append(places, at)
		}
		sharing[at] = append(sharing[at], p)
	}
	if len(places) > 0 {
		s.job.At(PointCodebook)
	}
	for _, at := range places {
		err := s.job.writeSharedCodebook(ctx, at, sharing[at], schema)
		if err == nil {
			continue
		}
		s.mu.Lock()
		for _, p := range sharing[at] {
			p.report.CompanionsError = err.Error()
		}
		s.mu.Unlock()
		attrs := []slog.Attr{slog.String("path", strings.Join(at.Paths(), ", ")), slog.String("error", err.Error())}
		if fault, ok := errors.AsType[*definition.Fault](err); ok {
			attrs = append(attrs, slog.String("hint", fault.Cure))
		}
		s.job.Log.LogAttrs(ctx, slog.LevelWarn, "the codebook could not be written; the data is complete without it", attrs...)
	}
}

// writeSharedCodebook writes the codebook that outputs share. If an output among them is a
// dataset, the codebook counts the rows of the dataset and not those of a file.
func (j *Job) writeSharedCodebook(ctx context.Context, at definition.CodebookPlace, sharing []*place, schema *schemas.Schema) error {
	lead := max(0, slices.IndexFunc(sharing, func(p *place) bool { return p.out.Dataset() }))
	p := sharing[lead]
	if err := p.held(); err != nil {
		return err // another run has the lease and writes the codebook
	}
	dest, err := j.BuiltIn.Open(ctx, at.Root, p.out)
	if err != nil {
		return err
	}
	return writeCodebook(ctx, dest, at, newCodebook(j.Def, j.Form, schema, p.book), p.book.adds)
}

// newCodebook makes the codebook of an output. schema is the schema of the run, which may be
// nil where all columns were inferred.
func newCodebook(def *definition.Definition, form string, schema *schemas.Schema, facts codebookFacts) codebook {
	rows := facts.stats.Rows
	b := codebook{
		Version: codebookVersion, Pipeline: def.Name, Form: form,
		Account: def.Source.Account, Timezone: def.Source.Zone.String(), Rows: rows,
		Columns: make([]bookColumn, 0, len(facts.columns)),
	}
	var places map[schemas.Source]int
	if schema != nil {
		places = schema.Places()
	}
	for _, m := range facts.columns {
		c := bookColumn{
			Name: m.Name, Type: m.Type, From: m.From, Label: m.Label, ItemType: m.ItemType, Index: m.Index,
			PII: m.PII, Rows: rows, Nulls: rows,
		}
		from, err := schemas.ParseSource(m.From)
		if err == nil {
			s := schemas.Column{From: from, Inferred: true} // a column that the schema lacks was inferred
			if at, ok := places[from]; ok {
				s = schema.Columns[at]
			}
			c.Nullable = !s.Required && from.Kind != schemas.FromResultID
			c.OnError = string(s.ErrorRule())
			if strings.HasPrefix(m.Type, "list<") {
				c.ListAs, c.Explode = string(cmp.Or(s.ListAs, schemas.ListJoined)), s.Explode
			}
			r := s.Reading
			c.Format, c.True, c.False, c.Decimal, c.Group = r.Formats, r.True, r.False, r.Decimal, r.Group
			seen := facts.stats.Seen[from]
			c.Nulls -= seen.Filled
			c.known = m.Choices
			if m.Type == "string" {
				c.known = s.Choices
			}
			c.choose(seen.Choices, nil, seen.Many)
		}
		b.Columns = append(b.Columns, c)
	}
	return b
}

// choose lists the choices of a column: those that the run saw, with their counts, and known
// ones and others, with the count 0. It lists none where there are too many choices or the column has a rule
// for personal data.
func (c *bookColumn) choose(seen map[string]int64, others []string, many bool) {
	if c.PII != "" {
		return
	}
	values := slices.Concat(slices.Collect(maps.Keys(seen)), others)
	slices.Sort(values)
	values = once(slices.Concat(c.known, values))
	c.Choices, c.ManyChoices = nil, many || len(values) > transform.MostChoices
	if c.ManyChoices {
		return
	}
	for _, value := range values {
		c.Choices = append(c.Choices, bookChoice{value, seen[value]})
	}
}

// remember adds the choices of an earlier codebook of the same results that this
// run did not see.
func (b *codebook) remember(earlier *codebook) {
	if earlier.Pipeline != b.Pipeline || earlier.Form != b.Form || earlier.Account != b.Account {
		return
	}
	known := make(map[string]bookColumn, len(earlier.Columns))
	// Of several columns with one source the first one counts.
	for _, e := range slices.Backward(earlier.Columns) {
		known[e.From] = e
	}
	for i := range b.Columns {
		c := &b.Columns[i]
		was, ok := known[c.From]
		if !ok || was.PII != "" { // values written under a pii rule differ from those written without one
			continue
		}
		seen := map[string]int64{}
		for _, choice := range c.Choices {
			seen[choice.Value] = choice.Count
		}
		var before []string
		for _, choice := range was.Choices {
			before = append(before, choice.Value)
		}
		c.choose(seen, before, c.ManyChoices || was.ManyChoices)
	}
}

// encode returns the codebook as the bytes of <name>.schema.json.
func (b *codebook) encode() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // people read the labels, so < and & stay as they are
	enc.SetIndent("", "  ")
	if err := enc.Encode(b); err != nil {
		return nil, fmt.Errorf("cannot encode the codebook of form %s: %w", b.Form, err)
	}
	return out.Bytes(), nil
}

// mostCellText is how much text joinedCell puts into a cell, in UTF-16 units: what a cell of a
// spreadsheet holds, less room for the note that something was left out.
const mostCellText = 32_767 - 64

// table returns the codebook as the bytes of <name>.codebook.csv: a row for each column. People
// open this file in a spreadsheet, so it is written in the CSV profile excel.
func (b *codebook) table() []byte {
	var out bytes.Buffer
	line := func(fields ...string) {
		for i, field := range fields {
			fields[i] = tableField(field)
		}
		out.WriteString(strings.Join(fields, ",") + "\r\n")
	}
	out.WriteString("\uFEFF")
	line("column", "type", "from", "label", "item_type", "choices", "rows", "nulls", "pii")
	for _, c := range b.Columns {
		line(c.Name, c.Type, c.From, c.Label, c.ItemType, c.choicesCell(), strconv.FormatInt(c.Rows, 10), strconv.FormatInt(c.Nulls, 10), c.PII)
	}
	return out.Bytes()
}

// choicesCell lists the choices of a column with their counts, as text for a CSV cell.
func (c *bookColumn) choicesCell() string {
	if c.ManyChoices {
		return "too many to list"
	}
	list := make([]string, len(c.Choices))
	for i, choice := range c.Choices {
		list[i] = fmt.Sprintf("%s (%d)", choice.Value, choice.Count)
	}
	return joinedCell(list)
}

// joinedCell joins texts as CSV files join lists, but with blanks for people. Texts
// that the cell cannot hold are left out and counted.
func joinedCell(list []string) string {
	var cell strings.Builder
	size := 0
	for i, s := range list {
		s = listEscapes.Replace(s)
		if i > 0 {
			s = " | " + s
		}
		if size += len(utf16.Encode([]rune(s))); size > mostCellText {
			fmt.Fprintf(&cell, " | … and %d more", len(list)-i)
			break
		}
		cell.WriteString(s)
	}
	return cell.String()
}

var listEscapes = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

// tableField returns a text as a field of <name>.codebook.csv. It is quoted where CSV or a
// spreadsheet needs quotes, and written so that no spreadsheet takes it for a formula.
func tableField(s string) string {
	s = load.ForSheets(s)
	if strings.ContainsAny(s, ",;\t\"\r\n") {
		s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// The beginnings of the two codebook files, by which ownFile knows those that formetl wrote.
const (
	bookSchemaHead = "{\n  \"version\": 1,\n  \"pipeline\": \""
	bookTableHead  = "\uFEFFcolumn,type,from,label,"
)

// writeCodebook writes a codebook to its place at a destination: the table, then the
// schema. Where the output keeps parts of earlier runs (adds), the choices that
// the codebook before lists are kept too. A file there that formetl did not write
// is left as it is, with an error.
func writeCodebook(ctx context.Context, dest load.Store, place definition.CodebookPlace, b codebook, adds bool) error {
	paths := place.Paths()
	before, err := ownFile(ctx, dest, place.Schema(), paths[0], bookSchemaHead)
	if err != nil {
		return err
	}
	if _, err := ownFile(ctx, dest, place.Table(), paths[1], bookTableHead); err != nil {
		return err
	}
	var earlier codebook
	if adds && json.Unmarshal(before, &earlier) == nil { // a codebook that was cut short is ignored
		b.remember(&earlier)
	}
	data, err := b.encode()
	if err != nil {
		return err
	}
	// The schema is written last, because the next run reads it.
	if err := dest.Put(ctx, place.Table(), b.table(), load.AnyVersion); err != nil {
		return err
	}
	return dest.Put(ctx, place.Schema(), data, load.AnyVersion)
}

// Choices returns the choices that the codebook beside an output lists, by the source of their
// column. There are none where a run has left no codebook of the form.
func (j *Job) Choices(ctx context.Context, out definition.Output) (map[schemas.Source][]string, error) {
	at, err := Locate(j.Def, out, j.Form, j.RunID)
	if err != nil {
		return nil, err
	}
	place, ok := definition.CodebookPlaceOf(out, at.Path, j.BuiltIn.Formats)
	if !ok {
		return nil, nil
	}
	dest, err := j.BuiltIn.Open(ctx, place.Root, out)
	if err != nil {
		return nil, err
	}
	data, _, err := dest.Get(ctx, place.Schema())
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		return nil, fmt.Errorf("the codebook of an earlier run cannot be read: %w", err)
	}
	var b codebook
	if err != nil || json.Unmarshal(data, &b) != nil || b.Form != j.Form {
		return nil, nil //nolint:nilerr // none, one that was cut short, or another form's
	}
	all := map[schemas.Source][]string{}
	for _, c := range b.Columns {
		if from, err := schemas.ParseSource(c.From); err == nil {
			for _, choice := range c.Choices {
				all[from] = append(all[from], choice.Value)
			}
		}
	}
	return all, nil
}

// ownFile reads a file of an earlier codebook, nil if there is none. A file that does not
// begin with head, as formetl writes it, and was not cut short within head gives a
// *definition.Fault with code 73.
func ownFile(ctx context.Context, dest load.Store, name, path, head string) ([]byte, error) {
	data, _, err := dest.Get(ctx, name)
	switch {
	case errors.Is(err, load.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the codebook of an earlier run cannot be read: %w", err)
	case len(bytes.TrimSpace(data)) > 0 && !bytes.HasPrefix(data, []byte(head)) && !strings.HasPrefix(head, string(bytes.TrimSpace(data))):
		return nil, &definition.Fault{
			Code: 73, Text: path + " already exists, and formetl did not write it, or it is damaged; it was not changed, and no codebook was written",
			Cure: "remove or rename that file, or turn the codebook off (codebook: false in the output; for an export, leave out --codebook)",
		}
	}
	return data, nil
}
