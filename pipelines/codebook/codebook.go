package codebook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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
