package transform

import (
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
)

// TestChoicesAreBoundedByBytes over all columns of a window. One that gives its
// choices up makes room for others.
func TestChoicesAreBoundedByBytes(t *testing.T) {
	const columns, rows = 100, 400
	lines := make([]string, columns)
	for k := range lines {
		lines[k] = fmt.Sprintf("c%d item:%d list<string>", k, k)
	}
	r := start(t, schema(t, lines...))
	long := strings.Repeat("x", 140)
	a := new(answer)
	for i := range rows {
		cells := make([]string, columns)
		for k := range cells {
			cells[k] = fmt.Sprintf("item:%d=%s %03d", k, long, i)
		}
		a.result(int64(i+1), cells...)
	}
	p := a.page(t)
	for range 2 { // what is known takes no room
		r.feed(t, p)
	}
	var kept, bytes int
	for from, seen := range r.Stats().Seen {
		if seen.Filled != 2*rows {
			t.Errorf("%s: %d rows hold a value", from, seen.Filled)
		}
		if seen.Many {
			if seen.Choices != nil {
				t.Errorf("%s: many, and %d choices", from, len(seen.Choices))
			}
			continue
		}
		kept++
		for v, n := range seen.Choices {
			bytes += len(v)
			if n != 2 {
				t.Fatalf("%s: %s was counted %d times", from, v, n)
			}
		}
	}
	most := mostChoiceTexts / (rows * (len(long) + 4))
	if bytes > mostChoiceTexts || kept > most || kept < most-2 {
		t.Errorf("%d columns keep %d bytes of choices, want %d columns or so in %d bytes", kept, bytes, most, mostChoiceTexts)
	}
}

// TestListsOfColumnsKeepTheirChoices however many bytes they are together.
func TestListsOfColumnsKeepTheirChoices(t *testing.T) {
	const columns, rows = 60, 400
	long := strings.Repeat("x", 190)
	s := &schemas.Schema{Name: "test"}
	for k := range columns {
		c := col(t, fmt.Sprintf("c%d item:%d list<string>", k, k))
		c.ListAs = schemas.ListColumns
		s.Columns = append(s.Columns, c)
	}
	a := new(answer)
	for i := range rows {
		cells := make([]string, columns)
		for k := range cells {
			cells[k] = fmt.Sprintf("item:%d=%s %03d", k, long, i)
		}
		a.result(int64(i+1), cells...)
	}
	for from, seen := range start(t, s).feed(t, a.page(t)).Stats().Seen {
		if seen.Many || len(seen.Choices) != rows {
			t.Errorf("%s keeps %d choices", from, len(seen.Choices))
		}
	}
}
