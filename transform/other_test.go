package transform

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// typedPage is a page as API v2 gives it: a result for each answer to item 1, with "|" between its
// values, and "label~text" for a text that was typed. "-" is a result without the item.
func typedPage(t *testing.T, answers ...string) *page.Page {
	t.Helper()
	var b page.Builder
	b.Begin()
	b.Page.Tells = true
	span := func(text string) page.Span {
		start := len(b.Text)
		b.Text = append(b.Text, text...)
		return page.Span{Start: int32(start), End: int32(len(b.Text))}
	}
	for i, answer := range answers {
		b.Result(int64(i + 1))
		if answer == "-" {
			continue
		}
		field, _ := b.Field(page.KindItem, []byte("1"))
		b.Cell(field)
		for v := range strings.SplitSeq(answer, "|") {
			label, text, typed := strings.Cut(v, "~")
			if !typed {
				b.Value(span(label))
				continue
			}
			b.Value(span(text))
			b.Label(span(label))
		}
	}
	p := b.Finish()
	t.Cleanup(p.Release)
	return p
}

// TestTypedTexts: where texts stand that people typed beside choices. told are answers as API v2
// gives them; of the others API v1 tells the texts alone.
func TestTypedTexts(t *testing.T) {
	told := []string{"red", "red|Other~teal", "Other~a|Other~b", "-", ""}
	alone := []string{"item:1=red", "item:1=red|teal", "item:1=a|b", "meta:m=", "item:1="}
	for name, tt := range map[string]struct {
		schema []string
		change func(s *schemas.Schema)
		told   bool
		names  string
		want   string
	}{
		"told": {
			schema: []string{"c item:1 list<string>"}, told: true, names: "c c_other",
			want: `["red"] · ∅, ["red" "Other"] · "teal", ["Other" "Other"] · "a|b", ∅ · ∅, [] · ∅`,
		},
		"told and declared": {
			schema: []string{"t other:1 string", "c item:1 list<string>"}, told: true, names: "t c",
			want:   `∅ · ["red"], "teal" · ["red" "Other"], "a|b" · ["Other" "Other"], ∅ · ∅, ∅ · []`,
			change: func(s *schemas.Schema) { s.Columns[1].Choices = []string{"blue"} }, // which API v2 does not need
		},
		"told, of an item that is late": {
			schema: []string{"id result_id int64"}, told: true, names: "id item_1 item_1_other",
			want: `1 · "red" · ∅, 2 · "red|Other" · "teal", 3 · "Other|Other" · "a|b", 4 · ∅ · ∅, 5 · "" · ∅`,
		},
		"told and ignored": {
			schema: []string{"c item:1 list<string>"}, told: true, names: "c",
			want:   `["red"], ["red" "Other"], ["Other" "Other"], ∅, []`,
			change: func(s *schemas.Schema) { s.Unknown = schemas.UnknownIgnore },
		},
		"told and personal": {
			schema: []string{"c item:1 list<string>"}, told: true, names: "c c_other",
			want:   `["re"] · ∅, ["re" "Ot"] · "te", ["Ot" "Ot"] · "a|b", ∅ · ∅, [] · ∅`,
			change: func(s *schemas.Schema) { s.Columns[0].PII = schemas.PII{Kind: schemas.PIITruncate, Keep: 2} },
		},
		"told and dropped": {
			schema: []string{"id result_id int64", "c item:1 list<string>"}, told: true, names: "id",
			want:   `1, 2, 3, 4, 5`,
			change: func(s *schemas.Schema) { s.Unknown, s.Columns[1].PII.Kind = schemas.UnknownFail, schemas.PIIDrop },
		},
		"told and inline": {
			schema: []string{"c item:1 list<string>"}, told: true, names: "c",
			want:   `["red"], ["red" "teal"], ["a" "b"], ∅, []`,
			change: func(s *schemas.Schema) { s.Unknown, s.Columns[0].Other = schemas.UnknownFail, schemas.OtherInline },
		},
		"alone": {
			schema: []string{"c item:1 list<string>", "m meta:m string"}, names: "c m",
			want: `["red"] · ∅, ["red" "teal"] · ∅, ["a" "b"] · ∅, ∅ · "", [] · ∅`,
		},
		"alone, with choices": {
			schema: []string{"c item:1 list<string>", "t other:1 string", "m meta:m string"}, names: "c t m",
			want:   `["red"] · ∅ · ∅, ["red"] · "teal" · ∅, [] · "a|b" · ∅, ∅ · ∅ · "", [] · ∅ · ∅`,
			change: func(s *schemas.Schema) { s.Columns[0].Choices = []string{"red"} },
		},
		"alone, one choice": {
			schema: []string{"c item:1 string set_null", "m meta:m string"}, names: "c m c_other",
			want: `"red" · ∅ · ∅, "red" · ∅ · "teal", ∅ · ∅ · "a|b", ∅ · "" · ∅, "" · ∅ · ∅`,
			change: func(s *schemas.Schema) {
				s.Columns[0].Choices, s.Columns[0].Other = []string{"red"}, schemas.OtherColumn
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := schema(t, tt.schema...)
			if tt.change != nil {
				tt.change(s)
			}
			p := typedPage(t, told...)
			if !tt.told {
				a := new(answer)
				for i, cells := range alone {
					a.result(int64(i+1), cells)
				}
				p = a.page(t)
			}
			r := start(t, s).feed(t, p)
			r.wantRows(t, strings.Split(tt.want, ", ")...)
			if got := columnNames(r.Columns()); got != tt.names || len(r.Stats().Joined) > 0 && name != "told, of an item that is late" {
				t.Errorf("columns %q, %+v", got, r.Stats())
			}
		})
	}
	s := schema(t, "c item:1 list<string>")
	s.Unknown = schemas.UnknownFail
	var unknown *UnknownFieldError
	if err := start(t, s).Append(typedPage(t, told...)); !errors.As(err, &unknown) || unknown.ResultID != 2 || !strings.Contains(err.Error(), `{name: "c_other", from: "other:1", type: string}`) {
		t.Errorf("unknown: fail: %v", err)
	}
}

