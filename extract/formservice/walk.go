package formservice

import (
	"math"
	"math/bits"
	"sort"
)

// selection is what the date and id bounds of a request select, all inclusive.
type selection struct {
	from, to     int64 // wall-clock seconds, read only if dated
	dated        bool  // there is a date bound: results without a date do not match
	minID, maxID int64
	desc         bool // the order of a walk

	// exact is what decides near the ends of from and to where whole seconds
	// of a wall clock cannot; nil: from and to are the bounds themselves.
	exact *exactDates
}

// everything selects every result, by ascending id.
var everything = selection{minID: math.MinInt64, maxID: math.MaxInt64}

func (s selection) hasDate(id, date int64, dated bool) bool {
	return !s.dated || dated && s.from <= date && date <= s.to && (s.exact == nil || s.exact.within(id, date))
}

// sure returns the dates between which every result is one of the selection.
func (s selection) sure() (from, to int64) {
	if s.exact == nil {
		return s.from, s.to
	}
	return s.from + s.exact.fromSlack, s.to - s.exact.toSlack
}

func (s selection) matches(r *record) bool {
	return s.minID <= r.id && r.id <= s.maxID && s.hasDate(r.id, r.date, r.dated)
}

// before tells whether id a comes before id b in a walk.
func (s selection) before(a, b int64) bool { return (a < b) != s.desc && a != b }

// heldCursor walks the held results of a selection.
type heldCursor struct {
	held []*record
	s    selection
	i    int
}

func (st *stored) heldCursor(s selection) *heldCursor {
	c := &heldCursor{held: st.held, s: s}
	if s.desc {
		c.i = sort.Search(len(st.held), func(i int) bool { return st.held[i].id > s.maxID }) - 1
	} else {
		c.i = sort.Search(len(st.held), func(i int) bool { return st.held[i].id >= s.minID })
	}
	c.settle()
	return c
}

// settle moves on to a result that matches.
func (c *heldCursor) settle() {
	for c.i >= 0 && c.i < len(c.held) && !c.s.matches(c.held[c.i]) {
		c.step()
	}
}

func (c *heldCursor) step() {
	if c.s.desc {
		c.i--
	} else {
		c.i++
	}
}

// next returns the result that the cursor stands at, ok false at the end.
func (c *heldCursor) next() (id int64, ok bool) {
	if c.i < 0 || c.i >= len(c.held) {
		return 0, false
	}
	return c.held[c.i].id, true
}

// walk calls yield with the ids of a selection in its order, but for the first
// skip of them, until yield returns false. A block of the base that is skipped
// whole costs one mask: O(blocks + held results passed + ids given).
func (st *stored) walk(s selection, skip int, yield func(id int64) bool) {
	held := st.heldCursor(s)
	emit := func(id int64) bool {
		if skip > 0 {
			skip--
			return true
		}
		return yield(id)
	}
	heldBefore := func(limit int64, bounded bool) bool {
		for {
			id, ok := held.next()
			if !ok || bounded && !s.before(id, limit) {
				return true
			}
			if !emit(id) {
				return false
			}
			held.step()
			held.settle()
		}
	}
	for b := range st.base.blocks(s) {
		mask := st.base.mask(b, s) &^ st.masked[b]
		if mask == 0 {
			continue
		}
		if n := bits.OnesCount64(mask); skip >= n {
			next, ok := held.next()
			if !ok || s.before(st.base.id(b*blockSize+lastBit(mask, s.desc)), next) {
				skip -= n
				continue
			}
		}
		for mask != 0 {
			bit := firstBit(mask, s.desc)
			mask &^= 1 << bit
			id := st.base.id(b*blockSize + bit)
			if !heldBefore(id, true) || !emit(id) {
				return
			}
		}
	}
	heldBefore(0, false)
}

func firstBit(mask uint64, desc bool) int64 {
	if desc {
		return int64(63 - bits.LeadingZeros64(mask))
	}
	return int64(bits.TrailingZeros64(mask))
}

func lastBit(mask uint64, desc bool) int64 { return firstBit(mask, !desc) }

// count returns the number of results of a selection: O(1) without a date
// bound, else a mask for every 64 results whose date may lie in the bounds.
func (st *stored) count(s selection) int {
	n := 0
	for _, r := range st.held {
		if s.matches(r) {
			n++
		}
	}
	if st.base != nil && !s.dated {
		first, end := st.base.numbers(s)
		n += int(max(0, end-first))
		for b, masked := range st.masked {
			n -= bits.OnesCount64(st.base.clip(b, masked, s))
		}
		return n
	}
	for b := range st.base.blocks(s) {
		n += bits.OnesCount64(st.base.mask(b, s) &^ st.masked[b])
	}
	return n
}
