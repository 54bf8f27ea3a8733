package pipelines

import "encoding/binary"

// seenSums add up packs, by the numbers of columns. Numbers need no lock: only
// the texts that they stand for are shared.
type seenSums []seenSum

// seenSum is what the windows so far hold of a column.
type seenSum struct {
	there     bool
	filled    int64
	itemType  int // its number and 1, 0 for none
	index     int
	many      bool
	choices   []choiceSum // by number
	different int         // of them that are there
}

type choiceSum struct {
	there bool // in a window, however often
	count int64
}

// add adds the pack of a later window.
func (s *seenSums) add(data []byte) {
	in := packReader(data)
	for column := 0; len(in) > 0; {
		column += in.int()
		*s = longEnough(*s, column)
		(*s)[column].add(&in)
	}
}

func (s *seenSum) add(in *packReader) {
	s.there = true
	s.filled += in.int64()
	if t := in.int(); t != 0 {
		s.itemType = t
	}
	if i := in.int(); i != 0 {
		s.index = i
	}
	n := in.int()
	if n == 0 {
		s.many = true
		return
	}
	for value := 0; n > 1; n-- {
		value += in.int()
		s.choices = longEnough(s.choices, value)
		c := &s.choices[value]
		if c.count += in.int64(); !c.there {
			c.there = true
			s.different++
		}
	}
}

// longEnough gives a list that has a place of the number.
func longEnough[S ~[]E, E any](list S, at int) S {
	if at < len(list) {
		return list
	}
	return append(list, make(S, at+1-len(list))...)
}

// packReader reads the numbers of a pack. Packs never leave the process: they
// are whole.
type packReader []byte

func (r *packReader) int64() int64 {
	n, size := binary.Uvarint(*r)
	*r = (*r)[size:]
	return int64(n) //nolint:gosec // as it was packed
}

func (r *packReader) int() int { return int(r.int64()) }
