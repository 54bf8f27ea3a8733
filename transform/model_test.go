package transform

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// model is the contract for strings and lists of strings, written down
// plainly: every value of a field in order, then the rules for none, one,
// several and empty ones. It shares nothing with the Flattener but the page.
type model struct {
	schema  *schemas.Schema
	joined  map[string]int64
	rejects int
}

// values returns a result's values of one source, and whether it has the
// field at all.
func values(p *page.Page, r int, from schemas.Source) (out []string, has bool) {
	for _, c := range p.Cells(r) {
		x := p.Fields[c.Field]
		if x.Kind.String()+":"+x.ID != from.String() {
			continue
		}
		has = true
		for i := range int(c.Values) {
			out = append(out, string(p.Value(c, i)))
		}
	}
	return out, has
}

// cell shows a column's value of a result as helpers' cell does; ok is false
// where the result is to be rejected.
func (m *model) cell(p *page.Page, r int, c schemas.Column) (text string, ok bool) {
	got, has := values(p, r, c.From)
	keep := m.schema.Empty != schemas.EmptyAsNull
	show := func(v string) string {
		if v == "" && !keep {
			return "∅"
		}
		return fmt.Sprintf("%q", v)
	}
	none := len(got) == 0 || len(got) == 1 && got[0] == ""
	switch {
	case c.From.Kind == schemas.FromResultID:
		return fmt.Sprint(p.ID(r)), true
	case !has:
		return "∅", true
	case c.Type.Kind == schemas.List && none && keep:
		return "[]", true
	case c.Type.Kind == schemas.List && none, len(got) == 0:
		return "∅", true
	case c.Type.Kind == schemas.List:
		shown := make([]string, len(got))
		for i, v := range got {
			shown[i] = show(v)
		}
		return "[" + strings.Join(shown, " ") + "]", true
	case len(got) == 1:
		return show(got[0]), true
	case c.Inferred:
		m.joined[c.Name]++
		for i, v := range got {
			got[i] = strings.ReplaceAll(strings.ReplaceAll(v, `\`, `\\`), "|", `\|`)
		}
		return fmt.Sprintf("%q", strings.Join(got, "|")), true
	case c.OnError == schemas.OnErrorSetNull:
		return "∅", true
	}
	return "", false
}

func (m *model) rows(pages []*page.Page, columns []schemas.Column) (out []string) {
	for _, p := range pages {
		for r := range p.Len() {
			cells, joined, whole := make([]string, len(columns)), m.joined, true
			m.joined = map[string]int64{}
			for i, c := range columns {
				text, ok := m.cell(p, r, c)
				ok = ok && (text != "∅" || !c.Required || c.Inferred)
				cells[i], whole = text, whole && ok
			}
			if !whole { // nothing of a rejected result counts
				m.rejects++
				m.joined = joined
				continue
			}
			m.joined = sum(joined, m.joined)
			out = append(out, strings.Join(cells, " · "))
		}
	}
	return out
}

// TestAgainstModel flattens random results by random schemas of strings and
// lists and compares rows, dead letters and drift with the model.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 23))
		pages := randomPages(t, r)
		s := schema(t, "id result_id int64")
		for i := range 6 {
			line := fmt.Sprintf("c%d %s:%d %s %s", i, []string{"meta", "item"}[r.IntN(2)], i,
				[]string{"string", "string", "list<string>"}[r.IntN(3)], []string{"reject", "set_null"}[r.IntN(2)])
			c := col(t, line)
			c.Inferred = r.IntN(2) == 0
			c.Required = c.OnError == schemas.OnErrorReject && r.IntN(5) == 0
			s.Columns = append(s.Columns, c)
		}
		s.Unknown = schemas.UnknownIgnore
		s.Empty = []schemas.Empty{schemas.EmptyKeep, schemas.EmptyAsNull}[r.IntN(2)]

		m := &model{schema: s, joined: map[string]int64{}}
		want := m.rows(pages, s.Columns)
		got := start(t, s, func(o *Options) { o.BatchRows = 1 + r.IntN(9) }).feed(t, pages...)
		if !slices.Equal(got.rows, want) {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, strings.Join(got.rows, "\n"), strings.Join(want, "\n"))
		}
		stats := got.Stats()
		if len(got.rejects) != m.rejects || int(stats.Rejected) != m.rejects {
			t.Errorf("seed %d: %d rejects, want %d", seed, len(got.rejects), m.rejects)
		}
		for name, n := range m.joined {
			if stats.Joined[name] != n {
				t.Errorf("seed %d: %s joined %d times, want %d", seed, name, stats.Joined[name], n)
			}
		}
	}
}
