package extract

import (
	"fmt"
	"testing"

	"github.com/formetl/formetl/extract/page"
)

// TestInOrder merges what overlaps and keeps apart what does not.
func TestInOrder(t *testing.T) {
	build := func(heading string, ids ...int64) *page.Page {
		var b page.Builder
		b.Begin()
		if heading != "" {
			b.Page.Headings = append(b.Page.Headings, page.Heading{ID: "1", Label: heading})
		}
		for _, id := range ids {
			b.Result(id)
			field, _ := b.Field(page.KindItem, fmt.Append(nil, id%3))
			b.Cell(field)
			start := int32(len(b.Text))
			b.Text = fmt.Append(b.Text, "v", id)
			b.Value(page.Span{Start: start, End: int32(len(b.Text))})
			b.Value(page.Span{})
		}
		return b.Finish()
	}
	for _, tc := range []struct {
		in   []*page.Page
		want string
	}{
		{nil, "[]"},
		{[]*page.Page{build("h")}, "[]"},
		{[]*page.Page{build("h", 5, 4), build("", 3, 2)}, "[[2 3] [4 5]]"},
		{[]*page.Page{build("h", 5, 1), build("", 9, 8), build("", 4, 2), build("", 7, 3)}, "[[1 2 3 4 5 7] [8 9]]"},
		{[]*page.Page{build("", 2, 9), build("h", 3, 4), build(""), build("", 5)}, "[[2 3 4 5 9]]"},
	} {
		pages, err := inOrder(tc.in)
		if err != nil {
			t.Fatal(err)
		}
		got := [][]int64{}
		for _, p := range pages {
			got = append(got, p.IDs())
			for i := range p.Len() {
				c := p.Cells(i)
				if len(c) != 1 || c[0].Values != 2 || string(p.Value(c[0], 0)) != fmt.Sprint("v", p.ID(i)) || p.Fields[c[0].Field].ID != fmt.Sprint(p.ID(i)%3) {
					t.Errorf("result %d: %+v", p.ID(i), c)
				}
			}
		}
		if fmt.Sprint(got) != tc.want {
			t.Errorf("%v, want %s", got, tc.want)
		}
		if len(pages) > 0 && (len(pages[0].Headings) != 1 || pages[0].Headings[0].Label != "h") {
			t.Errorf("headings %+v", pages[0].Headings)
		}
		release(pages)
	}
}
