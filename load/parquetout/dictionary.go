package parquetout

import (
	"bytes"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go/encoding/rle"
)

// dictionary holds the values of an open page as indexes into a dictionary, which
// all pages of a row group share.
type dictionary interface {
	values
	// entries returns the number of entries and their bytes without lengths.
	entries() (n, bytes int)
	// encodeEntries writes the entries over dst in PLAIN encoding, and returns it.
	encodeEntries(dst []byte) []byte
	// forget removes all entries.
	forget()
}

// newDictionary returns an empty dictionary for a scalar type that can get one. The
// values of its pages are kept in m.
func newDictionary(t arrow.DataType, m memory) dictionary {
	x := indexes{all: m.ids}
	if t.ID() == arrow.STRING {
		if m.texts == nil {
			m.texts = map[string]int32{}
		}
		return &textDictionary{indexes: x, ids: m.texts}
	}
	return &numberDictionary{indexes: x, numeric: numericOf(t), ids: map[int64]int32{}, rows: m.rows}
}

// indexes holds, for each value of a page, the index of its entry.
type indexes struct {
	all []int32
	// last holds, for each entry, the page in which bounds saw it last.
	last []int
	page int
}

func (x *indexes) size() int { return 4 * len(x.all) }

func (x *indexes) encode(dst []byte) ([]byte, error) {
	return (&rle.DictionaryEncoding{}).EncodeInt32(dst, x.all)
}

func (x *indexes) reset() { x.all = x.all[:0] }

// used calls f for each entry that the page uses, once. There are n entries.
func (x *indexes) used(n int, f func(id int32)) {
	x.page++
	for len(x.last) < n {
		x.last = append(x.last, 0)
	}
	for _, id := range x.all {
		if x.last[id] != x.page {
			x.last[id] = x.page
			f(id)
		}
	}
}

type textDictionary struct {
	indexes
	ids     map[string]int32
	texts   []string
	bytes   int
	largest int       // most entries at once
	guesses [64]int32 // entries met before, see idOf
}

func (d *textDictionary) add(arr arrow.Array, from, to int) int {
	a, valid, n := arr.(*array.String), validityOf(arr), 0
	for row := from; row < to; row++ {
		if !valid.at(row) {
			continue
		}
		text := a.Value(row)
		n += 4 + len(text)
		d.all = append(d.all, d.idOf(text))
	}
	return n
}

// idOf returns the entry of a text. Most columns have few entries, and a guess by the
// length and the last byte costs less than the map.
func (d *textDictionary) idOf(text string) int32 {
	at := len(text)
	if at > 0 {
		at += int(text[at-1]) << 2
	}
	guess := &d.guesses[at%len(d.guesses)]
	if int(*guess) < len(d.texts) && d.texts[*guess] == text {
		return *guess
	}
	id, known := d.ids[text]
	if !known {
		text = strings.Clone(text) // the batch is released before the dictionary is written
		id = int32(len(d.texts))
		d.ids[text] = id
		d.texts = append(d.texts, text)
		d.bytes += len(text)
	}
	*guess = id
	return id
}

func (d *textDictionary) bounds() (least, greatest []byte) {
	lo := d.texts[d.all[0]]
	hi := lo
	d.used(len(d.texts), func(id int32) { lo, hi = min(lo, d.texts[id]), max(hi, d.texts[id]) })
	return []byte(lo), []byte(hi)
}

func (d *textDictionary) compare(a, b []byte) int { return bytes.Compare(a, b) }

func (d *textDictionary) entries() (n, bytes int) { return len(d.texts), d.bytes }

func (d *textDictionary) encodeEntries(dst []byte) []byte {
	dst = dst[:0]
	for _, text := range d.texts {
		dst = appendText(dst, text)
	}
	return dst
}

func (d *textDictionary) forget() {
	d.largest = max(d.largest, len(d.texts))
	clear(d.ids)
	clear(d.texts)
	d.texts, d.bytes = d.texts[:0], 0
}

// keptTexts is how many entries a dictionary may have whose memory is kept.
const keptTexts = 4096

// keepable returns the memory of an empty dictionary, or nil if it is too large.
func (d *textDictionary) keepable() map[string]int32 {
	if d.largest > keptTexts {
		return nil
	}
	return d.ids
}

type numberDictionary struct {
	numeric
	indexes
	ids     map[int64]int32 // by the bits, so that -0 and what is not a number survive
	numbers []int64
	rows    []int64
}

func (d *numberDictionary) add(arr arrow.Array, from, to int) int {
	d.rows = appendRows(d.rows[:0], arr, from, to)
	for _, n := range d.rows {
		id, known := d.ids[n]
		if !known {
			id = int32(len(d.numbers))
			d.ids[n] = id
			d.numbers = append(d.numbers, n)
		}
		d.all = append(d.all, id)
	}
	return d.width * len(d.rows)
}

func (d *numberDictionary) bounds() (least, greatest []byte) {
	d.rows = d.rows[:0]
	d.used(len(d.numbers), func(id int32) { d.rows = append(d.rows, d.numbers[id]) })
	lo, hi := d.numeric.bounds(d.rows)
	return d.appendNumber(nil, lo), d.appendNumber(nil, hi)
}

func (d *numberDictionary) entries() (n, bytes int) { return len(d.numbers), d.width * len(d.numbers) }

func (d *numberDictionary) encodeEntries(dst []byte) []byte {
	return d.appendNumbers(dst[:0], d.numbers)
}

func (d *numberDictionary) forget() {
	clear(d.ids)
	d.numbers = d.numbers[:0]
}
