package transform

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/formetl/formetl/schemas"
)

// flattenerOf has one column of the type, read as declared.
func flattenerOf(t testing.TB, kind string, r schemas.Reading) (*Flattener, *column) {
	t.Helper()
	s := schema(t, "c item:1 "+kind)
	s.Columns[0].Reading = r
	f, err := NewFlattener(s, Options{Zone: zone(t, "America/Chicago"), Emit: func(arrow.RecordBatch) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Release)
	return f, f.columns[0]
}

// read spells what a column makes of a value, or the reason why it does not
// fit.
func read(f *Flattener, c *column, text string) string {
	v, moved, reason := f.row.parse(c, []byte(text))
	s := reason
	if reason == "" {
		switch c.elem.Kind {
		case schemas.Float64:
			s = strconv.FormatFloat(math.Float64frombits(uint64(v.num)), 'g', -1, 64)
		case schemas.Bool:
			s = strconv.FormatBool(v.num != 0)
		case schemas.Date:
			s = time.Unix(v.num*daySeconds, 0).UTC().Format(time.DateOnly)
		case schemas.Timestamp:
			s = stamp(v.num)
		case schemas.Decimal:
			s = decimal128.New(v.num, v.low).ToString(c.elem.Scale)
		default:
			s = strconv.FormatInt(v.num, 10)
		}
	}
	if moved {
		s += " shifted"
	}
	return s
}

func TestDeclaredNumbers(t *testing.T) {
	german := schemas.Reading{Decimal: ",", Group: "."}
	for _, tt := range []struct {
		kind              string
		r                 schemas.Reading
		text, want, about string
	}{
		{"decimal(12,2)", german, "1,005", reasonScale, ""},
		{"decimal(4,2)", german, "1.000,00", reasonPrecision, ""},
		{"decimal(12,2)", schemas.Reading{Decimal: ","}, "1.234", reasonSeparators, "no groups are declared"},
		{"decimal(12,2)", schemas.Reading{Decimal: ","}, "1234,5", "1234.50", ""},
		{"decimal(38,0)", schemas.Reading{Group: ","}, "99,999,999,999,999,999,999,999,999,999,999,999,999", strings.Repeat("9", 38), ""},
		{"float64", german, "1e400", reasonFloatBig, ""},
		{"float64", schemas.Reading{Group: "\u202f", Decimal: ","}, "1\u202f234,25", "1234.25", ""},
		{"float64", schemas.Reading{Group: "\u00a0"}, "-1\u00a0234.25", "-1234.25", ""},
		{"float64", schemas.Reading{Group: "\u00a0"}, "1\u202f234", reasonSeparators, "another blank"},
		{"float64", schemas.Reading{Group: " "}, "1 234", "1234", ""},
		{"float64", schemas.Reading{Group: "'"}, "1'234.5", "1234.5", ""},
		{"float64", schemas.Reading{Decimal: "٫"}, "1٫5", "1.5", ""},
		{"int64", schemas.Reading{Group: "."}, "1.234", "1234", "the point groups whole numbers"},
		{"int64", schemas.Reading{Group: ","}, "-9,223,372,036,854,775,808", "-9223372036854775808", ""},
		{"int64", schemas.Reading{Group: ","}, "9,223,372,036,854,775,808", reasonIntRange, ""},
		{"int64", schemas.Reading{Group: ","}, "1234", "1234", ""},
		{"int64", schemas.Reading{Group: ","}, "1,234.0", reasonSeparators, ""},
		{"int64", schemas.Reading{Group: ","}, "1234.", reasonSeparators, ""},
		{"int64", schemas.Reading{Group: ","}, "1e3", reasonSeparators, ""},
	} {
		f, c := flattenerOf(t, tt.kind, tt.r)
		for range 2 { // the second time over what the first left
			if got := read(f, c, tt.text); got != tt.want {
				t.Errorf("%s %+v %q = %s, want %s %s", tt.kind, tt.r, tt.text, got, tt.want, tt.about)
			}
		}
	}
}

func TestDeclaredWords(t *testing.T) {
	f, c := flattenerOf(t, "bool", schemas.Reading{True: []string{"Ja", " oui ", "Größe", "Σ"}, False: []string{"nein", "0"}})
	for text, want := range map[string]string{
		"ja": "true", "JA": "true", " jA\t": "true", "Oui": "true", "GRÖßE": "true", "σ": "true", "ς": "true", "Nein": "false", "0": "false",
		"true": reasonWord, "1": reasonWord, "j": reasonWord, "ja!": reasonWord, "no": reasonWord, "GRÖSSE": reasonWord, "ja nein": reasonWord,
	} {
		if got := read(f, c, text); got != want {
			t.Errorf("%q = %s, want %s", text, got, want)
		}
	}
}

func TestDeclaredTimes(t *testing.T) {
	days := schemas.Reading{Formats: []string{"MM/DD/YYYY", "D.M.YYYY", "D/M/YYYY"}}
	times := schemas.Reading{Formats: []string{"M/D/YYYY h:mm A", "YYYY-MM-DDTHH:mm:ss.fZ", "DD.MM.YYYY"}}
	for _, tt := range []struct {
		kind string
		r    schemas.Reading
		text string
		want string
	}{
		{"date", days, "12/31/2025", "2025-12-31"},
		{"date", days, "31.12.2025", "2025-12-31"},
		{"date", days, "02/03/2025", "2025-02-03"}, // the first that fits
		{"date", days, "31/12/2025", "2025-12-31"},
		{"date", days, " 12/31/2025 ", "2025-12-31"},
		{"date", days, "2025-12-31", reasonDateForm}, // only what is declared
		{"date", days, "12/31/2025 00:00", reasonDateForm},
		{"date", days, "30.02.2024", reasonDateForm},
		{"timestamp", times, "01/15/2026 12:00 PM", "2026-01-15T18:00:00Z"},
		{"timestamp", times, "1/15/2026 12:00 am", "2026-01-15T06:00:00Z"},
		{"timestamp", times, "15.01.2026", "2026-01-15T06:00:00Z"},
		{"timestamp", times, "2026-01-15T12:00:00.25+05:30", "2026-01-15T06:30:00.25Z"},
		{"timestamp", times, "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"},
		// The account's zone skips and repeats as for the service's own form.
		{"timestamp", times, "03/08/2026 02:30 AM", "2026-03-08T08:30:00Z shifted"},
		{"timestamp", times, "2026-03-08T02:30:00.0Z", "2026-03-08T02:30:00Z"},
		{"timestamp", times, "11/01/2026 01:30 AM", "2026-11-01T06:30:00Z"},
		{"timestamp", times, "2026-01-15 12:00:00", reasonTimeForm},
		{"timestamp", times, "01/15/2026 12:00", reasonTimeForm},
		{"timestamp", times, "", reasonTimeForm},
	} {
		f, c := flattenerOf(t, tt.kind, tt.r)
		for range 2 {
			if got := read(f, c, tt.text); got != tt.want {
				t.Errorf("%s %q = %s, want %s", tt.kind, tt.text, got, tt.want)
			}
		}
	}
}

// FuzzDeclaredTimestamp: a time in a declared format is the instant that the
// service's own form of it is.
func FuzzDeclaredTimestamp(f *testing.F) {
	for i := range fuzzZones {
		f.Add(int64(1772958600), uint8(i))
		f.Add(int64(1793514600), uint8(i))
	}
	f.Fuzz(func(t *testing.T, wall int64, z uint8) {
		when := time.Unix(wall%(1<<37), 0).UTC()
		if when.Year() < 1 || when.Year() > 9999 {
			return
		}
		g, c := flattenerOf(t, "timestamp", schemas.Reading{Formats: []string{"dddd, D MMMM YYYY, h:mm:ss A"}})
		g.row.clock = clock{zone: zone(t, fuzzZones[int(z)%len(fuzzZones)])}
		want, shifted, why := g.row.clock.parseTimestamp([]byte(when.Format("2006-01-02 15:04:05")))
		text := when.Format("Monday, 2 January 2006, 3:04:05 PM")
		if got, moved, reason := g.row.parse(c, []byte(text)); reason != why || got.num != want || moved != shifted {
			t.Errorf("%q = %s, %v, %q; want %s, %v", text, stamp(got.num), moved, reason, stamp(want), shifted)
		}
	})
}

// FuzzSeparators compares numbers with separators with a regular expression of
// them and math/big.
func FuzzSeparators(f *testing.F) {
	for _, s := range []string{
		"1.234.567,89", "1234,5", "-1.2", "1,234.5", ".5", "5,", ",", "+12.345", "1\u00a0234.5", "12'345'678", "1.2345", "", "-", "0.000.000,1", "1e5",
		"1,5e-3", "1.5.6", "1234567,89", "-1.234,5", "+ 1,5", " 12,5\n", ",5", "001.234,5", "1.23", "1.234", "12.34,5", "1234.567", ".567", "1..567",
		"1.234.", "1.234567", "1,2,3", "--1", "1e3", "1.234,5e2", "1,5E-1", "1e1.5", "1e1,5", "NaN", "Infinity",
	} {
		for i := range uint8(6) {
			f.Add(s, i)
		}
	}
	forms := []schemas.Reading{{Decimal: ",", Group: "."}, {Decimal: ","}, {Group: ","}, {Group: "\u00a0"}, {Decimal: ",", Group: "\u202f"}, {Group: "'"}}
	f.Fuzz(func(t *testing.T, s string, which uint8) {
		r := forms[int(which)%len(forms)]
		point, group := r.Decimal, r.Group
		if point == "" {
			point = "."
		}
		integer := `[0-9]+`
		if group != "" {
			integer = `(?:[0-9]+|[0-9]{1,3}(?:` + regexp.QuoteMeta(group) + `[0-9]{3})+)`
		}
		mantissa := `[+-]?(?:` + integer + `(?:` + regexp.QuoteMeta(point) + `[0-9]*)?|` + regexp.QuoteMeta(point) + `[0-9]+)`
		text := string(trim([]byte(s)))
		plain := text
		if group != "" {
			plain = strings.ReplaceAll(plain, group, "")
		}
		plain = strings.Replace(plain, point, ".", 1)

		g, c := flattenerOf(t, "decimal(38,6)", r)
		v, _, reason := g.row.parse(c, []byte(s))
		if fits := regexp.MustCompile(`^` + mantissa + `$`).MatchString(text); !fits {
			if reason != reasonSeparators {
				t.Errorf("%+v %q = %s", r, s, read(g, c, s))
			}
		} else {
			want, ok := new(big.Rat).SetString(plain)
			if !ok {
				t.Fatalf("big.Rat refuses %q", plain)
			}
			want.Mul(want, big.NewRat(1e6, 1))
			whole := want.IsInt() && want.Num().CmpAbs(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)) < 0
			if (reason == "") != whole || whole && decimal128.New(v.num, v.low).BigInt().Cmp(want.Num()) != 0 {
				t.Errorf("%+v %q = %s, big.Rat: %s", r, s, read(g, c, s), want)
			}
		}

		g, c = flattenerOf(t, "float64", r)
		v, _, reason = g.row.parse(c, []byte(s))
		want, err := strconv.ParseFloat(plain, 64)
		fits := err == nil && regexp.MustCompile(`^`+mantissa+`(?:[eE][+-]?[0-9]+)?$`).MatchString(text)
		if (reason == "") != fits || fits && uint64(v.num) != math.Float64bits(want) {
			t.Errorf("%+v %q = %s, strconv: %v, %v", r, s, read(g, c, s), want, err)
		}
	})
}
