package v2

import "github.com/formetl/formetl/extract/page"

// The first two slots of a layout; those of the fields follow. A slot's tag is the text
// between the value before and its own value, such as `,{"id":"7","position":2,"value":"`.
const (
	slotID int32 = iota
	slotItems
	fieldSlots
)

// What stands after a slot's tag.
const (
	kindNone   uint8 = iota
	kindID           // the text of the result's id
	kindMeta         // the text of a meta
	kindItems        // the first element of a result's items
	kindValue        // the text of an item's value
	kindValues       // the first element of an item's values
)

// known holds what is known of a slot besides its page.Slot.
type known struct {
	kind uint8
	row  int32 // number of the last result that had the slot
}

// addSlot adds a slot to the layout and to d.known.
func (d *decoder) addSlot() {
	d.layout.Add()
	d.known = append(d.known, known{})
}

// place numbers the place of a slot for the layout: in a result or among its items, and first there
// or not.
func place(items, first bool) (place uint8) {
	if items {
		place = 2
	}
	if first {
		place++
	}
	return place
}

// guess reads the tag that the layout predicts for a place. It returns the slot, or -1 if the
// prediction was wrong and nothing was read.
func (d *decoder) guess(place uint8) int32 {
	s := &d.scan
	at, length := d.layout.Guess(s.Buf, s.Pos, place)
	s.Pos += length
	return at
}

// tag returns the span of a tag from from to end. The span is empty if an escape in the tag was
// decoded in place, because the tag cannot be compared later then.
func (d *decoder) tag(from, end int) page.Span {
	if d.scan.Rewrote {
		return page.Span{}
	}
	return page.Span{Start: int32(from), End: int32(end)}
}

// learn records that the slot came next, its tag, and the kind of value that follows the tag.
func (d *decoder) learn(at int32, kind uint8, first bool, tag page.Span) {
	d.known[at].kind = kind
	slot := &d.layout.Slots[at]
	slot.Place, slot.Tag = place(kind >= kindValue, first), tag
	d.layout.Follow(at)
}

// field returns the slot of a field. It adds the slot if the field is new.
func (d *decoder) field(kind page.Kind, id []byte) (at int32, added bool) {
	field, added := d.Field(kind, id)
	if added {
		d.addSlot()
	}
	return field + fieldSlots, added
}
