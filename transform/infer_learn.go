package transform

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// Learner learns from a sample of pages which columns a form has and which
// types fit them. Its schema is for a file that people edit, while Infer makes
// the schema of a run without one. A Learner chooses another type than string
// if every value of the sample fits and is printed back as it was read. Only
// three things may differ: the form of timestamps, zeros at the end of
// decimals, and empty answers, which become null.
//
// A Learner keeps no page. It is not safe for concurrent use.
type Learner struct {
	sample   sample
	headings []page.Heading
}

// Guess is what a sample suggests for a column. Its texts never hold a value.
type Guess struct {
	Type    schemas.Type
	Formats []string // formats of times in another form than the service's own
	Why     string   // why the type was chosen
	// Personal says what personal data the values most likely are and how that
	// was recognised, "" for none. A human has to confirm it.
	Personal string

	Answered bool // some result has the field, even if without a value
	Results  int  // results in the sample
	Filled   int  // results with a value
	Empty    int  // empty values of the field
}

// NewLearner returns a Learner that reads wall-clock times in the zone.
func NewLearner(zone *time.Location) *Learner {
	return &Learner{sample: sample{clock: &clock{zone: zone}}}
}

// Add learns from a page. Give pages in the order of the range, and no result
// twice. The caller keeps the page; it is not needed after the call.
func (l *Learner) Add(p *page.Page) {
	for _, h := range p.Headings {
		l.headings = append(l.headings, page.Heading{ID: strings.Clone(h.ID), Label: strings.Clone(h.Label), Kind: h.Kind})
	}
	l.sample.page(p)
}

// Schema returns the schema of the sample, and a Guess for each column. form
// and naming are as in Infer. The columns count as declared, so they are not
// marked Inferred. Call Schema once, after the last page.
func (l *Learner) Schema(form string, naming schemas.Naming) (*schemas.Schema, []Guess) {
	out := l.Inferred(form, naming)
	guesses := make([]Guess, len(out.Columns))
	for i, c := range out.Columns {
		guesses[i] = l.sample.guess(c)
		out.Columns[i].Type, out.Columns[i].Reading.Formats, out.Columns[i].Inferred = guesses[i].Type, guesses[i].Formats, false
		if out.Apart(c) { // API v1 does not tell what was typed, so a run needs them
			out.Columns[i].Choices = slices.Sorted(maps.Keys(l.sample.at[c.From].seen.Choices))
		}
	}
	return out, guesses
}

// Inferred returns the schema that Infer makes of the same pages. Call it in place of Schema.
func (l *Learner) Inferred(form string, naming schemas.Naming) *schemas.Schema {
	l.sample.addHeadings(l.headings)
	return l.sample.schema(form, naming)
}

// guess chooses the type of a column and says why.
func (s *sample) guess(c schemas.Column) Guess {
	if c.From.Kind == schemas.FromResultID {
		return Guess{Type: c.Type, Why: "the result's id", Results: s.results, Filled: s.results}
	}
	f := s.at[c.From]
	text, itemType := wordsOf(c.Label), wordsOf(f.itemType)
	if c.From.Kind == schemas.FromMeta {
		text = wordsOf(c.From.ID, c.Label)
	}
	g := Guess{Answered: f.answers, Results: s.results, Filled: f.filled, Empty: f.empty}
	if c.From.Kind == schemas.FromMeta && c.Type.Kind == schemas.Timestamp {
		g.Type, g.Why, g.Formats = f.shapes.wallTimes()
	} else {
		g.Type, g.Why = f.shapes.fit(identifier(text, itemType))
	}
	switch {
	case c.From.Kind == schemas.FromOther:
		g.Type, g.Why = c.Type, "text that people typed next to the choices; by API v1 whatever is not in `choices` counts as typed, and the choice beside it, such as Other, is never chosen"
	case f.several > 0:
		g.Type, g.Why = schemas.ListOf(g.Type), fmt.Sprintf("several values in %d of %d results; %s", f.several, f.filled, g.Why)
	}
	g.Personal = personalData(c.From, text, itemType)
	return g
}
