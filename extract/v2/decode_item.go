package v2

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/formetl/formetl/extract/page"
)

// readItemsMember reads the value of a result's member items at s.Pos. For first and from see
// readMember.
func (d *decoder) readItemsMember(first bool, from int) error {
	s := &d.scan
	switch s.Buf[s.Pos] {
	case 'n':
		return s.skip()
	case '[':
	default:
		s.NoteWrong(s.Pos, "the items of a result are not an array")
		return s.skip()
	}
	if err := s.enter(); err != nil {
		return err
	}
	d.learn(slotItems, kindItems, first, d.tag(from, s.Pos))
	d.once(slotItems, s.Pos, "items")
	return d.readItems()
}

// readItems reads the items of a result, after the opening bracket of the array.
func (d *decoder) readItems() error {
	s := &d.scan
	for first := true; ; first = false {
		if at := d.guess(place(true, first)); at >= 0 {
			if err := d.readGuessedItem(at); err != nil {
				return err
			}
			continue
		}
		from := s.Pos
		more, err := s.more(first, ']')
		if err != nil || !more {
			return err
		}
		if s.Buf[s.Pos] != '{' {
			s.NoteWrong(s.Pos, "an item is not an object")
			err = s.skip()
		} else {
			err = d.readItem(first, from)
		}
		if err != nil {
			return err
		}
	}
}

// item holds what was read of the object of an item.
type item struct {
	id, position page.Span
	value        page.Span
	hasID        bool
	hasValue     bool // it has a member value
	hasValues    bool // it has an array of values, which are in decoder.entries
	tag          page.Span
	kind         uint8 // what tag leads to, see layout.go
}

// readGuessedItem reads the item whose tag was just read, to the end of its object.
func (d *decoder) readGuessedItem(at int32) (err error) {
	s := &d.scan
	s.open++ // the object
	i := item{hasID: true}
	start := s.Pos
	if d.known[at].kind == kindValue {
		i.hasValue = true
		i.value, err = s.text(start)
	} else {
		i.hasValues = true
		s.open++
		err = d.readEntries()
	}
	if err != nil {
		return err
	}
	if s.Pos < len(s.Buf) && s.Buf[s.Pos] == '}' {
		s.Pos++
		s.open--
	} else if err := d.readItemMembers(&i, false, -1); err != nil {
		return err
	}
	return d.addItem(&i, at-fieldSlots, start)
}

// readItem reads an item at s.Pos whose tag was not guessed. For first and from see readMember.
func (d *decoder) readItem(first bool, from int) error {
	s := &d.scan
	start := s.Pos
	if err := s.enter(); err != nil {
		return err
	}
	s.Rewrote = false
	var i item
	if err := d.readItemMembers(&i, true, from); err != nil {
		return err
	}
	id := s.Bytes(i.id)
	if len(id) == 0 {
		s.NoteWrong(start, "an item of a result has no id")
		return nil
	}
	at, added := d.field(page.KindItem, id)
	d.Page.Fields[at-fieldSlots].Plain = i.hasValue || d.Page.Fields[at-fieldSlots].Plain
	if added && i.position.End > 0 {
		// A position that is no number counts as missing, because it only orders columns.
		if n, err := strconv.Atoi(string(s.Bytes(i.position))); err == nil {
			d.Page.Fields[at-fieldSlots].Index = n
		}
	}
	d.learn(at, i.kind, first, i.tag)
	return d.addItem(&i, at-fieldSlots, start)
}

// readItemMembers reads the members of an item's object to its end. The item's tag begins at
// from, and ends where the first value or values begin after the id. It is not looked for
// if from is negative.
func (d *decoder) readItemMembers(i *item, first bool, from int) error {
	s := &d.scan
	return s.members(first, func(name []byte) (err error) {
		start := s.Pos
		switch string(name) {
		case "id":
			return d.readOnce(&i.id, &i.hasID, `an item whose "id" is an object or an array`, `a second "id" in one item`)
		case "position":
			i.position, _, err = s.scalar(`an item whose "position" is an object or an array`)
			return err
		case "value", "values":
			if from >= 0 && i.hasID && i.kind == kindNone && (s.Buf[start] == '"' || s.Buf[start] == '[') {
				i.tag, i.kind = d.tag(from, start+1), kindValue
				if s.Buf[start] == '[' {
					i.kind = kindValues
				}
			}
			return d.readItemValue(i)
		}
		return s.skip()
	})
}

// readOnce reads a scalar at pos into text, unless it is null. has tells that there is
// one already.
func (d *decoder) readOnce(text *page.Span, has *bool, shape, twice string) error {
	start := d.scan.Pos
	read, ok, err := d.scan.scalar(shape)
	if err != nil || !ok {
		return err
	}
	if *has {
		d.scan.NoteWrong(start, twice)
		return nil
	}
	*text, *has = read, true
	return nil
}

