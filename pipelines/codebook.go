package pipelines

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// codebookVersion is that of the format of <name>.schema.json.
const codebookVersion = 1

// codebook tells what is needed to read the data of an output. It holds no
// time and no run: equal results give equal bytes.
type codebook struct {
	Version  int              `json:"version"`
	Pipeline string           `json:"pipeline"`
	Form     string           `json:"form"`
	Account  string           `json:"account"`
	Timezone string           `json:"timezone"`
	Rows     int64            `json:"rows"` // that the run wrote, which the counts are about
	Columns  []codebookColumn `json:"columns"`
}

// codebookColumn is a column of the data. Keys that schema files know are
// theirs.
type codebookColumn struct {
	Name         string   `json:"name"`
	Type         string   `json:"type"`
	From         string   `json:"from"`
	Label        string   `json:"label"`
	LabelsBefore []string `json:"labels_before"`
	ItemType     string   `json:"item_type,omitempty"`
	Index        int      `json:"index,omitempty"`
	PII          string   `json:"pii,omitempty"`
	ListAs       string   `json:"list_as,omitempty"`
	Explode      bool     `json:"explode,omitempty"` // the child output has a row for each element
	// Choices are sorted; of one that was seen in an earlier run alone, or is
	// declared and was never seen, the count is 0.
	Choices     []codebookChoice `json:"choices,omitempty"`
	ManyChoices bool             `json:"many_choices,omitempty"` // more or longer values than are listed
	Rows        int64            `json:"rows"`
	Nulls       int64            `json:"nulls"`
	Nullable    bool             `json:"nullable"`
	OnError     string           `json:"on_error"`
	Format      []string         `json:"format,omitempty"`
	True        []string         `json:"true_values,omitempty"`
	False       []string         `json:"false_values,omitempty"`
	Decimal     string           `json:"decimal_separator,omitempty"`
	Group       string           `json:"group_separator,omitempty"`
}

// codebookChoice is a value of a list, or of an item that offers choices.
type codebookChoice struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// codebookFacts is what the codebook of an output that was committed tells of.
type codebookFacts struct {
	columns []load.Column   // of its manifest
	stats   transform.Stats // of the run
	adds    bool            // parts of earlier runs stay
}

// facts gives itself: outputs that have a codebook embed it.
func (c *codebookFacts) facts() *codebookFacts { return c }

// codebookOf makes the codebook of an output.
func (f *formRun) codebookOf(facts *codebookFacts) codebook {
	rows := facts.stats.Rows
	b := codebook{
		Version: codebookVersion, Pipeline: f.def.Name, Form: f.form,
		Account: f.def.Source.Account, Timezone: f.def.Source.Zone.String(), Rows: rows,
		Columns: make([]codebookColumn, 0, len(facts.columns)),
	}
	s := cmp.Or(f.schema, f.def.Schema)
	var places map[schemas.Source]int
	if s != nil {
		places = s.Places()
	}
	declared := func(from schemas.Source) schemas.Column { // one that was inferred where the schema has none
		if at, ok := places[from]; ok {
			return s.Columns[at]
		}
		return schemas.Column{From: from, Inferred: true}
	}
	for _, m := range facts.columns {
		c := codebookColumn{
			Name: m.Name, Type: m.Type, From: m.From, Label: m.Label, LabelsBefore: append([]string{}, m.LabelsBefore...),
			ItemType: m.ItemType, Index: m.Index, PII: m.PII, Rows: rows, Nulls: rows,
		}
		from, err := schemas.ParseSource(m.From)
		if err == nil {
			c.rules(declared(from), strings.HasPrefix(m.Type, "list<"))
			seen := facts.stats.Seen[from]
			c.Nulls -= seen.Filled
			c.seen(seen, m.Choices)
		}
		b.Columns = append(b.Columns, c)
	}
	return b
}

// rules fills in what the schema says of the column.
func (c *codebookColumn) rules(s schemas.Column, list bool) {
	c.Nullable = !s.Required && s.From.Kind != schemas.FromResultID
	c.OnError = string(cmp.Or(s.OnError, schemas.OnErrorReject))
	if s.Inferred {
		c.OnError = string(schemas.OnErrorSetNull)
	}
	if list {
		c.ListAs, c.Explode = string(cmp.Or(s.ListAs, schemas.ListJoined)), s.Explode
	}
	r := s.Reading
	c.Format, c.True, c.False, c.Decimal, c.Group = r.Formats, r.True, r.False, r.Decimal, r.Group
}

// seen fills in the choices: those that the run saw, and those that the column
// is declared with. A column with a rule for personal data has none.
func (c *codebookColumn) seen(s transform.Seen, declared []string) {
	if c.PII != "" {
		return
	}
	counts := maps.Clone(s.Choices)
	if counts == nil {
		counts = map[string]int64{}
	}
	for _, value := range declared {
		counts[value] += 0
	}
	c.choose(counts, s.Many)
}

// choose lists choices, or none where they are too many to be choices.
func (c *codebookColumn) choose(counts map[string]int64, many bool) {
	c.Choices, c.ManyChoices = nil, many || len(counts) > transform.MostChoices
	if c.ManyChoices {
		return
	}
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		c.Choices = append(c.Choices, codebookChoice{value, counts[value]})
	}
}

// remember adds the choices that an earlier codebook of the same results lists
// and this run did not see.
func (b *codebook) remember(earlier *codebook) {
	if earlier.Pipeline != b.Pipeline || earlier.Form != b.Form || earlier.Account != b.Account {
		return
	}
	known := make(map[string]codebookColumn, len(earlier.Columns))
	for _, e := range slices.Backward(earlier.Columns) { // of several the first
		known[e.From] = e
	}
	for i := range b.Columns {
		c := &b.Columns[i]
		was, ok := known[c.From]
		if !ok || c.PII != "" || was.PII != "" { // whose values were other ones
			continue
		}
		counts := map[string]int64{}
		for _, choice := range was.Choices {
			counts[choice.Value] = 0
		}
		for _, choice := range c.Choices {
			counts[choice.Value] = choice.Count
		}
		c.choose(counts, c.ManyChoices || was.ManyChoices)
	}
}

// encode gives the bytes of <name>.schema.json.
func (b *codebook) encode() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // labels are for people
	enc.SetIndent("", "  ")
	if err := enc.Encode(b); err != nil {
		return nil, fmt.Errorf("cannot encode the codebook of form %s: %w", b.Form, err)
	}
	return out.Bytes(), nil
}

// decodeCodebook reads what encode wrote. Keys that it does not know are
// skipped.
func decodeCodebook(data []byte) (*codebook, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	var b codebook
	if err := dec.Decode(&b); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its end")
	}
	if b.Version != codebookVersion {
		return nil, fmt.Errorf("its version is %d, and this program knows %d", b.Version, codebookVersion)
	}
	for _, c := range b.Columns {
		if len(c.Choices) > transform.MostChoices || strings.TrimSpace(c.From) == "" {
			return nil, fmt.Errorf("its column %s is none of ours", strictyaml.Quote(c.Name))
		}
	}
	return &b, nil
}
