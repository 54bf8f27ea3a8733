package parquetout

import (
	"bytes"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// signedType makes decimals in FIXED_LEN_BYTE_ARRAY compare as signed numbers.
// parquet-go v0.32.0 compares them as unsigned bytes, so that -1 would be the
// maximum of its page. A reader that skips pages and row groups by their
// statistics would miss rows. The library also builds a wrong index of such a
// column after a page of nulls. signedType replaces only the bounds. The column
// gets no dictionary, because a dictionary computes its own bounds.
type signedType struct {
	parquet.Type
}

// Compare compares two's complement numbers of one width: it returns -1 if a < b, 0 if equal, 1 if
// a > b.
func (signedType) Compare(a, b parquet.Value) int {
	return compareSigned(a.ByteArray(), b.ByteArray())
}

// NewColumnBuffer returns the type's own buffer, with signed bounds.
func (t signedType) NewColumnBuffer(column, values int) parquet.ColumnBuffer {
	return signedBuffer{t.Type.NewColumnBuffer(column, values)}
}

// NewColumnIndexer returns an indexer that keeps signed bounds.
func (signedType) NewColumnIndexer(int) parquet.ColumnIndexer { return &signedIndexer{} }

func compareSigned(a, b []byte) int {
	if len(a) == 0 || len(b) == 0 || (a[0]^b[0])&0x80 == 0 {
		return bytes.Compare(a, b)
	}
	if a[0]&0x80 != 0 {
		return -1
	}
	return 1
}

type signedBuffer struct{ parquet.ColumnBuffer }

// Page returns the buffer's page, with signed bounds.
func (b signedBuffer) Page() parquet.Page { return signedPage{b.ColumnBuffer.Page()} }

// Clone returns a copy of the buffer, with signed bounds.
func (b signedBuffer) Clone() parquet.ColumnBuffer { return signedBuffer{b.ColumnBuffer.Clone()} }

type signedPage struct{ parquet.Page }

// Slice returns the values [i, j) of the page, with signed bounds.
func (p signedPage) Slice(i, j int64) parquet.Page { return signedPage{p.Page.Slice(i, j)} }

// Bounds returns the least and the greatest number of the page. ok is false if the page is empty.
func (p signedPage) Bounds() (least, greatest parquet.Value, ok bool) {
	values := p.Data()
	data, width := values.FixedLenByteArray()
	if width == 0 || len(data) < width {
		return parquet.Value{}, parquet.Value{}, false
	}
	lo, hi := data[:width], data[:width]
	for v := range slices.Chunk(data, width) {
		switch {
		case compareSigned(v, lo) < 0:
			lo = v
		case compareSigned(v, hi) > 0:
			hi = v
		}
	}
	return parquet.FixedLenByteArrayValue(lo), parquet.FixedLenByteArrayValue(hi), true
}

// signedIndexer collects the index of a column of signed numbers. It declares the pages unordered,
// which is correct for every column. A reader then scans the index instead of searching it.
type signedIndexer struct{ index format.ColumnIndex }

// Reset removes all pages from the index.
func (x *signedIndexer) Reset() { x.index = format.ColumnIndex{} }

// IndexPage adds a page: its number of values and of nulls, and its bounds.
func (x *signedIndexer) IndexPage(values, nulls int64, least, greatest parquet.Value) {
	x.index.NullPages = append(x.index.NullPages, values == nulls)
	x.index.NullCounts = append(x.index.NullCounts, nulls)
	// The library reuses the page's memory, so the bounds are copied.
	x.index.MinValues = append(x.index.MinValues, bytes.Clone(least.ByteArray()))
	x.index.MaxValues = append(x.index.MaxValues, bytes.Clone(greatest.ByteArray()))
}

// ColumnIndex returns the index of the pages that were added.
func (x *signedIndexer) ColumnIndex() format.ColumnIndex {
	x.index.BoundaryOrder = format.Unordered
	return x.index
}

// textType keeps long texts from staying in memory. parquet-go v0.32.0 keeps
// the column index of every row group until the footer is written. The bounds
// in it are cut to 16 bytes but refer to the memory of whole values. With texts
// of 3 kB, a part of 2 GB would keep 30 MB. textType replaces only the indexer,
// and the file's bytes stay the same.
type textType struct {
	parquet.Type
}

// NewColumnIndexer returns the type's own indexer, with copied bounds.
func (t textType) NewColumnIndexer(sizeLimit int) parquet.ColumnIndexer {
	return textIndexer{t.Type.NewColumnIndexer(sizeLimit)}
}

type textIndexer struct{ parquet.ColumnIndexer }

// ColumnIndex returns the index with copies of the bounds.
func (x textIndexer) ColumnIndex() format.ColumnIndex {
	index := x.ColumnIndexer.ColumnIndex()
	for _, bounds := range [][][]byte{index.MinValues, index.MaxValues} {
		for i, b := range bounds {
			bounds[i] = bytes.Clone(b)
		}
	}
	return index
}
