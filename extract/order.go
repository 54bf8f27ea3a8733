package extract

import (
	"cmp"
	"slices"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// inOrder sorts pages, and the results in them, by ascending id. Pages whose
// ids overlap become one. No id may be in two pages. inOrder owns the pages and
// releases those that it does not return.
func inOrder(pages []*page.Page) ([]*page.Page, error) {
	var headings []page.Heading
	for _, p := range pages {
		if len(headings) == 0 {
			headings = slices.Clone(p.Headings)
		}
		p.SortByID()
	}
	pages = slices.DeleteFunc(pages, func(p *page.Page) bool {
		empty := p.Len() == 0
		if empty {
			p.Release()
		}
		return empty
	})
	slices.SortFunc(pages, func(a, b *page.Page) int { return cmp.Compare(a.ID(0), b.ID(0)) })
	ordered := make([]*page.Page, 0, len(pages))
	var highest int64
	for i, p := range pages {
		top := p.ID(p.Len() - 1)
		if len(ordered) == 0 || p.ID(0) > highest {
			ordered = append(ordered, p)
			highest = top
			continue
		}
		last := ordered[len(ordered)-1]
		if !last.Absorb(p) {
			release(ordered)
			release(pages[i:])
			return nil, &transport.AnswerError{Offset: -1, Problem: "the service keeps no order of ids, and the window holds more than 2 GiB of results to be sorted; choose a smaller window"}
		}
		p.Release()
		highest = max(highest, top)
	}
	for _, p := range ordered {
		p.SortByID()
	}
	if len(ordered) > 0 && len(ordered[0].Headings) == 0 {
		ordered[0].Headings = append(ordered[0].Headings, headings...)
	}
	return ordered, nil
}

func release(pages []*page.Page) {
	for _, p := range pages {
		p.Release()
	}
}
