package codebook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// version is the version of the format of <name>.schema.json.
const version = 1

// Book is a codebook: what is needed to read the data of an output. It holds
// neither a time nor a run's id, so that equal results give equal bytes.
type Book struct {
	Version  int      `json:"version"`
	Pipeline string   `json:"pipeline"`
	Form     string   `json:"form"`
	Account  string   `json:"account"`
	Timezone string   `json:"timezone"`
	Rows     int64    `json:"rows"` // that the run wrote; the counts of the columns refer to them
	Columns  []Column `json:"columns"`
}

// Column is a column of the data. Keys that schema files have too mean the same
// here.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	From string `json:"from"`
	Item
	PII     string `json:"pii,omitempty"`
	ListAs  string `json:"list_as,omitempty"`
	Explode bool   `json:"explode,omitempty"` // the child output has a row for each element
	// Choices are sorted. The count is 0 for a choice that only earlier runs saw, or
	// that the schema declares and no run saw.
	Choices     []Choice `json:"choices,omitempty"`
	ManyChoices bool     `json:"many_choices,omitempty"` // more or longer values than are listed
	Rows        int64    `json:"rows"`
	Nulls       int64    `json:"nulls"`
	Nullable    bool     `json:"nullable"`
	OnError     string   `json:"on_error"`
	Reading
}

// Item is what is known of a column on the form.
type Item struct {
	Label    string `json:"label"`
	ItemType string `json:"item_type,omitempty"`
	Index    int    `json:"index,omitempty"` // the item's place on the form, from 1; 0: not known
}

// Reading is how values are read, as in a schema file.
type Reading struct {
	Format  []string `json:"format,omitempty"`
	True    []string `json:"true_values,omitempty"`
	False   []string `json:"false_values,omitempty"`
	Decimal string   `json:"decimal_separator,omitempty"`
	Group   string   `json:"group_separator,omitempty"`
}

// Choice is a value of a list, or of an item that offers choices.
type Choice struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// Facts are what the codebook of a committed output tells of.
type Facts struct {
	Columns []load.Column   // of the output's manifest; nil: there is nothing to tell
	Stats   transform.Stats // of the results that the run wrote there
	Adds    bool            // parts of earlier runs stay in the output
}

// New makes the codebook of an output. schema is the run's, nil where all columns
// were inferred.
func New(def *definition.Definition, form string, schema *schemas.Schema, facts Facts) Book {
	rows := facts.Stats.Rows
	b := Book{
		Version: version, Pipeline: def.Name, Form: form,
		Account: def.Source.Account, Timezone: def.Source.Zone.String(), Rows: rows,
		Columns: make([]Column, 0, len(facts.Columns)),
	}
	var places map[schemas.Source]int
	if schema != nil {
		places = schema.Places()
	}
	declared := func(from schemas.Source) schemas.Column { // a column that the schema does not have was inferred
		if at, ok := places[from]; ok {
			return schema.Columns[at]
		}
		return schemas.Column{From: from, Inferred: true}
	}
	for _, m := range facts.Columns {
		c := Column{
			Name: m.Name, Type: m.Type, From: m.From, PII: m.PII, Rows: rows, Nulls: rows,
			Item: Item{Label: m.Label, ItemType: m.ItemType, Index: m.Index},
		}
		from, err := schemas.ParseSource(m.From)
		if err == nil {
			c.rules(declared(from), strings.HasPrefix(m.Type, "list<"))
			seen := facts.Stats.Seen[from]
			c.Nulls -= seen.Filled
			c.choose(seen.Choices, m.Choices, seen.Many)
		}
		b.Columns = append(b.Columns, c)
	}
	return b
}

// rules fills in what the schema says of the column.
func (c *Column) rules(s schemas.Column, list bool) {
	c.Nullable = !s.Required && s.From.Kind != schemas.FromResultID
	c.OnError = string(s.ErrorRule())
	if list {
		c.ListAs, c.Explode = string(cmp.Or(s.ListAs, schemas.ListJoined)), s.Explode
	}
	r := s.Reading
	c.Reading = Reading{Format: r.Formats, True: r.True, False: r.False, Decimal: r.Decimal, Group: r.Group}
}

