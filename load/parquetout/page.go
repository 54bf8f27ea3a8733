package parquetout

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// page is the open page of a column. The levels have one byte for each value or
// null. A column that is neither nullable nor a list has no levels.
type page struct {
	values
	rows        int
	count       int // number of values and nulls
	definitions []byte
	repetitions []byte
}

func (p *page) reset() {
	p.values.reset()
	p.rows, p.count = 0, 0
	p.definitions, p.repetitions = p.definitions[:0], p.repetitions[:0]
}

// pageWriter encodes and compresses pages. All columns of a file share its memory.
type pageWriter struct {
	codec       compress.Codec
	repetitions []byte
	definitions []byte
	plain       []byte // the page's values before compression
	packed      []byte // the same after compression
	page        []byte // the whole page
	header      bytes.Buffer
	encoder     *thrift.Encoder
}

func newPageWriter() *pageWriter {
	w := &pageWriter{}
	w.encoder = thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&w.header))
	return w
}

// keep gives up what only its file needs, and memory that is too large.
func (w *pageWriter) keep() {
	w.codec = nil
	w.repetitions, w.definitions = keepable(w.repetitions, 1), keepable(w.definitions, 1)
	w.plain, w.packed, w.page = keepable(w.plain, 1), keepable(w.packed, 1), keepable(w.page, 1)
}

// data returns the column's open page with its header, which is valid until the next
// call of any method. h holds the page's counts and its encoding. plain is the page's
// size before compression, with the header.
func (w *pageWriter) data(c *column, h format.DataPageHeaderV2) (page []byte, plain int, err error) {
	if w.repetitions, err = encodeLevels(w.repetitions, c.page.repetitions, c.repeats()); err != nil {
		return nil, 0, err
	}
	if w.definitions, err = encodeLevels(w.definitions, c.page.definitions, c.deepest()); err != nil {
		return nil, 0, err
	}
	if w.plain, err = c.page.encode(w.plain); err != nil {
		return nil, 0, err
	}
	h.RepetitionLevelsByteLength, h.DefinitionLevelsByteLength = int32(len(w.repetitions)), int32(len(w.definitions))
	h.IsCompressed = thrift.New(w.compresses())
	return w.whole(format.PageHeader{Type: format.DataPageV2, DataPageHeaderV2: thrift.New(h)})
}

// dictionary returns the page of the dictionary's entries, as data does.
func (w *pageWriter) dictionary(d dictionary) (page []byte, plain int, err error) {
	w.repetitions, w.definitions = w.repetitions[:0], w.definitions[:0]
	w.plain = d.encodeEntries(w.plain)
	n, _ := d.entries()
	h := format.DictionaryPageHeader{NumValues: int32(n), Encoding: format.Plain}
	return w.whole(format.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(h)})
}

func (w *pageWriter) compresses() bool { return w.codec.CompressionCodec() != format.Uncompressed }

// whole compresses the values and returns the page.
func (w *pageWriter) whole(h format.PageHeader) (page []byte, plain int, err error) {
	body := w.plain
	if w.compresses() {
		if w.packed, err = w.codec.Encode(w.packed[:0], w.plain); err != nil {
			return nil, 0, fmt.Errorf("compress a page: %w", err)
		}
		body = w.packed
	}
	levels := len(w.repetitions) + len(w.definitions)
	if levels+max(len(w.plain), len(body)) > math.MaxInt32 {
		return nil, 0, fmt.Errorf("a page has %d bytes, and Parquet allows %d", levels+len(w.plain), math.MaxInt32)
	}
	h.UncompressedPageSize, h.CompressedPageSize = int32(levels+len(w.plain)), int32(levels+len(body))
	crc := crc32.ChecksumIEEE(w.repetitions)
	crc = crc32.Update(crc, crc32.IEEETable, w.definitions)
	h.CRC = int32(crc32.Update(crc, crc32.IEEETable, body))
	w.header.Reset()
	if err := w.encoder.Encode(&h); err != nil {
		return nil, 0, fmt.Errorf("encode the header of a page: %w", err)
	}
	w.page = w.page[:0]
	for _, part := range [][]byte{w.header.Bytes(), w.repetitions, w.definitions, body} {
		w.page = append(w.page, part...)
	}
	return w.page, w.header.Len() + levels + len(w.plain), nil
}

// encodeLevels writes the levels over dst in RLE, and returns it.
func encodeLevels(dst, levels []byte, deepest byte) ([]byte, error) {
	if deepest == 0 {
		return dst[:0], nil
	}
	dst, err := (&rle.Encoding{BitWidth: bits.Len8(deepest)}).EncodeLevels(dst, levels)
	if err != nil {
		return dst, fmt.Errorf("encode levels: %w", err)
	}
	return dst, nil
}
