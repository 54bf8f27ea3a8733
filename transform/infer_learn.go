package transform

import (
	"fmt"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// Learner learns from a sample of pages which columns a form has and which
// types fit them, for a schema file that people edit. Unlike Infer, which
// gives what a run without a schema writes, it chooses other types than string
// where every value of the sample fits and nothing is lost by it: values that
// are printed are those that were read, but for the form of timestamps, zeros
// at the end of decimals' fractions where some have none, and empty answers,
// which become null.
//
// It holds no page. A Learner is not safe for concurrent use.
type Learner struct {
	clock    clock
	sample   sample
	headings []page.Heading
	fields   map[schemas.Source]*learned
	results  int

	counts []int32 // values of the result at hand, by field of the page
	full   []bool  // whether any of them is not empty
}

// learned is what a sample tells of the values of a field.
type learned struct {
	have     int // results with the field
	filled   int // results with a value that is not empty
	empty    int // values that are empty
	several  int // results with several values
	itemType string
	shapes   shapes
}

// Guess is what a sample suggests for a column. No text of it holds a value.
type Guess struct {
	Type schemas.Type
	Why  string // why it was chosen
	// Personal says what personal data the values most likely are and by what
	// that is told, "" for none: for a human to confirm.
	Personal string

	Results int // of the sample
	Filled  int // those of them that have a value
	Empty   int // empty values
	Several int // results with several values
	Padded  int // values of digits with zeros in front, which a number loses
}

// NewLearner returns a Learner that reads wall-clock times in the zone.
func NewLearner(zone *time.Location) *Learner {
	return &Learner{
		clock: clock{zone: zone}, sample: sample{at: map[schemas.Source]int{}}, fields: map[schemas.Source]*learned{},
	}
}

// Add learns from a page. Give pages in the order of the range, and no result
// twice. The page stays the caller's and is not needed after the call.
func (l *Learner) Add(p *page.Page) {
	for _, h := range p.Headings {
		l.headings = append(l.headings, page.Heading{ID: strings.Clone(h.ID), Label: strings.Clone(h.Label), Kind: h.Kind})
	}
	l.sample.page(p)
	fields := make([]*learned, len(p.Fields))
	l.counts, l.full = make([]int32, len(p.Fields)), make([]bool, len(p.Fields))
	for r := range p.Len() {
		l.results++
		l.result(p, r, fields)
	}
}

// result learns from one result of the page.
func (l *Learner) result(p *page.Page, r int, fields []*learned) {
	cells := p.Cells(r)
	for _, c := range cells {
		f := l.field(p, c, fields)
		for i := range int(c.Values) {
			v := p.Value(c, i)
			if len(v) == 0 {
				f.empty++
				continue
			}
			l.full[c.Field] = true
			f.shapes.add(v, &l.clock)
		}
		l.counts[c.Field] += c.Values
	}
	for _, c := range cells {
		f := fields[c.Field]
		if l.counts[c.Field] < 0 {
			continue // another cell of the field
		}
		f.have++
		if l.counts[c.Field] > 1 {
			f.several++
		}
		if l.full[c.Field] {
			f.filled++
		}
		l.counts[c.Field], l.full[c.Field] = -1, false
	}
	for _, c := range cells {
		l.counts[c.Field] = 0
	}
}

// field is the entry of a cell's field.
func (l *Learner) field(p *page.Page, c page.Cell, fields []*learned) *learned {
	if f := fields[c.Field]; f != nil {
		return f
	}
	x := p.Fields[c.Field]
	from := source(x)
	f := l.fields[from]
	if f == nil {
		f = &learned{}
		l.fields[keep(from)] = f
	}
	if x.Type != "" && x.Type != f.itemType {
		f.itemType = strings.Clone(x.Type)
	}
	fields[c.Field] = f
	return f
}

// Results tells how many results the sample has so far.
func (l *Learner) Results() int { return l.results }

// Schema makes the schema of the sample, named as Infer names it, and what it
// was guessed by, a Guess for each column. The columns are declared ones: they
// are not marked Inferred.
func (l *Learner) Schema(name string, labels bool) (*schemas.Schema, []Guess) {
	s := l.sample.clone()
	s.headings(l.headings)
	out := s.schema(name, labels)
	guesses := make([]Guess, len(out.Columns))
	for i, c := range out.Columns {
		guesses[i] = l.guess(c)
		out.Columns[i].Type, out.Columns[i].Inferred = guesses[i].Type, false
	}
	return out, guesses
}

// guess judges a column.
func (l *Learner) guess(c schemas.Column) Guess {
	if c.From.Kind == schemas.FromResultID {
		return Guess{Type: c.Type, Why: "the result's id", Results: l.results, Filled: l.results}
	}
	f := l.fields[c.From]
	if f == nil {
		f = &learned{}
	}
	text, itemType := wordsOf(c.Label), wordsOf(f.itemType)
	if c.From.Kind == schemas.FromMeta {
		text = wordsOf(c.From.ID, c.Label)
	}
	g := Guess{Results: l.results, Filled: f.filled, Empty: f.empty, Several: f.several, Padded: f.shapes.numbers.padded}
	if c.From.Kind == schemas.FromMeta && c.Type.Kind == schemas.Timestamp {
		g.Type, g.Why = f.shapes.wallTimes()
	} else {
		g.Type, g.Why = f.shapes.fit(identifier(text, itemType))
	}
	if f.several > 0 {
		g.Type, g.Why = schemas.ListOf(g.Type), fmt.Sprintf("several values in %d of %d results; %s", f.several, f.filled, g.Why)
	}
	g.Personal = personalData(c.From, text, itemType, &f.shapes)
	return g
}
