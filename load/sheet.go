package load

import "github.com/formetl/formetl/load/internal/sheets"

// ForSheets is a text as CSV's profile excel has it: with a ' in front where a
// spreadsheet would run the text as a formula or show another one in its place.
func ForSheets(text string) string {
	if sheets.Guarded(text) {
		return "'" + text
	}
	return text
}
