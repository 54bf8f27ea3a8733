package transform

import (
	"fmt"
	"sync"

	"github.com/formetl/formetl/schemas"
)

// ownTime is the format of the service's own times.
const ownTime = "YYYY-MM-DD HH:mm:SS"

// dateForms returns formats of dates and times beside the service's own. Where two formats
// read a value, a human must say what it means: 3/4/2025 is a day in March or in April.
var dateForms = sync.OnceValue(func() (forms []*schemas.Format) {
	for _, text := range []string{
		"M/D/YYYY", "M/D/YYYY HH:mm", "M/D/YYYY HH:mm:SS", "D/M/YYYY", "D/M/YYYY HH:mm", "D/M/YYYY HH:mm:SS",
		"M-D-YYYY", "M-D-YYYY HH:mm", "M-D-YYYY HH:mm:SS", "D-M-YYYY", "D-M-YYYY HH:mm", "D-M-YYYY HH:mm:SS",
		"D.M.YYYY", "D.M.YYYY HH:mm", "D.M.YYYY HH:mm:SS", "YYYY/MM/DD", "YYYY.MM.DD", "YYYY-MM-DD HH:mm",
	} {
		if f, err := schemas.ParseFormat(text); err == nil {
			forms = append(forms, f)
		}
	}
	return forms
})

// foreign counts, for each format of dateForms, the values that it reads.
type foreign map[*schemas.Format]int

// add counts v for each format that reads it.
func (f *foreign) add(v []byte) {
	if !digit(v[0]) || len(v) > len(ownTime) {
		return
	}
	for _, form := range dateForms() {
		if _, ok := form.Read(v); ok {
			if *f == nil {
				*f = foreign{}
			}
			(*f)[form]++
		}
	}
}

// forms returns the formats that read n values each.
func (f foreign) forms(n int) (fit []*schemas.Format) {
	for _, form := range dateForms() {
		if f[form] == n {
			fit = append(fit, form)
		}
	}
	return fit
}

// hint says how a schema declares n values as dates of another format, "" if they are no
// dates.
func (f foreign) hint(n int) string {
	fit := f.forms(n)
	if len(fit) == 0 {
		return ""
	}
	kind := "date"
	if fit[0].HasTime() {
		kind = "timestamp"
	}
	if len(fit) > 1 {
		return fmt.Sprintf(`like dates, but it is not clear which number is the day and which the month; for a date write type: %s with format: "%s" or "%s"`, kind, fit[0], fit[1])
	}
	return fmt.Sprintf(`like dates; for a date write type: %s with format: "%s"`, kind, fit[0])
}
