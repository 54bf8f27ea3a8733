package transform

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/schemas"
)

// guessOf learns from one item with the given values, a result each.
func guessOf(t testing.TB, label, itemType string, zone *time.Location, values ...string) Guess {
	t.Helper()
	a := new(answer)
	for i, v := range values {
		a.result(int64(i+1), "item:1="+v)
	}
	l := NewLearner(zone)
	p := a.page(t, "1="+label)
	if itemType != "" && len(p.Fields) > 0 {
		p.Fields[0].Type = itemType
	}
	l.Add(p)
	s, guesses := l.Schema("x", schemas.ByLabel)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if len(v) > 3 && guesses[1].Type.Kind != schemas.Bool && strings.Contains(guesses[1].Why, v) {
			t.Errorf("the reason holds the value %q: %s", v, guesses[1].Why)
		}
	}
	return guesses[1]
}

func TestLearnedTypes(t *testing.T) {
	many := func(format string, from, n int) (values []string) {
		for i := range n {
			values = append(values, fmt.Sprintf(format, from+i))
		}
		return values
	}
	for name, tt := range map[string]struct {
		label, itemType string
		values          []string
		want, why       string
	}{
		"whole numbers":           {"Age", "", []string{"0", "-1", "20", "999999999", "7"}, "int64", "all 5 values are whole numbers"},
		"four values":             {"Age", "", []string{"0", "1", "2", "3"}, "string", "4 values are not enough to tell the type (5 are needed)"},
		"one value":               {"Age", "", []string{"0", ""}, "string", "1 value is not enough"},
		"no value":                {"Age", "", []string{"", ""}, "string", "no values, so the type cannot be told"},
		"empties do not count":    {"Age", "", []string{"0", "", "1", "2", "", "3", "4"}, "int64", "all 5 values"},
		"leading zeros":           {"Age", "", []string{"1", "2", "3", "4", "007"}, "string", "1 of them with leading zeros"},
		"minus nought":            {"Age", "", []string{"1", "2", "3", "4", "-0"}, "string", "4 of 5"},
		"plus":                    {"Age", "", []string{"1", "2", "3", "4", "+5"}, "string", "4 of 5 values are whole numbers"},
		"blanks":                  {"Age", "", []string{"1", "2", "3", "4", "5 "}, "string", "4 of 5 values are whole numbers"},
		"ids of five digits":      {"Age", "", []string{"10115", "20095", "80331", "50667", "60311"}, "string", "all with 5 digits"},
		"four digits":             {"Year", "", []string{"2001", "2002", "2003", "2004", "2005"}, "int64", "whole numbers"},
		"ten digits":              {"Amount", "", []string{"1", "2", "3", "4", "1234567890"}, "string", "with up to 10 digits"},
		"more than an int64":      {"Amount", "", []string{"1", "2", "3", "4", "99999999999999999999"}, "string", "with up to 20 digits"},
		"by its label":            {"Your ZIP code", "", many("%d", 1, 5), "string", `because of the word "zip"`},
		"by its item's type":      {"Where?", "phone", many("%d", 1, 5), "string", `because of the word "phone"`},
		"item type number":        {"How many", "number", many("%d", 1, 5), "int64", ""},
		"a number of":             {"Number of guests", "", many("%d", 1, 5), "int64", ""},
		"a number":                {"Room number", "", many("%d", 1, 5), "string", `"number"`},
		"german":                  {"Ihre Matrikelnummer", "", many("%d", 1, 5), "string", `"matrikelnummer"`},
		"german compound":         {"Bibliotheksnummer", "", many("%d", 1, 5), "string", `"nummer"`},
		"chinese":                 {"电话", "", many("%d", 1, 5), "string", `"dian_hua"`},
		"no whole word":           {"Amount paid", "", many("%d", 1, 5), "int64", ""},
		"two decimals":            {"Price", "", []string{"1.10", "0.00", "12.34", "-3.50", "5.00"}, "decimal(18,2)", "numbers with 2 decimals"},
		"integers among them":     {"Price", "", []string{"1.10", "0.00", "12.34", "-3.50", "5"}, "decimal(18,2)", "up to 2 decimals"},
		"no zeros at the end":     {"Price", "", []string{"1.1", "0.25", "12.125", "3", "5"}, "decimal(18,3)", "up to 3 decimals"},
		"zeros at the end":        {"Price", "", []string{"1.1", "1.10", "12.125", "3", "5"}, "string", "1 of them with a zero at the end"},
		"long whole":              {"Price", "", []string{"1.1", "123456789012345.1", "12.1", "3", "5"}, "decimal(38,1)", ""},
		"too long":                {"Price", "", []string{"1." + strings.Repeat("3", 38), "1.3", "12.1", "3", "5"}, "string", "more than the 38 digits"},
		"nought with a minus":     {"Price", "", []string{"1.1", "-0.0", "12.1", "3.5", "5.7"}, "string", ""},
		"minus a half":            {"Price", "", []string{"1.1", "-0.5", "12.1", "3.5", "5.7"}, "decimal(18,1)", ""},
		"exponents":               {"Price", "", []string{"1e5", "1", "2", "3", "5"}, "string", "4 of 5 values are whole numbers"},
		"point in front":          {"Price", "", []string{".5", "1", "2", "3", "5"}, "string", ""},
		"version":                 {"Version", "", []string{"1.1", "1.2", "1.3", "2.1", "2.5"}, "string", `"version"`},
		"bool":                    {"Ok", "", []string{"true", "false", "true", "true", "true"}, "bool", "all 5 values are true or false"},
		"only true":               {"Ok", "", []string{"true", "true", "true", "true", "true"}, "bool", ""},
		"True":                    {"Ok", "", []string{"True", "False", "True", "True", "True"}, "string", "text"},
		"yes and no":              {"Ok", "", []string{"Yes", "No", "No", "Yes", "No"}, "string", "text"},
		"dates":                   {"Day", "", []string{"2026-01-01", "2024-02-29", "1800-01-01", "9999-12-31", "0001-01-01"}, "date", "dates YYYY-MM-DD"},
		"no such day":             {"Day", "", []string{"2026-01-01", "2024-02-29", "2025-02-29", "2026-01-05", "2026-01-06"}, "string", "4 of 5"},
		"times":                   {"When", "", many("2026-01-01 00:00:%02d", 0, 5), "timestamp", "times YYYY-MM-DD HH:MM:SS"},
		"a time that is skipped":  {"When", "", append(many("2026-01-01 00:00:%02d", 0, 5), "2026-03-08 02:30:00"), "string", "skips the hour of 1 of them"},
		"american":                {"When", "", many("12/%d/2025", 11, 5), "string", `format: "M/D/YYYY"`},
		"american, short":         {"When", "", many("1/%d/2025", 9, 8), "string", `format: "M/D/YYYY"`},
		"european":                {"When", "", many("%d.12.2025", 11, 5), "string", `format: "D.M.YYYY"`},
		"european with a time":    {"When", "", many("%d.12.2025 10:00", 11, 5), "string", `type: timestamp with format: "D.M.YYYY HH:mm"`},
		"day or month":            {"When", "", many("01/%02d/2025", 1, 5), "string", "not clear which number is the day"},
		"day and month":           {"When", "", []string{"13/01/2025", "01/13/2025", "01/02/2025", "02/02/2025", "03/03/2025"}, "string", "text"},
		"year first":              {"When", "", many("2025/12/%02d", 1, 5), "string", `format: "YYYY/MM/DD"`},
		"iso":                     {"When", "", many("2025-12-%02dT10:00:00Z", 1, 5), "string", "text"},
		"numbers with separators": {"Price", "", []string{"1,50", "2,75", "3,1", "4", "1.234,50"}, "string", "text"},
		"addresses of machines":   {"From", "", many("198.51.100.%d", 1, 5), "string", "text"},
		"all but one":             {"Age", "", append(many("%d", 1, 9), "x"), "string", "9 of 10 values are whole numbers, the others are not"},
		"text":                    {"Comment", "", []string{"a", "b", "c", "d", "e"}, "string", "text"},
		"lists":                   {"Ticks", "", []string{"1|2", "3", "4|5", "", "6"}, "list<int64>", "several values in 2 of 4 results; all 6 values"},
		"lists of strings":        {"Ticks", "", []string{"a|b", "c|", "d|e", "f", "6"}, "list<string>", "several values in 3 of 5 results; text"},
		"an element that differs": {"Ticks", "", []string{"1|2", "3", "4|x", "5", "6"}, "list<string>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := guessOf(t, tt.label, tt.itemType, zone(t, "America/Chicago"), tt.values...)
			if got.Type.String() != tt.want || !strings.Contains(got.Why, tt.why) {
				t.Errorf("%s: %s\nwant %s: %s", got.Type, got.Why, tt.want, tt.why)
			}
		})
	}
}

