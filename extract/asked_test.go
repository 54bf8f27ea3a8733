package extract

import (
	"testing"
	"time"
)

// TestWords holds how windows and what was asked for stand in errors.
func TestWords(t *testing.T) {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for want, w := range map[string]Window{
		"":                                     {},
		"window from 2026-01-02 00:00:00 on, ": {From: day},
		"window until 2026-01-02 00:00:00, ":   {To: day},
		"window 2026-01-02 00:00:00 to 2026-01-03 00:00:00, ": {From: day, To: day.AddDate(0, 0, 1)},
	} {
		if got := w.place(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	search := Search{Where: []Criterion{{Column: "12", Operator: OpNotEmpty}, {Column: "1", Operator: OpEquals, Term: "Ada"}}}
	for want, q := range map[string]ResultsQuery{
		"": {Window: Window{From: day}, Limit: 5, Headings: true},
		"view 77, custom labels 2, search 12 not_empty, search 1 equals Ada": {View: "77", CustomLabels: "2", Search: search},
	} {
		if got := q.Asked(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
