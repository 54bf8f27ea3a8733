package definition

import (
	"strings"
	"testing"
)

// TestSchedule holds which schedules are taken, and what is said of the others.
func TestSchedule(t *testing.T) {
	for text, want := range map[string]string{
		"15 3 * * *":           "15 3 * * *",
		"  */10  * * * *":      "*/10 * * * *",
		"0 6-18/2 * * MON-fri": "0 6-18/2 * * mon-fri",
		"0,30 0 1 jan,jul *":   "0,30 0 1 jan,jul *",
		"0 0 1-7 * *":          "0 0 1-7 * *",
	} {
		if got, err := parseSchedule(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"@daily":       "has 1 fields",
		"0 0 0 * * *":  "has 6 fields",
		"60 0 * * *":   `the minute "60" of the schedule is none; write a number from 0 to 59`,
		"0 x * * *":    "the hour",
		"0 0 0 * *":    "the day of the month",
		"0 0 * foo *":  "the month",
		"0 0 * * 7":    "from 0 to 6",
		"*/0 * * * *":  "the step",
		"*/x * * * *":  "the step",
		"5/10 * * * *": "write 5-59/10",
		"9-5 * * * *":  "ends before it begins",
		"1- * * * *":   "is none",
		",1 * * * *":   "is none",
		"0 0 13 * fri": "schedulers disagree",
	} {
		if got, err := parseSchedule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %s", text, got, err, want)
		}
	}
}