// TestLearnedMetas: date_* metas are timestamps by their ids where all values
// are, and metas with several values lists, since a declared string has one.
func TestLearnedMetas(t *testing.T) {
	l := NewLearner(time.UTC)
	l.Add(new(answer).
		result(1, "meta:date_a=2026-01-01 00:00:00", "meta:date_b=soon", "meta:date_c=", "meta:score=1", "meta:score=2").
		result(2, "meta:score=3", "meta:score=4").
		result(3, "meta:score=5").page(t, "date_d=Never"))
	s, guesses := l.Schema("x", schemas.ByID)
	want := []string{
		"result_id result_id int64", "score meta:score list<int64>", "date_d meta:date_d timestamp", "date_a meta:date_a timestamp", "date_b meta:date_b string",
		"date_c meta:date_c timestamp",
	}
	if got := spell(s.Columns); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("columns\n%s", strings.Join(got, "\n"))
	}
	for i, why := range []string{"the result's id", "several values in 2 of 3", "because of its id; no value", "because of its id, and its only value is one", "1 of 1 values are not times YYYY-MM-DD HH:MM:SS", "no value"} {
		if !strings.Contains(guesses[i].Why, why) {
			t.Errorf("%s: %s, want %s", s.Columns[i].Name, guesses[i].Why, why)
		}
	}
	if g := guesses[1]; g.Results != 3 || g.Filled != 3 {
		t.Errorf("%+v", g)
	}
	if s.Columns[0].Inferred {
		t.Error("the columns are for a file, where all are declared")
	}
}

