package page

// Others says what becomes of the texts that people typed beside the choices of items, by item id.
type Others struct {
	// Inline are the items whose typed texts stay in place of the choice's label.
	Inline map[string]bool
	// Choices are the choices of items. Where an answer does not tell typed texts from choices
	// (Page.Tells), a value that is none of these was typed. Items that are not in it, and empty
	// values, stay as they are.
	Choices map[string]map[string]bool
}

// Part moves typed texts out of the values of their items. Each result gets a cell with its typed
// texts behind the item's cell, of a field of KindOther with the item's id. The item keeps the
// label of the choice, or nothing if the answer does not tell it. A second call finds nothing to
// move.
func (p *Page) Part(o Others) {
	if p.Tells && len(p.labels) == 0 || !p.Tells && len(o.Choices) == 0 {
		return
	}
	fields := make(map[int32]int32) // for items with typed texts, the fields of those
	cells := make([]Cell, 0, len(p.cells)+len(p.labels))
	for r := range p.results {
		first := len(cells)
		for _, c := range p.Cells(r) {
			field, texts := c.Field, len(p.values)
			if x := p.Fields[field]; x.Kind == KindItem && !o.Inline[x.ID] {
				c.Values = p.part(c, o.Choices[x.ID])
			}
			cells = append(cells, c)
			if len(p.values) == texts {
				continue
			}
			if fields[field] == 0 {
				fields[field] = int32(len(p.Fields)) //nolint:gosec // a field takes some bytes of text
				p.Fields = append(p.Fields, Field{Kind: KindOther, ID: p.Fields[field].ID, Index: p.Fields[field].Index})
			}
			cells = append(cells, Cell{Field: fields[field], first: int32(texts), Values: int32(len(p.values) - texts)}) //nolint:gosec // a value takes some bytes of text
		}
		p.results[r].first, p.results[r].last = int32(first), int32(len(cells)) //nolint:gosec // a cell takes some bytes of text
	}
	p.cells = cells
	clear(p.labels)
}

// part appends the typed texts among the values of an item's cell to the page's values, and
// returns how many values stay in the cell. choices is nil if they are not known.
func (p *Page) part(c Cell, choices map[string]bool) (stay int32) {
	for i := range c.Values {
		v := p.values[c.first+i]
		label, typed := p.labels[c.first+i]
		unknown := !p.Tells && choices != nil && v.End > v.Start && !choices[string(p.text[v.Start:v.End])]
		if typed || unknown {
			p.values = append(p.values, v)
			v = label
		}
		if !unknown {
			p.values[c.first+stay] = v
			stay++
		}
	}
	return stay
}
