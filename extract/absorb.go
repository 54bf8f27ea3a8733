package extract

import (
	"cmp"
	"math"
	"slices"
)

// inOrder brings pages into ascending order of id, across pages too. No id is
// in two of them. Pages whose ids overlap become one. It takes the pages over;
// those that it does not return are released.
func inOrder(pages []*Page) ([]*Page, error) {
	var headings []Heading
	for _, p := range pages {
		if len(headings) == 0 {
			headings = slices.Clone(p.Headings)
		}
		p.SortByID()
	}
	pages = slices.DeleteFunc(pages, func(p *Page) bool {
		empty := p.Len() == 0
		if empty {
			p.Release()
		}
		return empty
	})
	slices.SortFunc(pages, func(a, b *Page) int { return cmp.Compare(a.ID(0), b.ID(0)) })
	ordered := make([]*Page, 0, len(pages))
	var highest int64
	for i, p := range pages {
		top := p.ID(p.Len() - 1)
		if len(ordered) == 0 || p.ID(0) > highest {
			ordered = append(ordered, p)
			highest = top
			continue
		}
		last := ordered[len(ordered)-1]
		if len(last.text)+len(p.text) > math.MaxInt32 {
			release(ordered)
			release(pages[i:])
			return nil, &AnswerError{Offset: -1, Problem: "the service keeps no order of ids, and the window holds more than 2 GiB of results to be sorted; choose a smaller window"}
		}
		last.absorb(p)
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

func release(pages []*Page) {
	for _, p := range pages {
		p.Release()
	}
}

// absorb appends the results of q to p. Views into p stay valid until its
// Release; q is unchanged. Their texts are not larger than 2 GiB together.
func (p *Page) absorb(q *Page) {
	if len(p.Headings) == 0 {
		p.Headings = append(p.Headings, q.Headings...)
	}
	p.Replaced += q.Replaced
	fields := make([]int32, len(q.Fields))
	for i, f := range q.Fields {
		fields[i] = p.fieldLike(f)
	}
	text, values, cells := int32(len(p.text)), int32(len(p.values)), int32(len(p.cells)) //nolint:gosec // bounded by a window's pages
	p.text = append(p.text, q.text...)
	for _, v := range q.values {
		p.values = append(p.values, span{v.start + text, v.end + text})
	}
	for _, c := range q.cells {
		c.Field = fields[c.Field]
		c.first += values
		p.cells = append(p.cells, c)
	}
	for _, r := range q.results {
		p.results = append(p.results, result{r.id, r.first + cells, r.last + cells})
	}
}

func (p *Page) fieldLike(f Field) int32 {
	for i, g := range p.Fields {
		if g.Kind == f.Kind && g.ID == f.ID {
			return int32(i) //nolint:gosec // fields of a form
		}
	}
	p.Fields = append(p.Fields, f)
	return int32(len(p.Fields) - 1) //nolint:gosec // fields of a form
}
