package v2

import "github.com/formetl/formetl/extract/page"

// The first two slots of a layout. Those of fields follow. A slot's tag is all that stands
// between the value before and its own value, such as `,{"id":"7","position":2,"value":"`.
const (
	slotID int32 = iota
	slotItems
	fieldSlots
)

// What a slot's tag leads to.
const (
	kindNone   uint8 = iota
	kindID           // the text of the result's id
	kindMeta         // the text of a meta
	kindItems        // the first element of a result's items
	kindValue        // the text of an item's value
	kindValues       // the first element of an item's values
)

// known is what is known of a slot besides its place in the layout.
type known struct {
	kind uint8
	row  int32 // number of the result that had it last
}

// addSlot adds a slot of the layout.
func (d *decoder) addSlot() {
	d.layout.Add()
	d.known = append(d.known, known{})
}

// place names the place of a slot: in a result or among its items, first there or not.
func place(items, first bool) (place uint8) {
	if items {
		place = 2
	}
	if first {
		place++
	}
	return place
}

// guess reads the tag that the layout predicts for a place. It returns the slot, or -1 with
// nothing read.
func (d *decoder) guess(place uint8) int32 {
	s := &d.scan
	at, length := d.layout.Guess(s.Buf, s.Pos, place)
	s.Pos += length
	return at
}

// tag returns the span of a tag. It is empty if an escape in it was decoded, so that it
// cannot be compared later.
func (d *decoder) tag(from, end int) page.Span {
	if d.scan.Rewrote {
		return page.Span{}
	}
	return page.Span{Start: int32(from), End: int32(end)}
}

// learn records a slot and its tag.
func (d *decoder) learn(at int32, kind uint8, first bool, tag page.Span) {
	d.known[at].kind = kind
	slot := &d.layout.Slots[at]
	slot.Place, slot.Tag = place(kind >= kindValue, first), tag
	d.layout.Follow(at)
}

// field returns the slot of a field, which is added if it is new.
func (d *decoder) field(kind page.Kind, id []byte) (at int32, added bool) {
	field, added := d.Field(kind, id)
	if added {
		d.addSlot()
	}
	return field + fieldSlots, added
}
