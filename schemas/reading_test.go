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

		{"string", func(c *Column) { c.Reading.Formats = []string{"MM/DD/YYYY"} }, "format: a format needs the type date or timestamp, not string"},
		{"date", func(c *Column) { c.Reading.Formats = []string{"MM/DD"} }, `format: format "MM/DD": it has no year`},
		{"date", func(c *Column) { c.Reading.Formats = []string{"MM/DD/YYYY", "MM/DD/YYYY HH:MM"} }, `format: the format "MM/DD/YYYY HH:MM" has a time of day`},
		{"date", func(c *Column) { c.Reading.Formats = []string{"YYYY-MM-DDZ"} }, `format: the format "YYYY-MM-DDZ" has a time of day`},
		{"timestamp", func(c *Column) { c.Reading.Formats = []string{"HH:MM"} }, `format: format "HH:MM": it has no year`},
		{"date", func(c *Column) { c.Reading.Formats = []string{"D.M.YYYY", "D.M.YYYY"} }, `format: the format "D.M.YYYY" is listed twice`},
		{"int64", func(c *Column) { c.Reading.True, c.Reading.False = []string{"a"}, []string{"b"} }, "true_values: true_values and false_values need the type bool"},
		{"bool", func(c *Column) { c.Reading.True = []string{"ja"} }, "true_values: write both true_values and false_values"},
		{"bool", func(c *Column) { c.Reading.True, c.Reading.False = []string{"ja"}, []string{" JA "} }, `false_values: the word "JA" is listed twice`},
		{"bool", func(c *Column) { c.Reading.True, c.Reading.False = []string{"ſ", "x"}, []string{"S"} }, `false_values: the word "S" is listed twice`},
		{"bool", func(c *Column) { c.Reading.True, c.Reading.False = []string{" "}, []string{"b"} }, "true_values: one of the words is empty"},
		{"int64", func(c *Column) { c.Reading.Decimal = "," }, "decimal_separator: decimal_separator needs the type float64 or decimal, not int64"},
		{"date", func(c *Column) { c.Reading.Group = "," }, "group_separator: group_separator needs the type int64"},
		{"float64", func(c *Column) { c.Reading.Group = "." }, `group_separator: "." is the decimal separator already`},
		{"float64", func(c *Column) { c.Reading.Decimal = ",," }, "decimal_separator: \",,\" cannot be a separator"},
		{"float64", func(c *Column) { c.Reading.Group = "0" }, "group_separator: \"0\" cannot be a separator"},
		{"int64", func(c *Column) { c.Required, c.OnError = true, OnErrorSetNull }, "nullable: nullable: false and on_error: set_null contradict each other"},
		{"int64", func(c *Column) { c.From, c.Reading.Group = Source{Kind: FromResultID}, "," }, "from: format: and group_separator: are not for the result's id; remove them"},
		{"list<string>", func(c *Column) { c.Choices = []string{"a"} }, "choices: choices have no effect"},
		{"int64", func(c *Column) { c.Required, c.PII.Kind = true, PIIDrop }, "nullable: pii: drop leaves the column out"},
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