// choose lists the choices: those that the run saw, with their counts, and others. It
// lists none where there are too many of them or the column has a rule for personal
// data.
func (c *Column) choose(seen map[string]int64, others []string, many bool) {
	if c.PII != "" {
		return
	}
	values := slices.Concat(slices.Collect(maps.Keys(seen)), others)
	slices.Sort(values)
	values = slices.Compact(values)
	c.Choices, c.ManyChoices = nil, many || len(values) > transform.MostChoices
	if c.ManyChoices {
		return
	}
	for _, value := range values {
		c.Choices = append(c.Choices, Choice{value, seen[value]})
	}
}

// remember adds the choices of an earlier codebook of the same results that this
// run did not see.
func (b *Book) remember(earlier *Book) {
	if earlier.Pipeline != b.Pipeline || earlier.Form != b.Form || earlier.Account != b.Account {
		return
	}
	known := make(map[string]Column, len(earlier.Columns))
	for _, e := range slices.Backward(earlier.Columns) { // of several with one source the first one counts
		known[e.From] = e
	}
	for i := range b.Columns {
		c := &b.Columns[i]
		was, ok := known[c.From]
		if !ok || was.PII != "" { // the values under a pii rule are not those without it
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

// encode gives the bytes of <name>.schema.json.
func (b *Book) encode() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // labels are for people
	enc.SetIndent("", "  ")
	if err := enc.Encode(b); err != nil {
		return nil, fmt.Errorf("cannot encode the codebook of form %s: %w", b.Form, err)
	}
	return out.Bytes(), nil
}

// mostCellText is how much text a cell of a spreadsheet holds, in UTF-16 units. Room
// is left for the note that something was left out.
const mostCellText = 32_767 - 64

// table gives the bytes of <name>.codebook.csv: a row for each column. People open
// it in a spreadsheet, so it is written as the CSV profile excel is.
func (b *Book) table() []byte {
	var out bytes.Buffer
	out.WriteString("\uFEFF")
	line := func(fields ...string) {
		for i, field := range fields {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(tableField(field))
		}
		out.WriteString("\r\n")
	}
	line("column", "type", "from", "label", "item_type", "choices", "rows", "nulls", "pii")
	for _, c := range b.Columns {
		line(c.Name, c.Type, c.From, c.Label, c.ItemType, c.choicesCell(),
			strconv.FormatInt(c.Rows, 10), strconv.FormatInt(c.Nulls, 10), c.PII)
	}
	return out.Bytes()
}

// choicesCell lists the choices with their counts.
func (c *Column) choicesCell() string {
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

// tableField is a field of the table. It is quoted where CSV or a spreadsheet needs
// that, and written so that no spreadsheet takes it for a formula.
func tableField(s string) string {
	s = load.ForSheets(s)
	if strings.ContainsAny(s, ",;\t\"\r\n") {
		s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// ForeignFileError is a file that lies where a codebook would be written and that
// formetl did not write. It is left as it is.
type ForeignFileError struct{ Path string }

// Error names the file and what to do.
func (e *ForeignFileError) Error() string {
	return e.Path + " is there, and is not a codebook that formetl wrote; it was left as it is, and no codebook was written"
}

// Hint is what the log says beside a ForeignFileError.
const Hint = "give the output or the file another name, or turn the codebook off: codebook: false in the output; of an export, leave --codebook out"

// How the two files begin.
const (
	schemaHead = "{\n  \"version\": 1,\n  \"pipeline\": \""
	tableHead  = "\uFEFFcolumn,type,from,label,"
)

// Write writes a codebook to its place at a destination: the table, then the
// schema. Where the output keeps parts of earlier runs (adds), the choices that
// the codebook before lists are kept too. A file there that formetl did not write
// is a *ForeignFileError.
func Write(ctx context.Context, dest load.Store, place definition.CodebookPlace, b Book, adds bool) error {
	paths := place.Paths()
	before, err := own(ctx, dest, place.Schema(), paths[0], schemaHead)
	if err != nil {
		return err
	}
	if _, err := own(ctx, dest, place.Table(), paths[1], tableHead); err != nil {
		return err
	}
	var earlier Book
	if adds && json.Unmarshal(before, &earlier) == nil { // one that was cut short has nothing to say
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

// own reads a file of an earlier codebook, nil if there is none. A file that does not
// begin as ours do is a *ForeignFileError.
func own(ctx context.Context, dest load.Store, name, path, head string) ([]byte, error) {
	data, _, err := dest.Get(ctx, name)
	switch {
	case errors.Is(err, load.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the codebook of earlier runs: %w", err)
	case len(bytes.TrimSpace(data)) > 0 && !bytes.HasPrefix(data, []byte(head)):
		return nil, &ForeignFileError{Path: path}
	}
	return data, nil
}
