package load

import "github.com/formetl/formetl/load/internal/sheets"

// ForSheets gives a text as CSV's profile excel writes it. It puts a ' in front
// if a spreadsheet would run the text as a formula or show it changed.
func ForSheets(text string) string {
	if sheets.Guarded(text) {
		return "'" + text
	}
	return text
}
