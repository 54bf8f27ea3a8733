package transform

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
)

// kinds are all types, each as it is and with declared forms, with a value
// that fits, how it is shown, one that does not, and why.
func kinds() []struct {
	typ              string
	r                schemas.Reading
	fits, shown, bad string
	reason           string
} {
	return []struct {
		typ              string
		r                schemas.Reading
		fits, shown, bad string
		reason           string
	}{
		{"int64", schemas.Reading{}, "7", "7", "1.234", reasonInt},
		{"int64", schemas.Reading{}, "7", "7", "9223372036854775808", reasonIntRange},
		{"int64", schemas.Reading{Group: "."}, "1.234", "1234", "1.23", reasonSeparators},
		{"float64", schemas.Reading{}, "2.5", "2.5", "2,5", reasonFloat},
		{"float64", schemas.Reading{}, "2.5", "2.5", "1e999", reasonFloatBig},
		{"float64", schemas.Reading{Decimal: ","}, "2,5", "2.5", "2.5", reasonSeparators},
		{"bool", schemas.Reading{}, "true", "true", "yes", reasonBool},
		{"bool", schemas.Reading{True: []string{"yes"}, False: []string{"no"}}, "No", "false", "true", reasonWord},
		{"date", schemas.Reading{}, "2026-01-15", "2026-01-15", "01/15/2026", reasonDate},
		{"date", schemas.Reading{Formats: []string{"MM/DD/YYYY"}}, "01/15/2026", "2026-01-15", "2026-01-15", reasonDateForm},
		{"timestamp", schemas.Reading{}, "2026-01-15 12:00:00", "2026-01-15T12:00:00Z", "2026-01-15 12:00", reasonTimestamp},
		{"timestamp", schemas.Reading{Formats: []string{"YYYY-MM-DD HH:mm"}}, "2026-01-15 12:00", "2026-01-15T12:00:00Z", "2026-01-15 12:00:00", reasonTimeForm},
		{"decimal(4,2)", schemas.Reading{}, "1.25", "1.25", "1,25", reasonDecimal},
		{"decimal(4,2)", schemas.Reading{}, "1.25", "1.25", "1.255", reasonScale},
		{"decimal(4,2)", schemas.Reading{}, "1.25", "1.25", "100", reasonPrecision},
		{"decimal(4,2)", schemas.Reading{Decimal: ","}, "1,25", "1.25", "1.25", reasonSeparators},
	}
}

// TestEveryKindAndRule: whatever the type, alone or in a list, a value that
// does not fit is rejected, ends the run or becomes null, by the column's own
// rule, and is counted by column and reason.
func TestEveryKindAndRule(t *testing.T) {
	for _, k := range kinds() {
		for _, list := range []bool{false, true} {
			typ, fits, null := k.typ, k.shown, "∅"
			if list {
				typ, fits, null = "list<"+k.typ+">", "["+k.shown+"]", "[∅]"
			}
			p := new(answer).
				result(1, "item:1="+k.fits, "item:2=a").
				result(2, "item:1="+k.bad, "item:2=b").
				result(3, "item:1=", "item:2=c").page(t)
			columns := func(rule schemas.OnError) *schemas.Schema {
				s := schema(t, "c item:1 "+typ, "other item:2 string")
				s.Columns[0].OnError, s.Columns[0].Reading = rule, k.r
				return s
			}
			empty := "∅"
			if list {
				empty = "[]"
			}
			about := fmt.Sprintf("%s %+v", typ, k.r)

			for _, rule := range []schemas.OnError{"", schemas.OnErrorReject} {
				r := start(t, columns(rule)).feed(t, p)
				r.wantRows(t, fits+` · "a"`, empty+` · "c"`)
				s := r.Stats()
				if !maps.Equal(s.Rejects, map[Fault]int64{{"c", k.reason}: 1}) || s.Rejected != 1 || len(s.Nulled) > 0 || !slices.Equal(r.rejects, []Reject{{2, "c", k.bad, k.reason}}) {
					t.Errorf("%s, reject: %+v, %v", about, s, r.rejects)
				}
			}

			r := start(t, columns(schemas.OnErrorSetNull)).feed(t, p)
			r.wantRows(t, fits+` · "a"`, null+` · "b"`, empty+` · "c"`)
			if s := r.Stats(); !maps.Equal(s.Nulled, map[Fault]int64{{"c", k.reason}: 1}) || s.Rejected != 0 || len(s.Rejects) > 0 {
				t.Errorf("%s, set_null: %+v", about, s)
			}

			var wrong *ValueError
			if err := start(t, columns(schemas.OnErrorFail)).Append(p); !errors.As(err, &wrong) || wrong.ResultID != 2 || wrong.Column != "c" || wrong.Reason != k.reason || wrong.Raw != k.bad {
				t.Errorf("%s, fail: %v", about, err)
			}

			// A column that nobody declared never rejects.
			s := columns(schemas.OnErrorReject)
			s.Columns[0].Inferred = true
			r = start(t, s).feed(t, p)
			r.wantRows(t, fits+` · "a"`, null+` · "b"`, empty+` · "c"`)
			if s := r.Stats(); s.Nulled[Fault{"c", k.reason}] != 1 || s.Rejected != 0 {
				t.Errorf("%s, inferred: %+v", about, s)
			}
		}
	}
}