// TestManyTypedTexts are no choices of a list with list_as: columns.
func TestManyTypedTexts(t *testing.T) {
	s := schema(t, "c item:1 list<string>")
	s.Columns[0].ListAs = schemas.ListColumns
	answers := make([]string, MostChoices+100)
	for i := range answers {
		answers[i] = "red|Other~" + time.Duration(i).String()
	}
	stats := start(t, s).feed(t, typedPage(t, answers...)).Stats()
	if seen := stats.Seen[s.Columns[0].From]; seen.Many || len(seen.Choices) != 2 {
		t.Errorf("choices: %+v", seen)
	}
}

// TestInferTyped: a schema has the typed texts behind their item, if the sample has some.
func TestInferTyped(t *testing.T) {
	p := typedPage(t, "red|Other~7", "Other~8")
	p.Headings = []page.Heading{{ID: "1", Label: "Colours", Kind: page.KindItem}, {ID: "2", Label: "Colours other", Kind: page.KindItem}}
	wantColumns(t, Infer("f", []*page.Page{p}, schemas.ByLabel),
		"result_id result_id int64", "colours item:1 list<string>", "colours_other_2 other:1 string", "colours_other item:2 string")
	l := NewLearner(time.UTC)
	l.Add(p)
	got, guesses := l.Schema("f", schemas.ByID)
	if c := got.Columns[2]; c.Name != "item_1_other" || c.Type.Kind != schemas.String || c.Label != "Colours (other)" || !strings.HasPrefix(guesses[2].Why, "text that people typed next to the choices;") || !slices.Equal(got.Columns[1].Choices, []string{"Other", "red"}) {
		t.Errorf("%+v, %+v", c, guesses[2])
	}
}
