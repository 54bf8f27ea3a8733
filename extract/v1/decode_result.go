package v1

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// layout remembers the fields and start tags of a page's results, which are mostly
// the same in each. So the decoder guesses the next cell's tag and compares bytes.
// Only after a wrong guess it parses attributes and looks up the field.
type layout struct {
	known []knownField // one for each field of the page
	start int32        // guessed first field of a result; -1: none
	prev  int32        // the field read last in this result; -1: none
}

type knownField struct {
	kind page.Kind
	tag  page.Span // its last start tag, empty if that cannot be compared
	next int32     // the field that follows it, as far as no guess was right; -1: none
}

func (l *layout) reset() {
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
func (d *decoder) readResults() error {
	s := &d.scan
	d.layout.reset()
	return s.children(func(name []byte) error {
		switch string(name) {
		case "result":
			if d.Page.Len() == maxResults {
				return s.problem(transport.FaultBeyond, int(s.name.Start), "more results than the bound of "+strconv.Itoa(maxResults))
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
	id, err := d.resultID()
	if err != nil {
		return err
	}
	d.Result(id)
	d.layout.prev = -1
	return d.scan.children(func(name []byte) error {
		switch string(name) {
		case "metas":
			return d.readCells(page.KindMeta)
		case "items":
			return d.readCells(page.KindItem)
		}
		return d.scan.skip()
	})
}

// resultID reads the id of the result whose start tag was read last.
func (d *decoder) resultID() (int64, error) {
	s := &d.scan
	text, ok := s.attr("id")
	if !ok {
		return 0, s.problem(transport.FaultWrong, int(s.name.Start), "a result without an id")
	}
	text = bytes.Trim(text, blanks)
	id, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return 0, s.problem(transport.FaultWrong, int(s.name.Start), "a result whose id is not a number from 0 to 9223372036854775807")
	}
	return int64(id), nil
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
			if string(s.bytes(s.name)) != kind.String() {
				if err := s.skip(); err != nil {
					return err
				}
				continue
			}
			if field, err = d.fieldOf(kind); err != nil {
				return err
			}
			d.layout.follow(field)
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

// takeValue reads the text of the innermost open element and its end tag, if the text
// holds no reference and no >. Else it reads nothing and returns false. It is faster than
// readText.
func (d *decoder) takeValue(end tag) bool {
	s := &d.scan
	i := textEnd(s.buf, s.pos)
	if s.pending || !end.at(s.buf, i) {
		return false
	}
	d.Value(page.Span{Start: int32(s.pos), End: int32(i)})
	s.pos, s.open = i+end.size, s.open[:len(s.open)-1]
	return true
}

// guessCell reads the start tag of a cell if layout predicts it. It tries the
// guessed field, and then those after it, because a result may lack fields.
// It returns the field, or -1 with nothing read.
func (d *decoder) guessCell(kind page.Kind) int32 {
	field := d.layout.guess()
	for range 3 {
		if field < 0 {
			return -1
		}
		known := &d.layout.known[field]
		if known.kind != kind {
			return -1
		}
		if known.tag.Start < known.tag.End && d.scan.take(d.scan.bytes(known.tag), len(kind.String())) {
			d.layout.prev = field
			return field
		}
		field = known.next
	}
	return -1
}

// fieldOf returns the field of the meta or item whose start tag was read last.
func (d *decoder) fieldOf(kind page.Kind) (int32, error) {
	s := &d.scan
	id, ok := s.attr("id")
	if !ok || len(id) == 0 {
		return 0, s.problem(transport.FaultWrong, int(s.name.Start), "no id: one of a result's "+kind.String()+" elements has none")
	}
	var tag page.Span
	if !s.rewrote && !s.pending {
		tag = page.Span{Start: s.name.Start - 1, End: int32(s.pos)}
	}
	field, added := d.Field(kind, id)
	if !added {
		d.layout.known[field].tag = tag
		return field, nil
	}
	d.layout.known = append(d.layout.known, knownField{kind: kind, tag: tag, next: -1})
	if kind == page.KindItem {
		f := &d.Page.Fields[field]
		t, _ := s.attr("type")
		f.Type = d.Intern(t)
		if index, ok := s.attr("index"); ok {
			// An index that is no number counts as none, because it only orders columns.
			if n, err := strconv.Atoi(string(bytes.Trim(index, blanks))); err == nil {
				f.Index = n
			}
		}
	}
	return field, nil
}

// The tags around the text of most cells.
var (
	metaEnd  = shortTag("</meta>")
	valueTag = shortTag("<value>")
	valueEnd = shortTag("</value>")
	itemEnd  = shortTag("</item>")
	// numberedTags are the tags of the first values of an item that has several.
	numberedTags = func() (tags [16][]byte) {
		for i := range tags {
			tags[i] = fmt.Appendf(nil, `<value index="%d">`, i+1)
		}
		return tags
	}()
)

// readItem reads the values of the item whose start tag was read last. An
// item without a value element that holds text has that text as its value,
// also text inside other elements.
func (d *decoder) readItem() error {
	s := &d.scan
	found := 0            // number of value elements that were read
	d.texts = d.texts[:0] // the item's own texts, which count only without a value element
	for {
		ev := eventStart
		if s.takeShort(valueTag, len("value")) || found < len(numberedTags) && s.take(numberedTags[found], len("value")) {
			if d.takeValue(valueEnd) {
				if found++; itemEnd.at(s.buf, s.pos) {
					s.pos, s.open = s.pos+itemEnd.size, s.open[:len(s.open)-1]
					return nil
				}
				continue
			}
		} else {
			var err error
			if ev, err = s.next(); err != nil {
				return err
			}
			if ev == eventStart && string(s.bytes(s.name)) != "value" {
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
			if own := s.join(d.texts); len(bytes.TrimLeft(s.bytes(own), blanks)) > 0 {
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
