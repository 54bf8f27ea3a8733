package parquetout

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/formetl/formetl/load"
)

const (
	// createdBy is constant, so that the same results give the same bytes after
	// an upgrade. The text still names a version, because parquet-mr parses this
	// field and ignores the statistics of strings if it cannot.
	createdBy = "formetl version 1"
	magic     = "PAR1"
	// formatVersion is the version of the format that has data pages v2.
	formatVersion = 2
)

// file writes row groups and the footer, and keeps what the footer says of the row
// groups before.
type file struct {
	w       *bufio.Writer
	offset  int64
	rows    int64
	groups  []format.RowGroup
	indexes [][]format.ColumnIndex
	offsets [][]format.OffsetIndex
}

func newFile(w io.Writer) *file { return &file{w: bufio.NewWriter(w)} }

func (f *file) write(data []byte) error {
	if f.offset == 0 {
		f.offset = int64(len(magic))
		if _, err := f.w.WriteString(magic); err != nil {
			return err
		}
	}
	f.offset += int64(len(data))
	_, err := f.w.Write(data)
	return err
}

// rowGroup writes the pages of all columns as a row group of so many rows.
func (f *file) rowGroup(schema *arrow.Schema, columns []*column, rows int, w *pageWriter) error {
	if err := f.write(nil); err != nil {
		return err
	}
	group := format.RowGroup{
		Columns: make([]format.ColumnChunk, len(columns)), NumRows: int64(rows),
		FileOffset: f.offset, Ordinal: int16(len(f.groups)),
	}
	indexes, offsets := make([]format.ColumnIndex, len(columns)), make([]format.OffsetIndex, len(columns))
	for i, c := range columns {
		meta, err := f.chunk(c, w)
		if err != nil {
			return fmt.Errorf("column %q: %w", schema.Field(i).Name, err)
		}
		meta.PathInSchema = pathOf(schema.Field(i))
		group.Columns[i].MetaData = meta
		group.TotalByteSize += meta.TotalUncompressedSize
		group.TotalCompressedSize += meta.TotalCompressedSize
		indexes[i], offsets[i] = c.chunk.index, c.chunk.offsets
		indexes[i].BoundaryOrder = c.order()
		c.reset()
	}
	f.rows += int64(rows)
	f.groups = append(f.groups, group)
	f.indexes = append(f.indexes, indexes)
	f.offsets = append(f.offsets, offsets)
	return nil
}

// chunk writes the dictionary and the pages of a column, and returns its metadata.
func (f *file) chunk(c *column, w *pageWriter) (format.ColumnMetaData, error) {
	if err := c.endPage(w); err != nil {
		return format.ColumnMetaData{}, err
	}
	k := &c.chunk
	encodings := []format.Encoding{format.Plain}
	if c.present > 0 || c.list {
		encodings = append(encodings, format.RLE)
	}
	if c.dict != nil {
		encodings = append(encodings, format.RLEDictionary)
		k.meta.DictionaryPageOffset = f.offset
		dict, plain, err := w.dictionary(c.dict)
		if err != nil {
			return format.ColumnMetaData{}, err
		}
		k.count(format.DictionaryPage, format.Plain, plain, len(dict))
		if err := f.write(dict); err != nil {
			return format.ColumnMetaData{}, err
		}
	}
	k.meta.Type, k.meta.Encoding, k.meta.Codec = c.kind, encodings, w.codec.CompressionCodec()
	k.meta.DataPageOffset = f.offset
	for i := range k.offsets.PageLocations {
		k.offsets.PageLocations[i].Offset += f.offset
	}
	slices.SortFunc(k.meta.EncodingStats, func(a, b format.PageEncodingStats) int {
		return cmp.Or(cmp.Compare(a.PageType, b.PageType), cmp.Compare(a.Encoding, b.Encoding))
	})
	for _, page := range k.pages {
		if err := f.write(page); err != nil {
			return format.ColumnMetaData{}, err
		}
	}
	return k.meta, nil
}

// close writes the page index and the footer.
func (f *file) close(schema *arrow.Schema, metadata []load.KeyValue) error {
	var buffer bytes.Buffer
	encoder := thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&buffer))
	// encode writes v and returns where it begins and how long it is.
	encode := func(v any) (int64, int32, error) {
		buffer.Reset()
		if err := encoder.Encode(v); err != nil {
			return 0, 0, err
		}
		if err := f.write(nil); err != nil {
			return 0, 0, err
		}
		at := f.offset
		return at, int32(buffer.Len()), f.write(buffer.Bytes())
	}
	each := func(write func(c *format.ColumnChunk, group, column int) error) error {
		for g := range f.groups {
			for i := range f.groups[g].Columns {
				if err := write(&f.groups[g].Columns[i], g, i); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := each(func(c *format.ColumnChunk, g, i int) (err error) {
		c.ColumnIndexOffset, c.ColumnIndexLength, err = encode(&f.indexes[g][i])
		return err
	})
	if err != nil {
		return err
	}
	err = each(func(c *format.ColumnChunk, g, i int) (err error) {
		c.OffsetIndexOffset, c.OffsetIndexLength, err = encode(&f.offsets[g][i])
		return err
	})
	if err != nil {
		return err
	}
	_, length, err := encode(f.footer(schema, metadata))
	if err != nil {
		return err
	}
	if err := f.write(append(binary.LittleEndian.AppendUint32(nil, uint32(length)), magic...)); err != nil {
		return err
	}
	return f.w.Flush()
}

func (f *file) footer(schema *arrow.Schema, metadata []load.KeyValue) *format.FileMetaData {
	footer := &format.FileMetaData{
		Version: formatVersion, Schema: elementsOf(schema), NumRows: f.rows, RowGroups: f.groups, CreatedBy: createdBy,
		ColumnOrders: make([]format.ColumnOrder, schema.NumFields()),
	}
	for i := range footer.ColumnOrders {
		footer.ColumnOrders[i].Value = &format.TypeDefinedOrder{}
	}
	for _, m := range metadata {
		footer.KeyValueMetadata = append(footer.KeyValueMetadata, format.KeyValue{Key: m.Key, Value: m.Value})
	}
	return footer
}
