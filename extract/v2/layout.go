package v2

import (
	"bytes"

	"github.com/formetl/formetl/extract/page"
)

// layout remembers the steps in which a page's results were read, which are mostly the
// same in each. A step's tag is all that stands between the value before and its own
// value, such as `,{"id":"7","position":2,"value":"`. So the decoder guesses the next
// step and compares bytes. Only after a wrong guess it parses names and looks up the
// field.
type layout struct {
	steps []step // stepID, stepItems, and then one for each field of the page
	start int32  // guessed first step of a result; -1: none
	prev  int32  // the step read last in this result; -1: none
}

// The first two steps. Those of fields follow.
const (
	stepID int32 = iota
	stepItems
	fieldSteps
)

// stepKind is what a step's tag leads to.
type stepKind uint8

const (
	kindNone   stepKind = iota
	kindID              // the text of the result's id
	kindMeta            // the text of a meta
	kindDate            // the text of a meta that is a date
	kindItems           // the first element of a result's items
	kindValue           // the text of an item's value
	kindValues          // the first element of an item's values
)

// ofItem tells whether the step belongs into the array of items.
func (k stepKind) ofItem() bool { return k >= kindValue }

type step struct {
	tag    page.Span // empty if it cannot be compared
	next   int32     // the step that follows it, as far as no guess was right; -1: none
	row    int32     // the result that had it last
	kind   stepKind
	first  bool // no comma begins the tag
	nested bool // the result of row had it in an object of its own
}

func (l *layout) reset() {
	l.steps = append(l.steps[:0], step{next: -1}, step{next: -1})
	l.start, l.prev = -1, -1
}

// follow records that a step came next.
func (l *layout) follow(step int32) {
	if l.prev < 0 {
		l.start = step
	} else {
		l.steps[l.prev].next = step
	}
	l.prev = step
}

// guess reads the tag that the layout predicts. It tries the guessed step, and then
// those after it, because a result may lack fields. first tells that the object or array
// has no member or element yet. guess returns the step, or -1 with nothing read.
func (d *decoder) guess(first, items bool) int32 {
	l, s := &d.layout, &d.scan
	at := l.start
	if l.prev >= 0 {
		at = l.steps[l.prev].next
	}
	for range 3 {
		if at < 0 {
			return -1
		}
		known := &l.steps[at]
		if known.kind.ofItem() != items {
			return -1
		}
		if known.first == first && known.tag.Start < known.tag.End && bytes.HasPrefix(s.buf[s.pos:], s.bytes(known.tag)) {
			s.pos += int(known.tag.End - known.tag.Start)
			l.prev = at
			return at
		}
		at = known.next
	}
	return -1
}

// learn records a step and its tag. The tag begins at from and ends where end is. It
// cannot be compared later if an escape in it was decoded.
func (d *decoder) learn(at int32, kind stepKind, first bool, from, end int) {
	known := &d.layout.steps[at]
	known.kind, known.first, known.tag = kind, first, page.Span{}
	if !d.scan.rewrote && end > from {
		known.tag = page.Span{Start: int32(from), End: int32(end)}
	}
	d.layout.follow(at)
}

// field returns the step of a field, which is added if it is new.
func (d *decoder) field(kind page.Kind, id []byte) (at int32, added bool) {
	field, added := d.Field(kind, id)
	if added {
		d.layout.steps = append(d.layout.steps, step{next: -1})
	}
	return field + fieldSteps, added
}