// TestNotNullable: which rows have no value, by the kind of column and the
// rule for empty values. Result 1 has a value, 2 an empty one, 3 none, 4 lacks
// the item.
func TestNotNullable(t *testing.T) {
	for _, tt := range []struct {
		typ   string
		empty schemas.Empty
		want  []int64 // results without a value
	}{
		{"string", schemas.EmptyKeep, []int64{3, 4}},
		{"string", schemas.EmptyAsNull, []int64{2, 3, 4}},
		{"int64", schemas.EmptyKeep, []int64{2, 3, 4}},
		{"int64", schemas.EmptyAsNull, []int64{2, 3, 4}},
		{"list<string>", schemas.EmptyKeep, []int64{4}}, // an empty list is a value
		{"list<string>", schemas.EmptyAsNull, []int64{2, 3, 4}},
		{"list<int64>", schemas.EmptyKeep, []int64{4}},
	} {
		columns := func(rule schemas.OnError) *schemas.Schema {
			s := schema(t, "id result_id int64", "c item:1 "+tt.typ)
			s.Empty = tt.empty
			s.Columns[0].Required, s.Columns[1].Required, s.Columns[1].OnError = true, true, rule
			return s
		}
		p := new(answer).result(1, "item:1=5").result(2, "item:1=").result(3, "item:1").result(4).page(t)
		r := start(t, columns(schemas.OnErrorReject)).feed(t, p)
		var got []int64
		for _, x := range r.rejects {
			got = append(got, x.ResultID)
			if x.Column != "c" || x.Reason != reasonMissing || x.Raw != "" {
				t.Errorf("%s: reject %+v", tt.typ, x)
			}
		}
		if !slices.Equal(got, tt.want) || r.Stats().Rejects[Fault{"c", reasonMissing}] != int64(len(tt.want)) {
			t.Errorf("%s, empty %s: results %v have no value, want %v", tt.typ, tt.empty, got, tt.want)
		}
		for _, row := range r.rows {
			if strings.Contains(row, "∅") {
				t.Errorf("%s, empty %s: row %s", tt.typ, tt.empty, row)
			}
		}
		err := start(t, columns(schemas.OnErrorFail)).Append(p)
		var wrong *ValueError
		if !errors.As(err, &wrong) || wrong.ResultID != tt.want[0] || wrong.Reason != reasonMissing || !strings.Contains(err.Error(), "the schema says nullable: false") {
			t.Errorf("%s: %v", tt.typ, err)
		}
	}
}
