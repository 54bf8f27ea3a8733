// Package idset holds sets of result ids in little memory: blocks of ids in ascending order,
// of which the gaps are packed into as few bits as the largest one needs. Sets share blocks.
// A service gives ids in ascending order, so a set of five million takes a few megabytes, and
// as many bytes on disk (Encode). The package knows nothing of parts and manifests.
//
// Begin reading with Set.
package idset

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"sort"
)

// Set is a set of ids of results, which are not negative. A Set is never changed, so that
// several goroutines may use it, and sets that are made of other sets share their blocks. No
// function returns nil, which is an empty set too, and may stand for a set that is not known.
type Set []block

// blockIDs is how many ids a block of a Set holds at most.
const blockIDs = 128

// block holds some ids in ascending order: the first id, and how many ids lie between each id
// and the one before it, in as few bits as the largest such gap needs.
type block struct {
	first, last int64
	gaps        []uint64 // packed gaps between ids, the first id's being 0; two unused words follow
	n, width    uint8    // number of ids, and bits of a gap, at most 63
}

// pack makes a block of ids in ascending order.
func pack(ids []int64) block {
	b := block{first: ids[0], last: ids[len(ids)-1], n: uint8(len(ids))} //nolint:gosec // at most blockIDs
	for i, id := range ids[1:] {
		b.width = max(b.width, uint8(bits.Len64(uint64(id-ids[i]-1)))) //nolint:gosec // ids ascend
	}
	b.gaps = make([]uint64, b.words()+2)
	at := ids[0] - 1
	for i, id := range ids {
		gap, word, bit := uint64(id-at-1), i*int(b.width)/64, i*int(b.width)%64 //nolint:gosec // ids ascend
		b.gaps[word], b.gaps[word+1], at = b.gaps[word]|gap<<bit, gap>>(64-bit), id
	}
	return b
}

// words is how many 64-bit words the gaps of the block take.
func (b block) words() int { return (int(b.n)*int(b.width) + 63) / 64 }

// all yields the block's ids in ascending order.
func (b block) all(yield func(int64) bool) {
	id := b.first - 1
	for i := range int(b.n) {
		word, bit := i*int(b.width)/64, i*int(b.width)%64
		id += 1 + int64((b.gaps[word]>>bit|b.gaps[word+1]<<(64-bit))&(1<<b.width-1)) //nolint:gosec // at most 63 bits
		if !yield(id) {
			return
		}
	}
}

// Of returns the set of the given ids, which may be in any order.
func Of(ids ...int64) Set {
	b := Builder{loose: slices.Clone(ids)}
	return b.Set()
}

// Builder makes a set of ids that come in any order, and more than once.
type Builder struct {
	sets  []Set
	loose []int64
}

// mostLoose is how many ids a Builder sorts at once. Ids that were sorted before take few
// bytes each.
const mostLoose = 1 << 15

// Add adds an id to the set.
func (b *Builder) Add(id int64) {
	if b.loose = append(b.loose, id); len(b.loose) == mostLoose {
		b.settle()
	}
}

func (b *Builder) settle() {
	slices.Sort(b.loose)
	p := packer{ids: Set{}}
	for _, id := range slices.Compact(b.loose) {
		p.add(id)
	}
	b.sets, b.loose = append(b.sets, p.done()), b.loose[:0]
}

// Set returns the set of the ids that were added so far.
func (b *Builder) Set() Set {
	b.settle()
	b.sets = []Set{Union(b.sets...)}
	return b.sets[0]
}

// packer makes a Set of ids and blocks that come in ascending order. A nil packer drops them.
type packer struct {
	ids   Set
	loose []int64
}

func (p *packer) add(id int64) {
	if p == nil {
		return
	}
	if p.loose = append(p.loose, id); len(p.loose) == blockIDs {
		p.done()
	}
}

// share adds a block to the packer's Set, without copying it if it is large. Small blocks are
// joined.
func (p *packer) share(b block) {
	if p == nil {
		return
	}
	if n := len(p.loose) + int(b.n); n <= blockIDs/2 || len(p.loose) > 0 && n <= blockIDs {
		for id := range b.all {
			p.add(id)
		}
		return
	}
	p.ids = append(p.done(), b)
}

func (p *packer) done() Set {
	if len(p.loose) > 0 {
		p.ids, p.loose = append(p.ids, pack(p.loose)), p.loose[:0]
	}
	return p.ids
}

