package ddl

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
)

// rows are those of all parts.
func (w Written) rows() int64 {
	var n int64
	for _, p := range w.Parts {
		n += p.Rows
	}
	return n
}

// wrongCount is what a count of the rows that were loaded must not be, as SQL
// puts it behind the count; "" where any is right. Parts hold what the manifest
// says. A single file may be a later run's, and what a pattern finds is not
// known: there only nothing is wrong, where there should be something.
func (w Written) wrongCount(o Options) string {
	switch {
	case w.Dataset() && w.named(o):
		return fmt.Sprintf("<> %d", w.rows())
	case w.Known && w.rows() == 0:
		return ""
	}
	return "= 0"
}

// notWhole is what an engine says where the count is wrong.
const notWhole = "not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew"

// differs tells whether two outputs are known to hold different results.
func (w Written) differs(from Written) bool {
	return w.Known && from.Known && w.rows() != from.rows()
}

// notLoaded says why an output is not loaded that could be.
func (w Written) notLoaded(best Written) string {
	if w.differs(best) {
		return fmt.Sprintf("%s (%s) holds %d rows, not the %d of %s, and is not loaded", w.Path, w.Format, w.rows(), best.rows(), best.Path)
	}
	return fmt.Sprintf("%s (%s) holds the same results and is not loaded", w.Path, w.Format)
}

// inParts are the columns without the last ones that the manifest lists and no
// part has yet: the run that brought them had no results to write.
func (w Written) inParts() []schemas.Column {
	most := 0
	for _, p := range w.Parts {
		if p.Leading <= 0 {
			return w.Columns // nobody knows, or not the first ones
		}
		most = max(most, p.Leading)
	}
	if most == 0 {
		return w.Columns
	}
	return w.Columns[:min(most, len(w.Columns))]
}

const loading = "formetl_load"

// loading is the name of the temporary table that takes the files' rows first.
// It must not hide the table itself.
func (t Table) loading() string {
	if strings.EqualFold(t.Name[len(t.Name)-1], loading) {
		return loading + "_2"
	}
	return loading
}
