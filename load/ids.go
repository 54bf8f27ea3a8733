package load

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"sort"
)

// IDs is a set of ids of results, which are not negative. It is never changed, so that
// several goroutines may use it, and sets that are made of others share their blocks. No
// function returns nil, which is empty too, and may stand for a set that is not known.
type IDs []block

// blockIDs is how many ids a block holds at most.
const blockIDs = 128

// block is some ids in ascending order: the first one, and how many ids lie between each
// and the one before it, in as few bits as the largest such gap needs.
type block struct {
	first, last int64
	gaps        []uint64 // that of the first id is 0; words follow that are not used
	n, width    uint8    // ids, and bits of a gap, of which there are at most 63
}

// pack makes a block of ids in ascending order.
func pack(ids []int64) block {
	b := block{first: ids[0], last: ids[len(ids)-1], n: uint8(len(ids))} //nolint:gosec // at most blockIDs
	for i, id := range ids[1:] {
		b.width = max(b.width, uint8(bits.Len64(uint64(id-ids[i]-1)))) //nolint:gosec // they ascend
	}
	b.gaps = make([]uint64, b.words()+2)
	at := ids[0] - 1
	for i, id := range ids {
		gap, word, bit := uint64(id-at-1), i*int(b.width)/64, i*int(b.width)%64 //nolint:gosec // as above
		b.gaps[word], b.gaps[word+1], at = b.gaps[word]|gap<<bit, gap>>(64-bit), id
	}
	return b
}

// words is how many words the gaps take.
func (b block) words() int { return (int(b.n)*int(b.width) + 63) / 64 }

// all gives the ids in ascending order.
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

// IDsOf returns the set of ids, which may be in any order.
func IDsOf(ids ...int64) IDs {
	b := IDsBuilder{loose: slices.Clone(ids)}
	return b.IDs()
}

// IDsBuilder makes a set of ids that come in any order, and more than once.
type IDsBuilder struct {
	sets  []IDs
	loose []int64
}

// mostLoose is how many ids a builder sorts at once. Those before take few bytes each.
const mostLoose = 1 << 15

// Add adds an id.
func (b *IDsBuilder) Add(id int64) {
	if b.loose = append(b.loose, id); len(b.loose) == mostLoose {
		b.settle()
	}
}

func (b *IDsBuilder) settle() {
	slices.Sort(b.loose)
	p := packer{ids: IDs{}}
	for _, id := range slices.Compact(b.loose) {
		p.add(id)
	}
	b.sets, b.loose = append(b.sets, p.done()), b.loose[:0]
}

// IDs returns the set of the ids so far.
func (b *IDsBuilder) IDs() IDs {
	b.settle()
	b.sets = []IDs{UnionOf(b.sets...)}
	return b.sets[0]
}

// packer makes a set of ids and blocks that come in ascending order. A nil one drops them.
type packer struct {
	ids   IDs
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

// share adds a block. It joins small ones.
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

func (p *packer) done() IDs {
	if len(p.loose) > 0 {
		p.ids, p.loose = append(p.ids, pack(p.loose)), p.loose[:0]
	}
	return p.ids
}

// merge gives the ids that are only in s, only in t and in both to packers. It unpacks only
// blocks that overlap.
func (s IDs) merge(t IDs, inS, inT, both *packer) {
	s, t = slices.Clone(s), slices.Clone(t) // cut changes them
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

// cut takes the ids up to end from the first block.
func (s *IDs) cut(end int64) []int64 {
	ids := slices.AppendSeq(make([]int64, 0, blockIDs), (*s)[0].all)
	n := sort.Search(len(ids), func(i int) bool { return ids[i] > end })
	if n == len(ids) {
		*s = (*s)[1:]
	} else {
		(*s)[0] = pack(ids[n:])
	}
	return ids[:n]
}

// Union returns the ids that are in one of two sets.
func (s IDs) Union(t IDs) IDs {
	p := &packer{ids: make(IDs, 0, len(s)+len(t))}
	s.merge(t, p, p, p)
	return p.done()
}

// Intersect returns the ids that are in both sets.
func (s IDs) Intersect(t IDs) IDs {
	p := &packer{ids: IDs{}}
	s.merge(t, nil, nil, p)
	return p.done()
}

// Without returns the ids that are not in t.
func (s IDs) Without(t IDs) IDs {
	p := &packer{ids: IDs{}}
	s.merge(t, p, nil, nil)
	return p.done()
}

// UnionOf returns the ids that are in one of many sets.
func UnionOf(sets ...IDs) IDs {
	switch n := len(sets); n {
	case 0:
		return IDs{}
	case 1:
		return sets[0].Union(nil)
	default: // each id is merged as often as n can be halved
		return UnionOf(sets[:n/2]...).Union(UnionOf(sets[n/2:]...))
	}
}

// Overlap returns the ids that are in one of many sets, and those that are in several.
func Overlap(sets ...IDs) (all, several IDs) {
	n := len(sets) / 2
	if n == 0 {
		return UnionOf(sets...), IDs{}
	}
	lower, twice := Overlap(sets[:n]...)
	upper, more := Overlap(sets[n:]...)
	return lower.Union(upper), UnionOf(lower.Intersect(upper), twice, more)
}

// Between returns the ids from least to most.
func (s IDs) Between(least, most int64) IDs {
	p := packer{ids: IDs{}}
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
func (s IDs) Contains(id int64) bool {
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

// All gives the ids in ascending order.
func (s IDs) All() iter.Seq[int64] {
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

// Len returns how many ids there are.
func (s IDs) Len() (n int) {
	for _, b := range s {
		n += int(b.n)
	}
	return n
}

// String shows the ids.
func (s IDs) String() string { return fmt.Sprint(slices.Collect(s.All())) }

// IsEmpty tells whether there are no ids.
func (s IDs) IsEmpty() bool { return len(s) == 0 }

// Intersects tells whether an id is in both sets.
func (s IDs) Intersects(t IDs) bool { return !s.Intersect(t).IsEmpty() }

// Equal tells whether two sets hold the same ids.
func (s IDs) Equal(t IDs) bool { return s.Len() == t.Len() && s.Without(t).IsEmpty() }

// Min returns the least id. There must be one.
func (s IDs) Min() int64 { return s[0].first }

// Max returns the greatest id. There must be one.
func (s IDs) Max() int64 { return s[len(s)-1].last }

// At returns the id that has n smaller ones. There must be one.
func (s IDs) At(n int) int64 {
	for ; n >= int(s[0].n); s = s[1:] {
		n -= int(s[0].n)
	}
	return slices.Collect(s[0].all)[n]
}
