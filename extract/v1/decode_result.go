package v1

import (
	"bytes"
	"strconv"

	"github.com/formetl/formetl/extract/page"
)

// readResults reads the result elements inside the results element.
func (d *decoder) readResults() error {
	s := &d.scan
	d.layout.Reset()
	return s.children(func(name []byte) error {
		switch string(name) {
		case "result":
			if d.Page.Len() == page.MaxResults {
				return s.TooMany(int(s.name.Start), "results", page.MaxResults)
			}
			return d.readResult()
		case "headings":
			return d.readHeadings(0)
		}
		return s.skip()
	})
}

// readResult reads one result.
func (d *decoder) readResult() error {
	s := &d.scan
	start := int(s.name.Start)
	if id, ok := s.attr("id"); ok {
		d.Result(s.ResultID(id, start))
	} else {
		s.NoteWrong(start, "a result without an id")
		d.Result(0)
	}
	d.layout.Result()
	return s.children(func(name []byte) error {
		switch string(name) {
		case "metas":
			return d.readCells(page.KindMeta)
		case "items":
			return d.readCells(page.KindItem)
		}
		return s.skip()
	})
}

// readCells reads the meta elements under metas, or the item elements under items.
func (d *decoder) readCells(kind page.Kind) error {
	s := &d.scan
	for {
		field := d.guessCell(kind)
		if field < 0 {
			more, err := s.child()
			if err != nil || !more {
				return err
			}
			if string(s.Bytes(s.name)) == kind.String() {
				field = d.fieldOf(kind)
			}
			if field < 0 {
				if err := s.skip(); err != nil {
					return err
				}
				continue
			}
			d.layout.Follow(field)
		}
		if err := d.readCell(kind, field); err != nil {
			return err
		}
	}
}

// readCell reads the values of the cell whose start tag was read last.
func (d *decoder) readCell(kind page.Kind, field int32) error {
	d.Cell(field)
	if kind == page.KindItem {
		return d.readItem()
	}
	if d.takeValue(metaEnd) {
		return nil
	}
	text, err := d.readText()
	if err == nil {
		d.Value(text)
	}
	return err
}

// takeValue reads a value if endTag follows its text directly, and returns false with nothing read
// if not, because of an entity or a comment for example: readText reads such a value.
func (d *decoder) takeValue(endTag string) bool {
	s := &d.scan
	i := textEnd(s.Buf, s.Pos)
	if s.pending || !isAt(s.Buf, i, endTag) {
		return false
	}
	d.Value(page.Span{Start: int32(s.Pos), End: int32(i)})
	s.Pos, s.open = i+len(endTag), s.open[:len(s.open)-1]
	return true
}

// guessCell reads the start tag of a cell if d.layout predicts it. It returns the index of the
// field, or -1 if the prediction was wrong and nothing was read.
func (d *decoder) guessCell(kind page.Kind) int32 {
	s := &d.scan
	if s.pending || len(s.open) >= page.MaxDepth {
		return -1
	}
	at := blanksEnd(s.Buf, s.Pos)
	field, _ := d.layout.Guess(s.Buf, at, uint8(kind))
	if field >= 0 {
		tag := d.layout.Slots[field].Tag
		s.opened(at, at+int(tag.End-tag.Start), len(kind.String()))
	}
	return field
}

// fieldOf returns the index of the field of the meta or item whose start tag was read last, -1
// for an element without an id.
func (d *decoder) fieldOf(kind page.Kind) int32 {
	s := &d.scan
	id, _ := s.attr("id")
	if len(id) == 0 {
		s.NoteWrong(int(s.name.Start), "one of a result's "+kind.String()+" elements has no id")
		return -1
	}
	field, added := d.Field(kind, id)
	if added {
		d.layout.Add()
	}
	if added && kind == page.KindItem {
		f := &d.Page.Fields[field]
		t, _ := s.attr("type")
		f.Type = d.Intern(t)
		if index, ok := s.attr("index"); ok {
			// An index that is no number counts as missing, because it only orders columns.
			if n, err := strconv.Atoi(string(bytes.Trim(index, page.Blanks))); err == nil {
				f.Index = n
			}
		}
	}
	slot := &d.layout.Slots[field]
	slot.Place, slot.Tag = uint8(kind), page.Span{}
	if !s.Rewrote && !s.pending {
		slot.Tag = page.Span{Start: s.name.Start - 1, End: int32(s.Pos)}
	}
	return field
}

// The tags around the text of most cells.
const (
	metaEnd  = "</meta>"
	valueTag = "<value>"
	valueEnd = "</value>"
	itemEnd  = "</item>"
)

// readItem reads the values of the item whose start tag was read last. If the item has no
// value element, but text, that text is its value, including text inside other elements.
func (d *decoder) readItem() error {
	s := &d.scan
	found := 0            // number of value elements that were read
	d.texts = d.texts[:0] // the item's own texts, which count only without a value element
	for {
		ev := eventStart
		at := blanksEnd(s.Buf, s.Pos)
		if isAt(s.Buf, at, valueTag) && s.opened(at, at+len(valueTag), len("value")) {
			if d.takeValue(valueEnd) {
				if found++; isAt(s.Buf, s.Pos, itemEnd) {
					s.Pos, s.open = s.Pos+len(itemEnd), s.open[:len(s.open)-1]
					return nil
				}
				continue
			}
		} else {
			var err error
			if ev, err = s.next(); err != nil {
				return err
			}
			if ev == eventStart && string(s.Bytes(s.name)) != "value" {
				if err := d.readTexts(); err != nil {
					return err
				}
				continue
			}
		}
		switch ev {
		case eventEnd:
			if found > 0 {
				return nil
			}
			if own := s.join(d.texts); len(bytes.TrimLeft(s.Bytes(own), page.Blanks)) > 0 {
				d.Value(own)
			}
			return nil
		case eventText:
			d.texts = append(d.texts, s.text)
		case eventStart:
			text, err := d.readText()
			if err != nil {
				return err
			}
			d.Value(text)
			found++
		}
	}
}