// readItemValue reads the member value or values of an item at s.Pos. An item has one of the
// two (service-v2.md, section 6). The type decides, not the name: an array holds several
// values, anything else is one value.
func (d *decoder) readItemValue(i *item) error {
	s := &d.scan
	start := s.Pos
	if s.Buf[start] == 'n' {
		return s.word("null")
	}
	if i.hasValue || i.hasValues {
		s.NoteWrong(start, `an item with more than one "value" or "values"`)
		return s.skip()
	}
	if s.Buf[start] != '[' {
		return d.readOnce(&i.value, &i.hasValue, "an item's value that is an object", "")
	}
	if err := s.enter(); err != nil {
		return err
	}
	i.hasValues = true
	return d.readEntries()
}

// addItem adds an item with its values to the result. start is the offset of the item's value.
func (d *decoder) addItem(i *item, field int32, start int) error {
	n := 2
	if i.hasValues {
		n = 1 + max(1, len(d.entries))
	}
	if err := d.room(n, start); err != nil {
		return err
	}
	d.Cell(field)
	switch {
	case i.hasValue:
		d.Value(i.value)
	case i.hasValues && len(d.entries) == 0:
		d.Value(page.Span{}) // an empty array is an item without an answer, like the text ""
	case i.hasValues:
		for _, e := range d.entries {
			d.Value(e.text)
			if e.typed {
				d.Label(e.label)
			}
		}
	}
	return nil
}

// entry is one element of an item's values.
type entry struct {
	text     page.Span
	label    page.Span // the choice's label, if text was typed for it
	typed    bool
	position int // position of the choice on the form, from 0
	placed   bool
}

// readEntries reads the elements of an item's values after the opening bracket. If all
// have positions, they are put in that order, which the service does not promise
// (service-v2.md, section 6).
func (d *decoder) readEntries() error {
	s := &d.scan
	d.entries = d.entries[:0]
	placed := true
	for first := true; ; first = false {
		more, err := s.more(first, ']')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if len(d.entries) > d.spare {
			return d.room(len(d.entries), s.Pos)
		}
		e, ok, err := d.readEntry()
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		placed = placed && e.placed
		d.entries = append(d.entries, e)
	}
	if placed {
		slices.SortStableFunc(d.entries, func(a, b entry) int { return cmp.Compare(a.position, b.position) })
	}
	return nil
}

// The texts of an entry as the service writes it.
var (
	positionTag = []byte(`{"position":`)
	valueTag    = []byte(`,"value":"`)
)

// readEntry reads one element of an item's values at s.Pos. ok is false for an element
// without a text. For an "other" choice the entry has the typed text and the choice's label.
func (d *decoder) readEntry() (e entry, ok bool, err error) {
	s := &d.scan
	switch {
	case s.Buf[s.Pos] != '{':
		e.text, ok, err = s.scalar("an element of an item's values that is an array")
		return e, ok, err
	case bytes.HasPrefix(s.Buf[s.Pos:], positionTag):
		if e, ok := d.takeEntry(); ok {
			return e, true, nil
		}
	}
	if err := s.enter(); err != nil {
		return e, false, err
	}
	var value, other, position page.Span
	var hasValue, hasOther, hasPosition bool
	err = s.members(true, func(name []byte) error {
		switch string(name) {
		case "value":
			return d.readOnce(&value, &hasValue, `a choice whose "value" is an object or an array`, `a second "value" in one choice`)
		case "other":
			return d.readOnce(&other, &hasOther, `a choice whose "other" is an object or an array`, `a second "other" in one choice`)
		case "position":
			return d.readOnce(&position, &hasPosition, `a choice whose "position" is an object or an array`, `a second "position" in one choice`)
		}
		return s.skip()
	})
	if err != nil {
		return e, false, err
	}
	if e.text = value; other.End > other.Start {
		e.text, e.label, e.typed = other, value, true
	}
	if hasPosition {
		n, err := strconv.Atoi(string(s.Bytes(position)))
		e.position, e.placed = n, err == nil
	}
	return e, hasValue || hasOther, nil
}

// takeEntry reads an entry that holds a position and a value without escapes, and nothing
// else. For any other entry it reads nothing and returns false.
func (d *decoder) takeEntry() (e entry, ok bool) {
	s := &d.scan
	i := s.Pos + len(positionTag)
	end := digitsEnd(s.Buf, i)
	n := end - i
	if n == 0 || n > 9 || n > 1 && s.Buf[i] == '0' || !bytes.HasPrefix(s.Buf[end:], valueTag) || s.open >= page.MaxDepth {
		return e, false
	}
	for ; i < end; i++ {
		e.position = e.position*10 + int(s.Buf[i]-'0')
	}
	start := end + len(valueTag)
	i = textEnd(s.Buf, start)
	if i+1 >= len(s.Buf) || s.Buf[i] != '"' || s.Buf[i+1] != '}' {
		return e, false
	}
	e.text, e.placed = page.Span{Start: int32(start), End: int32(i)}, true
	s.Pos = i + 2
	return e, true
}
