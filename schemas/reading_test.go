package schemas

import (
	"errors"
	"strings"
	"testing"
)

// TestValidateReading: what a column declares must fit its type and itself.
// The wanted text begins with the key that the problem is at; "" is valid.
func TestValidateReading(t *testing.T) {
	for _, tt := range []struct {
		kind   string
		change func(*Column)
		want   string
	}{
		{"date", func(c *Column) { c.Reading.Formats = []string{"MM/DD/YYYY", "DD.MM.YYYY"} }, ""},
		{"list<timestamp>", func(c *Column) { c.Reading.Formats = []string{"M/D/YYYY H:mm", "MM/DD/YYYY"} }, ""},
		{"bool", func(c *Column) { c.Reading.True, c.Reading.False = []string{"ja", "1"}, []string{"nein", "0"} }, ""},
		{"int64", func(c *Column) { c.Reading.Group = "." }, ""},
		{"float64", func(c *Column) { c.Reading.Group = "'" }, ""},
		{"list<decimal(4,2)>", func(c *Column) { c.Reading.Decimal, c.Reading.Group = ",", "\u202f" }, ""},
		{"string", func(c *Column) { c.Required = true }, ""},

		{"string", func(c *Column) { c.Reading.Formats = []string{"MM/DD/YYYY"} }, "format: a format is for a date or a timestamp, not for string"},
		{"date", func(c *Column) { c.Reading.Formats = []string{"MM/DD"} }, `format: format "MM/DD": it has no year`},
		{"date", func(c *Column) { c.Reading.Formats = []string{"MM/DD/YYYY", "MM/DD/YYYY HH:MM"} }, `format: format "MM/DD/YYYY HH:MM": a date has no time of day`},
		{"date", func(c *Column) { c.Reading.Formats = []string{"YYYY-MM-DDZ"} }, `format: format "YYYY-MM-DDZ": a date has no time of day`},
		{"timestamp", func(c *Column) { c.Reading.Formats = []string{"HH:MM"} }, `format: format "HH:MM": it has no year`},
		{"date", func(c *Column) { c.Reading.Formats = []string{"D.M.YYYY", "D.M.YYYY"} }, `format: the format "D.M.YYYY" stands there twice`},
		{"int64", func(c *Column) { c.Reading.True, c.Reading.False = []string{"a"}, []string{"b"} }, "true_values: words for true and false are for a bool"},
		{"bool", func(c *Column) { c.Reading.True = []string{"ja"} }, "true_values: true_values and false_values go together"},
		{"bool", func(c *Column) { c.Reading.True, c.Reading.False = []string{"ja"}, []string{" JA "} }, `false_values: the word "JA" stands there twice`},
		{"bool", func(c *Column) { c.Reading.True, c.Reading.False = []string{"ſ", "x"}, []string{"S"} }, `false_values: the word "S" stands there twice`},
		{"bool", func(c *Column) { c.Reading.True, c.Reading.False = []string{" "}, []string{"b"} }, "true_values: an empty word is no value"},
		{"int64", func(c *Column) { c.Reading.Decimal = "," }, "decimal_separator: a decimal separator is for float64 and decimal, not for int64"},
		{"date", func(c *Column) { c.Reading.Group = "," }, "group_separator: a group separator is for int64"},
		{"float64", func(c *Column) { c.Reading.Group = "." }, `group_separator: "." cannot be both`},
		{"float64", func(c *Column) { c.Reading.Decimal = ",," }, "decimal_separator: \",,\" is no separator"},
		{"float64", func(c *Column) { c.Reading.Group = "0" }, "group_separator: \"0\" is no separator"},
		{"int64", func(c *Column) { c.Required, c.OnError = true, OnErrorSetNull }, "nullable: nullable: false and on_error: set_null exclude each other"},
		{"int64", func(c *Column) { c.From, c.Reading.Group = Source{Kind: FromResultID}, "," }, "from: the result id is read as it stands"},
		{"list<string>", func(c *Column) { c.Choices = []string{"a"} }, "choices: choices are for list_as: columns"},
		{"int64", func(c *Column) { c.Required, c.PII.Kind = true, PIIDrop }, "nullable: a column that is dropped is not read"},
	} {
		s := Schema{Columns: columns(t, "c item:1 "+tt.kind)}
		tt.change(&s.Columns[0])
		err := s.Validate()
		if tt.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", s.Columns[0], err)
			}
			continue
		}
		var invalid *InvalidError
		if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || !strings.HasPrefix(err.Error(), "columns[0]."+tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}
