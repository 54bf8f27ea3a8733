package pipelines

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// What the rows of each window were seen to hold is known until the run ends:
// any window may be read again, and every output sums over windows of its own.
// As maps of texts that would take windows × columns × choices, 220 KiB for a
// window of 300 items with five choices each. So a run keeps each text once,
// and a window a few bytes of numbers for each column.

// mostSeenValues is how many different values of a column a run keeps. A sum
// calls a column Many beyond transform.MostChoices; the rest is room for those
// of readings that were replaced, which no window holds any more. A column with
// yet more is Many in the run: nothing more of its values is kept, and every sum
// says so, also one over a few windows that hold few of them.
const mostSeenValues = 2 * transform.MostChoices

// seenDictionary numbers the columns, item types and values that the windows of
// a run name. Numbers are never given anew. It may be used by several at once,
// and holds its lock by itself: under formRun.mu too.
type seenDictionary struct {
	mu      sync.Mutex
	columns []seenColumn
	numbers map[schemas.Source]int
	types   numbered // of items
	room    []byte   // of the last pack
}

// seenColumn is what a run knows of a column's values.
type seenColumn struct {
	from   schemas.Source
	values numbered
	many   bool // they are not kept
}

// numbered are texts and their numbers, in the order of their coming.
type numbered struct {
	texts   []string
	numbers map[string]int
}

func (n *numbered) number(text string) int {
	at, known := n.numbers[text]
	if known {
		return at
	}
	if n.numbers == nil {
		n.numbers = map[string]int{}
	}
	at = len(n.texts)
	n.texts, n.numbers[text] = append(n.texts, text), at
	return at
}

// packedSeen is what the rows of one window hold, in numbers of a dictionary:
// for each column its number less the one before, the rows that hold a value,
// the item's type, its place, and how many choices there are and one more, or 0
// for many; of each choice its number less the one before, and its count. The
// zero value is of a window of which nothing was seen.
type packedSeen struct {
	of   *seenDictionary
	data []byte
}

// pack takes in what was seen of a window, as a sum would have it.
func (d *seenDictionary) pack(seen map[schemas.Source]transform.Seen) packedSeen {
	if len(seen) == 0 {
		return packedSeen{}
	}
	var sum transform.Stats
	sum.Add(transform.Stats{Seen: seen}) // records of others may hold what is none of ours
	d.mu.Lock()
	defer d.mu.Unlock()
	at := make(map[int]transform.Seen, len(sum.Seen))
	numbers := make([]int, 0, len(sum.Seen))
	for from, s := range sum.Seen {
		n := d.column(from)
		at[n], numbers = s, append(numbers, n)
	}
	slices.Sort(numbers)
	d.room = d.room[:0]
	before := 0
	for _, n := range numbers {
		d.room = binary.AppendUvarint(d.room, uint64(n-before)) //nolint:gosec // they ascend
		d.packColumn(&d.columns[n], at[n])
		before = n
	}
	return packedSeen{of: d, data: bytes.Clone(d.room)}
}

// column is the number of a column.
func (d *seenDictionary) column(from schemas.Source) int {
	n, known := d.numbers[from]
	if !known {
		if d.numbers == nil {
			d.numbers = map[schemas.Source]int{}
		}
		n = len(d.columns)
		d.numbers[from], d.columns = n, append(d.columns, seenColumn{from: from})
	}
	return n
}

// packColumn appends what was seen of one column to the pack at hand.
func (d *seenDictionary) packColumn(c *seenColumn, s transform.Seen) {
	add := func(n int64) { d.room = binary.AppendUvarint(d.room, uint64(n)) } //nolint:gosec // read back as it was
	itemType := 0
	if s.ItemType != "" {
		itemType = 1 + d.types.number(s.ItemType)
	}
	add(s.Filled)
	add(int64(itemType))
	add(int64(s.Index))
	choices := c.number(s.Choices)
	if s.Many || c.many {
		add(0)
		return
	}
	add(1 + int64(len(choices)))
	before := 0
	for _, choice := range choices {
		add(int64(choice.value - before))
		add(choice.count)
		before = choice.value
	}
}

// seenChoice is a choice by its number.
type seenChoice struct {
	value int
	count int64
}

// number gives choices by their numbers, in order. Where they are too many for
// the run the column keeps none of them any more.
func (c *seenColumn) number(choices map[string]int64) []seenChoice {
	list := make([]seenChoice, 0, len(choices))
	for text, n := range choices {
		if c.many {
			return nil
		}
		list = append(list, seenChoice{c.values.number(text), n})
		if len(c.values.texts) > mostSeenValues {
			c.values, c.many = numbered{}, true
		}
	}
	slices.SortFunc(list, func(a, b seenChoice) int { return cmp.Compare(a.value, b.value) })
	return list
}

// unpack gives what was packed. A column that is Many in the run by now is Many
// here.
func (p packedSeen) unpack() map[schemas.Source]transform.Seen {
	return sumSeen([]packedSeen{p})
}

// sumSeen gives the sum of packs of one dictionary, in order of time: what
// transform.Stats.Add makes of what was packed, but for columns that are Many in
// the run.
func sumSeen(packs []packedSeen) map[schemas.Source]transform.Seen {
	var d *seenDictionary
	var sums seenSums
	for _, p := range packs {
		if p.of != nil {
			d = p.of
			sums.add(p.data)
		}
	}
	if d == nil {
		return nil
	}
	return d.named(sums)
}

// soFar are the choices that the run has met until now, by column. Counts are of
// no meaning.
func (d *seenDictionary) soFar() map[schemas.Source]transform.Seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	met := make(map[schemas.Source]transform.Seen, len(d.columns))
	for i := range d.columns {
		c := &d.columns[i]
		s := transform.Seen{Many: c.many, Choices: make(map[string]int64, len(c.values.texts))}
		for _, text := range c.values.texts {
			s.Choices[text] = 1
		}
		met[c.from] = s
	}
	return met
}

// seenIn is the sum of what the rows of windows hold.
func seenIn(windows []*windowRun) map[schemas.Source]transform.Seen {
	packs := make([]packedSeen, 0, len(windows))
	for _, w := range windows {
		packs = append(packs, w.seen)
	}
	return sumSeen(packs)
}

// named gives a sum by the texts of its numbers.
func (d *seenDictionary) named(sums seenSums) map[schemas.Source]transform.Seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	named := make(map[schemas.Source]transform.Seen, len(sums))
	for i := range sums {
		s, c := &sums[i], &d.columns[i]
		if !s.there {
			continue
		}
		seen := transform.Seen{Filled: s.filled, Index: s.index, Many: s.many || c.many || s.different > transform.MostChoices}
		if s.itemType > 0 {
			seen.ItemType = d.types.texts[s.itemType-1]
		}
		if !seen.Many && s.different > 0 {
			seen.Choices = make(map[string]int64, s.different)
			for value, choice := range s.choices {
				if choice.there {
					seen.Choices[c.values.texts[value]] = choice.count
				}
			}
		}
		named[c.from] = seen
	}
	return named
}