// TestLearnedDatesInAnotherForm: the form of a date_* meta is proposed where the values leave
// no doubt, and then it reads all of them.
func TestLearnedDatesInAnotherForm(t *testing.T) {
	for name, tt := range map[string]struct{ values, typ, formats, why string }{
		"its own":         {"2026-01-05 10:00:00", "timestamp", "", "its only value is one"},
		"no seconds":      {"2026-01-05 10:00|2026-01-06 23:59", "timestamp", "YYYY-MM-DD HH:mm", "in the format YYYY-MM-DD HH:mm"},
		"some seconds":    {"2026-01-05 10:00|2026-01-06 23:59:00", "timestamp", "YYYY-MM-DD HH:mm:SS|YYYY-MM-DD HH:mm", " or "},
		"american":        {"01/05/2026 10:00:00|01/15/2026 10:00:00", "timestamp", "M/D/YYYY HH:mm:SS", "M/D/YYYY"},
		"american, short": {"1/5/2026 10:00|1/15/2026 10:00", "timestamp", "M/D/YYYY HH:mm", "M/D/YYYY"},
		"european":        {"15.01.2026 10:00:00", "timestamp", "D.M.YYYY HH:mm:SS", "D.M.YYYY"},
		"a day":           {"15.01.2026", "timestamp", "D.M.YYYY", "D.M.YYYY"},
		"which is which":  {"01/05/2026 10:00:00", "string", "", `"M/D/YYYY HH:mm:SS" or "D/M/YYYY HH:mm:SS"`},
		"mixed":           {"15.01.2026 10:00:00|16.01.2026 10:00", "string", "", "2 of 2 values are not times YYYY-MM-DD HH:MM:SS"},
		"midnight":        {"2026-01-05 24:00:00|2026-01-05 10:00:00", "string", "", "1 of 2 values are not times YYYY-MM-DD HH:MM:SS"},
		"words":           {"soon", "string", "", "1 of 1 values are not times YYYY-MM-DD HH:MM:SS"},
	} {
		t.Run(name, func(t *testing.T) {
			a := new(answer)
			values := strings.Split(tt.values, "|")
			for i, v := range values {
				a.result(int64(i+1), "meta:date_start="+v)
			}
			p := a.page(t)
			l := NewLearner(time.UTC)
			l.Add(p)
			s, guesses := l.Schema("x", schemas.ByID)
			if c := s.Columns[1]; c.Type.String() != tt.typ || strings.Join(c.Reading.Formats, "|") != tt.formats || !strings.Contains(guesses[1].Why, tt.why) {
				t.Errorf("%s %q: %s", c.Type, c.Reading.Formats, guesses[1].Why)
			}
			if got := start(t, s).feed(t, p).Stats(); got.Rows != int64(len(values)) {
				t.Errorf("the schema that is proposed rejects %v", got.Rejects)
			}
		})
	}
}

// TestLearnedIsNamedAsInferred: types aside, the columns are those of Infer.
func TestLearnedIsNamedAsInferred(t *testing.T) {
	first := new(answer).result(1, "meta:m=1", "item:4@2=a", "item:9@1=b").page(t, "4=Full name", "9=Full name", "7=Not answered")
	second := new(answer).result(5, "item:77@3=x").page(t)
	l := NewLearner(time.UTC)
	for range 2 { // Schema takes nothing away
		_, _ = l.Schema("x", schemas.ByLabel)
	}
	l.Add(first)
	_, _ = l.Schema("x", schemas.ByLabel)
	l.Add(second)
	got, _ := l.Schema("x", schemas.ByLabel)
	want := schemaOf(first, second)
	if a, b := strings.Join(spell(got.Columns), "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("learned\n%s\ninferred\n%s", a, b)
	}
}
