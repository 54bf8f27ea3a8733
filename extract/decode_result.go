package extract

import (
	"bytes"
	"strconv"
)

// layout remembers how the results of a page are laid out. Results of a form
// have the same fields in the same order, mostly with the same tags, so the
// decoder guesses the next cell's tag and compares bytes; only a wrong guess
// costs reading attributes and a look-up.
type layout struct {
	index [2]map[string]int32 // field by id, for metas and for items
	known []knownField        // one for each field of the page
	start int32               // guess for the first field of a result; -1: none
	prev  int32               // the field read last in this result; -1: none
}

type knownField struct {
	tag  span  // its last start tag, empty if that cannot be compared
	next int32 // the field that followed it last; -1: none
}

func (l *layout) reset() {
	clear(l.index[0])
	clear(l.index[1])
	l.known, l.start, l.prev = l.known[:0], -1, -1
}

// guess returns the field that is likely to come next, -1 if unknown.
func (l *layout) guess() int32 {
	if l.prev < 0 {
		return l.start
	}
	return l.known[l.prev].next
}

// follow records that field came next.
func (l *layout) follow(field int32) {
	if l.prev < 0 {
		l.start = field
	} else {
		l.known[l.prev].next = field
	}
	l.prev = field
}

// readResults reads the result elements under results.
func (p *Page) readResults(bounds Bounds) error {
	s := &p.scan
	p.layout.reset()
	for {
		more, err := s.child()
		if err != nil || !more {
			return err
		}
		switch string(s.bytes(s.name)) {
		case "result":
			if len(p.results) == bounds.Results {
				return s.beyond(int(s.name.start), "more results than the bound of "+strconv.Itoa(bounds.Results))
			}
			err = p.readResult()
		case "headings":
			err = p.readHeadings(0)
		default:
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
}

// readResult reads one result.
func (p *Page) readResult() error {
	s := &p.scan
	id, err := p.resultID()
	if err != nil {
		return err
	}
	r := result{id: id, first: int32(len(p.cells))}
	p.layout.prev = -1
	for {
		more, err := s.child()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		switch string(s.bytes(s.name)) {
		case "metas":
			err = p.readCells(KindMeta)
		case "items":
			err = p.readCells(KindItem)
		default:
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
	r.last = int32(len(p.cells))
	p.results = append(p.results, r)
	return nil
}

// resultID reads the id of the result whose start tag was read last.
func (p *Page) resultID() (int64, error) {
	s := &p.scan
	text, ok := s.attr("id")
	if !ok {
		return 0, s.wrong(int(s.name.start), "a result without an id")
	}
	text = bytes.Trim(text, blanks)
	id, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return 0, s.wrong(int(s.name.start), "a result whose id is not a number from 0 to 9223372036854775807")
	}
	return int64(id), nil
}

// readCells reads the meta elements under metas, or the item elements under items.
func (p *Page) readCells(kind Kind) error {
	s := &p.scan
	for {
		field := p.guessCell(kind)
		if field < 0 {
			more, err := s.child()
			if err != nil || !more {
				return err
			}
			if string(s.bytes(s.name)) != kind.String() {
				if err := s.skip(); err != nil {
					return err
				}
				continue
			}
			if field, err = p.fieldOf(kind); err != nil {
				return err
			}
		}
		p.layout.follow(field)
		if err := p.readCell(kind, field); err != nil {
			return err
		}
	}
}

// readCell reads the values of the cell whose start tag was read last.
func (p *Page) readCell(kind Kind, field int32) error {
	c := Cell{Field: field, first: int32(len(p.values))}
	if kind == KindItem {
		if err := p.readItem(); err != nil {
			return err
		}
	} else {
		text, err := p.readText()
		if err != nil {
			return err
		}
		p.values = append(p.values, text)
	}
	c.Values = int32(len(p.values)) - c.first
	p.cells = append(p.cells, c)
	return nil
}

// guessCell reads the start tag of a cell if it is one that the layout
// predicts: the guess or, where a result lacks a field, the one after it. It
// returns the field, or -1 with nothing read.
func (p *Page) guessCell(kind Kind) int32 {
	field := p.layout.guess()
	for range 2 {
		if field < 0 || p.Fields[field].Kind != kind {
			return -1
		}
		known := p.layout.known[field]
		if known.tag.start < known.tag.end && p.scan.take(p.scan.bytes(known.tag), len(kind.String())) {
			return field
		}
		field = known.next
	}
	return -1
}

// fieldOf returns the field of the meta or item whose start tag was read last.
func (p *Page) fieldOf(kind Kind) (int32, error) {
	s := &p.scan
	id, ok := s.attr("id")
	if !ok || len(id) == 0 {
		return 0, s.wrong(int(s.name.start), "no id: one of a result's "+kind.String()+" elements has none")
	}
	var tag span
	if !s.rewrote && !s.pending {
		tag = span{s.name.start - 1, int32(s.pos)}
	}
	byID := &p.layout.index[kind-1]
	field, ok := (*byID)[string(id)]
	if ok {
		p.layout.known[field].tag = tag
		return field, nil
	}
	field = int32(len(p.Fields))
	f := Field{Kind: kind, ID: p.intern(id)}
	if kind == KindItem {
		t, _ := s.attr("type")
		f.Type = p.intern(t)
		if index, ok := s.attr("index"); ok {
			// One that is no number is as good as none: it only orders columns.
			if n, err := strconv.Atoi(string(bytes.Trim(index, blanks))); err == nil {
				f.Index = n
			}
		}
	}
	p.Fields = append(p.Fields, f)
	p.layout.known = append(p.layout.known, knownField{tag: tag, next: -1})
	if *byID == nil {
		*byID = make(map[string]int32)
	}
	(*byID)[f.ID] = field
	return field, nil
}

var valueTag = []byte("<value>")

// readItem reads the values of the item whose start tag was read last. An
// item without a value element that holds text has that text as its value.
func (p *Page) readItem() error {
	s := &p.scan
	before := len(p.values)
	var direct span // the item's own text, of no interest once it has a value
	for {
		ev := eventStart
		if !s.take(valueTag, len("value")) {
			var err error
			if ev, err = s.next(); err != nil {
				return err
			}
			if ev == eventStart && string(s.bytes(s.name)) != "value" {
				if err := s.skip(); err != nil {
					return err
				}
				continue
			}
		}
		switch ev {
		case eventEnd:
			if len(p.values) == before && !isBlank(s.bytes(direct)) {
				p.values = append(p.values, direct)
			}
			return nil
		case eventText:
			if len(p.values) == before {
				direct = s.join(direct)
			}
		case eventStart:
			text, err := p.readText()
			if err != nil {
				return err
			}
			p.values = append(p.values, text)
		}
	}
}