// merge gives packers the ids that are only in s, only in t and in both. It unpacks only
// blocks that overlap.
func (s Set) merge(t Set, inS, inT, both *packer) {
	s, t = slices.Clone(s), slices.Clone(t) // cut changes the copies of s and t
	for len(s)+len(t) > 0 {
		switch {
		case len(t) == 0 || len(s) > 0 && s[0].last < t[0].first:
			inS.share(s[0])
			s = s[1:]
		case len(s) == 0 || t[0].last < s[0].first:
			inT.share(t[0])
			t = t[1:]
		default:
			end := min(s[0].last, t[0].last)
			a, b := s.cut(end), t.cut(end)
			for len(a)+len(b) > 0 {
				switch {
				case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
					inS.add(a[0])
					a = a[1:]
				case len(a) == 0 || b[0] < a[0]:
					inT.add(b[0])
					b = b[1:]
				default:
					both.add(a[0])
					a, b = a[1:], b[1:]
				}
			}
		}
	}
}

// cut takes the ids up to end out of the set's first block, and returns them.
func (s *Set) cut(end int64) []int64 {
	ids := slices.AppendSeq(make([]int64, 0, blockIDs), (*s)[0].all)
	n := sort.Search(len(ids), func(i int) bool { return ids[i] > end })
	if n == len(ids) {
		*s = (*s)[1:]
	} else {
		(*s)[0] = pack(ids[n:])
	}
	return ids[:n]
}

// Union returns the ids that are in s, in t or in both.
func (s Set) Union(t Set) Set {
	p := &packer{ids: make(Set, 0, len(s)+len(t))}
	s.merge(t, p, p, p)
	return p.done()
}

// Intersect returns the ids that are in both sets.
func (s Set) Intersect(t Set) Set {
	p := &packer{ids: Set{}}
	s.merge(t, nil, nil, p)
	return p.done()
}

// Without returns the ids of s that are not in t.
func (s Set) Without(t Set) Set {
	p := &packer{ids: Set{}}
	s.merge(t, p, nil, nil)
	return p.done()
}

// Union returns the ids that are in at least one of the sets.
func Union(sets ...Set) Set {
	switch n := len(sets); n {
	case 0:
		return Set{}
	case 1:
		return sets[0].Union(nil)
	default: // each id is merged as often as the number of sets can be halved
		return Union(sets[:n/2]...).Union(Union(sets[n/2:]...))
	}
}

// Overlap returns the ids that are in at least one of the sets, and those that are in two or
// more of them.
func Overlap(sets ...Set) (all, several Set) {
	n := len(sets) / 2
	if n == 0 {
		return Union(sets...), Set{}
	}
	lower, twice := Overlap(sets[:n]...)
	upper, more := Overlap(sets[n:]...)
	return lower.Union(upper), Union(lower.Intersect(upper), twice, more)
}

// Between returns the set's ids from least to most, both included.
func (s Set) Between(least, most int64) Set {
	p := packer{ids: Set{}}
	for _, b := range s {
		switch {
		case b.last < least || b.first > most:
		case b.first >= least && b.last <= most:
			p.share(b)
		default:
			for id := range b.all {
				if least <= id && id <= most {
					p.add(id)
				}
			}
		}
	}
	return p.done()
}

// Contains tells whether an id is in the set.
func (s Set) Contains(id int64) bool {
	i, _ := slices.BinarySearchFunc(s, id, func(b block, id int64) int { return cmp.Compare(b.last, id) })
	if i < len(s) {
		for has := range s[i].all {
			if has >= id {
				return has == id
			}
		}
	}
	return false
}

// All yields the set's ids in ascending order.
func (s Set) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, b := range s {
			for id := range b.all {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// Len returns the number of ids in the set.
func (s Set) Len() (n int) {
	for _, b := range s {
		n += int(b.n)
	}
	return n
}

// String returns the set's ids as text, for tests and messages.
func (s Set) String() string { return fmt.Sprint(slices.Collect(s.All())) }

// IsEmpty tells whether the set has no ids.
func (s Set) IsEmpty() bool { return len(s) == 0 }

// Intersects tells whether any id is in both sets.
func (s Set) Intersects(t Set) bool { return !s.Intersect(t).IsEmpty() }

// Equal tells whether two sets hold the same ids.
func (s Set) Equal(t Set) bool { return s.Len() == t.Len() && s.Without(t).IsEmpty() }

// Min returns the set's least id. The set must not be empty.
func (s Set) Min() int64 { return s[0].first }

// Max returns the set's greatest id. The set must not be empty.
func (s Set) Max() int64 { return s[len(s)-1].last }
