package extract

// absorb appends the results of q to p. Views into p stay valid until its
// Release; q is unchanged.
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
