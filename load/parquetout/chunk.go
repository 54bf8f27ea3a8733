package parquetout

import (
	"bytes"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// boundBytes is how long the bounds of a page of texts may be in the page index.
const boundBytes = 16

// chunk holds the finished pages of a column in the open row group, and what the
// footer says of them.
type chunk struct {
	pages   [][]byte
	size    int  // bytes of pages
	plain   bool // the dictionary has grown too large, and pages go without it
	meta    format.ColumnMetaData
	index   format.ColumnIndex
	offsets format.OffsetIndex // from the first page
	rows    int64
}

// endPage encodes the open page, if it has rows, and adds it to the chunk.
func (c *column) endPage(w *pageWriter) error {
	p, k := &c.page, &c.chunk
	if p.rows == 0 {
		return nil
	}
	definitions, repetitions := histogram(p.definitions, c.deepest()), histogram(p.repetitions, c.repeats())
	nulls := 0
	if len(definitions) > 0 {
		nulls = p.count - int(definitions[c.deepest()])
	}
	encoding := format.Plain
	if c.indexed() {
		encoding = format.RLEDictionary
	}
	header := format.DataPageHeaderV2{
		NumValues: int32(p.count), NumNulls: int32(nulls), NumRows: int32(p.rows), Encoding: encoding,
	}
	packed, plain, err := w.data(c, header)
	if err != nil {
		return err
	}
	k.offsets.PageLocations = append(k.offsets.PageLocations, format.PageLocation{
		Offset: int64(k.size), CompressedPageSize: int32(len(packed)), FirstRowIndex: k.rows,
	})
	k.pages, k.size = append(k.pages, bytes.Clone(packed)), k.size+len(packed)
	k.rows += int64(p.rows)
	k.count(format.DataPageV2, encoding, plain, len(packed))
	k.meta.NumValues += int64(p.count)
	k.meta.SizeStatistics.DefinitionLevelHistogram = sum(k.meta.SizeStatistics.DefinitionLevelHistogram, definitions)
	k.meta.SizeStatistics.RepetitionLevelHistogram = sum(k.meta.SizeStatistics.RepetitionLevelHistogram, repetitions)
	k.index.DefinitionLevelHistogram = append(k.index.DefinitionLevelHistogram, definitions...)
	k.index.RepetitionLevelHistogram = append(k.index.RepetitionLevelHistogram, repetitions...)
	if texts, ok := p.values.(*texts); ok {
		k.meta.SizeStatistics.UnencodedByteArrayDataBytes += int64(len(texts.data) - 4*(p.count-nulls))
	}
	c.bound(nulls)
	p.reset()
	if c.indexed() {
		if _, size := c.dict.entries(); size > dictionaryBytes {
			p.values, k.plain = c.plain, true
		}
	}
	return nil
}

// indexed tells whether the open page refers to the dictionary.
func (c *column) indexed() bool { return c.dict != nil && !c.chunk.plain }

// bound takes the bounds of the open page into the statistics and the page index.
func (c *column) bound(nulls int) {
	p, k := &c.page, &c.chunk
	k.meta.Statistics.NullCount += int64(nulls)
	k.index.NullCounts = append(k.index.NullCounts, int64(nulls))
	k.index.NullPages = append(k.index.NullPages, nulls == p.count)
	if nulls == p.count {
		k.index.MinValues = append(k.index.MinValues, []byte{})
		k.index.MaxValues = append(k.index.MaxValues, []byte{})
		return
	}
	least, greatest := p.bounds()
	s := &k.meta.Statistics
	if s.MinValue == nil || p.compare(least, s.MinValue) < 0 {
		s.MinValue = append([]byte{}, least...)
	}
	if s.MaxValue == nil || p.compare(greatest, s.MaxValue) > 0 {
		s.MaxValue = append([]byte{}, greatest...)
	}
	if c.kind == format.ByteArray {
		least, greatest = least[:min(len(least), boundBytes)], cutAbove(greatest)
	}
	k.index.MinValues = append(k.index.MinValues, append([]byte{}, least...))
	k.index.MaxValues = append(k.index.MaxValues, append([]byte{}, greatest...))
}

// cutAbove cuts a text to boundBytes, and returns bytes that are not less than it.
// If there are none, because all that remain are 0xff, the bytes are only a prefix.
func cutAbove(text []byte) []byte {
	if len(text) <= boundBytes {
		return text
	}
	text = bytes.Clone(text[:boundBytes])
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] != 0xff {
			text[i]++
			return text
		}
		text[i] = 0
	}
	return bytes.Repeat([]byte{0xff}, boundBytes)
}

// order tells whether the bounds of all pages rise or fall. Pages of nulls have no
// bounds and do not count.
func (c *column) order() format.BoundaryOrder {
	rise, fall, before, pages := true, true, -1, 0
	for i, null := range c.chunk.index.NullPages {
		if null {
			continue
		}
		if pages++; pages > 1 {
			for _, bounds := range [][][]byte{c.chunk.index.MinValues, c.chunk.index.MaxValues} {
				order := c.plain.compare(bounds[before], bounds[i])
				rise, fall = rise && order <= 0, fall && order >= 0
			}
		}
		before = i
	}
	switch {
	case pages > 1 && rise:
		return format.Ascending
	case pages > 1 && fall:
		return format.Descending
	}
	return format.Unordered
}

// count adds a page to the sizes and the statistics of encodings.
func (k *chunk) count(kind format.PageType, encoding format.Encoding, plain, packed int) {
	k.meta.TotalUncompressedSize += int64(plain)
	k.meta.TotalCompressedSize += int64(packed)
	for i, s := range k.meta.EncodingStats {
		if s.PageType == kind && s.Encoding == encoding {
			k.meta.EncodingStats[i].Count++
			return
		}
	}
	k.meta.EncodingStats = append(k.meta.EncodingStats, format.PageEncodingStats{PageType: kind, Encoding: encoding, Count: 1})
}

// histogram counts how often each level up to deepest occurs. A column without
// levels has none.
func histogram(levels []byte, deepest byte) []int64 {
	if deepest == 0 {
		return nil
	}
	var counts [4]int64
	for _, level := range levels {
		counts[level&3]++
	}
	return slices.Clone(counts[:deepest+1])
}

// sum adds the counts of more to those of to, which may be nil.
func sum(to, more []int64) []int64 {
	if to == nil {
		return slices.Clone(more)
	}
	for i, n := range more {
		to[i] += n
	}
	return to
}
