package transform

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// learnable are values by the forms that fields of a sample have, with some
// that spoil a form.
func learnable() [][]string {
	return [][]string{
		{"0", "1", "-7", "42", "999999999", "-999999999"},
		{"10115", "20095", "80331"},
		{"1.50", "0.25", "-3.00", "12345678.90"},
		{"1.5", "0.25", "3", "-0.125"},
		{"true", "false"},
		{"2026-01-01", "0001-01-01", "9999-12-31", "2024-02-29"},
		{"2026-01-01 10:00:00", "2026-11-01 01:30:00", "1901-01-01 00:00:00"},
		{"2026-03-08 02:30:00", "007", "-0", "1.10", "TRUE", "2025-02-30", " 1", "1 ", "+1", "1e5", "x", "", "1,5", "-0.0", "12345678901", "\u00a05", "٣"},
	}
}

// sameAgain flattens a sample with the schema that was learned from it, and
// holds that nothing is rejected or lost and that every value is printed as it
// was read.
func sameAgain(t testing.TB, z *time.Location, pages ...*page.Page) *schemas.Schema {
	t.Helper()
	l := NewLearner(z)
	for _, p := range pages {
		l.Add(p)
	}
	s, _ := l.Schema("x", schemas.ByLabel)
	columns := make(map[string][][]string) // by source, row for row
	r := start(t, s, func(o *Options) {
		o.Zone = z
		o.Emit = func(b arrow.RecordBatch) error {
			for i, f := range b.Schema().Fields() {
				from, _ := f.Metadata.GetValue(schemas.MetaFrom)
				for row := range int(b.NumRows()) {
					columns[from] = append(columns[from], shown(b.Column(i), row, z))
				}
			}
			return nil
		}
	}).feed(t, pages...)
	if stats := r.Stats(); stats.Rejected != 0 || len(stats.Nulled) != 0 || len(stats.Added) != 0 || len(stats.Shifted) != 0 || len(stats.Joined) != 0 {
		t.Fatalf("stats %+v with %v", stats, spell(s.Columns))
	}
	row := 0
	for _, p := range pages {
		for i := range p.Len() {
			read := map[string][]string{}
			for _, c := range p.Cells(i) {
				from := source(p.Fields[c.Field]).String()
				for k := range int(c.Values) {
					if v := p.Value(c, k); len(v) > 0 {
						read[from] = append(read[from], string(v))
					}
				}
			}
			for _, c := range s.Columns[1:] {
				from := c.From.String()
				if !slices.EqualFunc(columns[from][row], read[from], func(a, b string) bool { return equalIn(c.Type, a, b) }) {
					t.Errorf("row %d of %s %s: %q was read as %q", row, from, c.Type, read[from], columns[from][row])
				}
			}
			row++
		}
	}
	return s
}

// equalIn compares texts as the type needs: decimals by their number.
func equalIn(t schemas.Type, a, b string) bool {
	if t.Elem != nil {
		t = *t.Elem
	}
	if t.Kind != schemas.Decimal {
		return a == b
	}
	x, ok1 := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok1 && ok2 && x.Cmp(y) == 0
}

// shown are the texts of a cell's values, as CSV shows them but for the form
// of timestamps. Empty ones are left out.
func shown(a arrow.Array, i int, z *time.Location) []string {
	if l, ok := a.(*array.List); ok {
		var all []string
		from, to := l.ValueOffsets(i)
		for k := from; k < to && !l.IsNull(i); k++ {
			all = append(all, shown(l.ListValues(), int(k), z)...)
		}
		return all
	}
	if a.IsNull(i) {
		return nil
	}
	text := a.ValueStr(i)
	if times, ok := a.(*array.Timestamp); ok {
		text = times.Value(i).ToTime(arrow.Microsecond).In(z).Format("2006-01-02 15:04:05")
	}
	if text == "" {
		return nil
	}
	return []string{text}
}

// FuzzLearnedRoundTrip: whatever values a field has, a line each, the schema that is
// learned from them takes every one, and loses none.
func FuzzLearnedRoundTrip(f *testing.F) {
	for _, form := range learnable() {
		f.Add("Age", strings.Join(form, "\n"), false)
		f.Add("Ticks", strings.Join(form, "\n")+"\n"+strings.Join(form, "|"), true)
	}
	f.Fuzz(func(t *testing.T, label, lines string, five bool) {
		values := strings.Split(lines, "\n")
		if len(values) > 50 || strings.ContainsAny(label, "=:") {
			return
		}
		if five {
			values = slices.Concat(values, values, values, values, values)
		}
		a := new(answer)
		for i, v := range values {
			a.result(int64(i+1), "item:1="+v)
		}
		sameAgain(t, time.UTC, a.page(t, "1="+label))
	})
}
