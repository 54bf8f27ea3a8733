package page

// Layout remembers in which order the metas and items of a result came (its slots), because most
// results of a page have the same order. So a decoder guesses the next slot and compares bytes.
// Only after a wrong guess it parses names and looks up the field.
type Layout struct {
	Slots []Slot
	start int32 // guessed first slot of a result; -1: none
	prev  int32 // the slot read last in this result; -1: none
}

// Slot is one meta or item of a result, or another part that comes once in a result.
type Slot struct {
	Tag   Span  // the text before the slot's value when it was read last; empty: not comparable
	Place uint8 // where in a result the slot was; each decoder numbers its places
	next  int32 // the slot that followed when no guess was right; -1: none
}

// Reset forgets all slots.
func (l *Layout) Reset() { l.Slots, l.start, l.prev = l.Slots[:0], -1, -1 }

// Add adds a slot, which has no Tag yet.
func (l *Layout) Add() { l.Slots = append(l.Slots, Slot{next: -1}) }

// Result begins the next result.
func (l *Layout) Result() { l.prev = -1 }

// Follow records that slot came next in the result.
func (l *Layout) Follow(slot int32) {
	if l.prev < 0 {
		l.start = slot
	} else {
		l.Slots[l.prev].next = slot
	}
	l.prev = slot
}

// Guess returns the slot at a place whose tag comes next in text, and the tag's length. found is
// -1 if no guess was right. Guess tries the slot that followed last time, and then the two after
// it, because a result may lack fields.
func (l *Layout) Guess(text []byte, at int, place uint8) (found int32, length int) {
	guess := l.start
	if l.prev >= 0 {
		guess = l.Slots[l.prev].next
	}
	for range 3 {
		if guess < 0 {
			return -1, 0
		}
		slot := &l.Slots[guess]
		n := int(slot.Tag.End - slot.Tag.Start)
		if slot.Place == place && n > 0 && n <= len(text)-at && string(text[at:at+n]) == string(text[slot.Tag.Start:slot.Tag.End]) {
			l.prev = guess
			return guess, n
		}
		guess = slot.next
	}
	return -1, 0
}
