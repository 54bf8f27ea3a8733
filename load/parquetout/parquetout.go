// Package parquetout writes record batches as Parquet.
//
// Columns keep their order and their names, which may hold any character.
// Strings are UTF8 and dates are DATE. Timestamps are TIMESTAMP in microseconds
// adjusted to UTC. Decimals are DECIMAL in the narrowest physical type. Lists
// are LIST in three levels (list.element). Column chunks have statistics and a
// page index, except of texts longer than 4 KiB. zstd is the default codec.
//
// A column is dictionary-encoded if a dictionary makes the first rows of the
// part smaller, by a sample of a thousand of them. Of all settings this choice
// has the largest effect on speed and size.
//
// Equal rows give equal bytes, however they are divided into batches. The
// file holds neither a time of writing nor a program version.
//
// Arrow's own writer, pqarrow, writes the pages and the footer. It may end a page
// and a row group wherever a batch ends. Therefore it gets the rows in steps, which
// end at counts of rows or of bytes of values. Begin reading with New and endStep.
package parquetout

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/formetl/formetl/load"
)

const (
	// A step ends at stepRows rows or stepBytes bytes of values. Pages end between
	// steps and thousands of values, so the bytes bound how much a page of long
	// values exceeds pageBytes.
	stepRows  = 1024
	stepBytes = 1 << 20
	// A row group ends with the step that reaches groupRows rows or groupBytes bytes
	// of values before encoding. DuckDB and others scan groups in parallel, and 65,536
	// rows suit them. The bytes limit the memory for writing and reading. Rows of
	// usual length reach the limit of rows first.
	groupRows  = 65_536
	groupBytes = 16 << 20
	// pageBytes is the approximate size of a page before compression. Each column has
	// an open page.
	pageBytes = 64 << 10
	// createdBy is constant, so that the same results give the same bytes after
	// an upgrade. The text still names a version, because parquet-mr parses this
	// field and ignores the statistics of strings if it cannot.
	createdBy = "formetl version 1"
)

// codecSnappy is a codec that Parquet alone has.
const codecSnappy = "snappy"

// Format describes Parquet: its name, its file extension and its encoder.
func Format() load.Format {
	return load.Format{Name: "parquet", Extension: ".parquet", Codecs: []string{load.CodecZstd, load.CodecGzip, codecSnappy}, New: New}
}

// New returns an encoder that writes the schema's columns to w as one Parquet
// file. o.Compression is "zstd" (the default), "snappy", "gzip" or "none".
// o.Metadata goes into the footer in its order. The encoder buffers the first 4096
// rows or 8 MiB of values, of which it takes a sample. After that it buffers the
// pages of one row group.
func New(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	if err := lastingZstd(); err != nil {
		return nil, err
	}
	compression := parquet.WithCompression(compress.Codecs.Zstd)
	level := compress.DefaultCompressionLevel
	switch o.Compression {
	case "", load.CodecZstd:
		level = 1
	case codecSnappy:
		compression = parquet.WithCompression(compress.Codecs.Snappy)
	case load.CodecGzip:
		compression = parquet.WithCompression(compress.Codecs.Gzip)
	case load.CodecNone:
		compression = parquet.WithCompression(compress.Codecs.Uncompressed)
	default:
		return nil, fmt.Errorf("parquet: there is no compression %q: use zstd, snappy, gzip or none", o.Compression)
	}
	return &encoder{
		out: bufio.NewWriter(w), schema: schema, metadata: o.Metadata,
		properties: []parquet.WriterProperty{
			compression, parquet.WithCompressionLevel(level),
			parquet.WithCreatedBy(createdBy),
			parquet.WithDataPageSize(pageBytes),
			parquet.WithPageIndexEnabled(true),
			parquet.WithStoreDecimalAsInteger(true),
			parquet.WithRootRepetition(parquet.Repetitions.Required),
			parquet.WithDictionaryDefault(false),
			// Whatever a dictionary costs, its column goes on with it until the row group
			// ends. The writer lists a column's encodings in random order, so that with
			// two of them for data the same rows would not give the same bytes.
			parquet.WithDictionaryPageSizeLimit(math.MaxInt32),
		},
	}, nil
}

type encoder struct {
	// out gathers small writes. It also hides Close of the writer beneath it, which
	// pqarrow would call.
	out        *bufio.Writer
	schema     *arrow.Schema
	metadata   []load.KeyValue
	properties []parquet.WriterProperty

	step  []arrow.RecordBatch // rows of the open step
	rows  int                 // number of rows in the open step
	bytes int                 // bytes of values in the open step

	groupRows  int                 // number of rows in the open row group
	groupBytes int                 // bytes of values in the open row group
	first      []arrow.RecordBatch // steps before the file begins
	file       *pqarrow.FileWriter // nil until it begins
}

// Write implements load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	for from, n := 0, int(batch.NumRows()); from < n; {
		to := min(n, from+stepRows-e.rows)
		if e.bytes+sizeOf(batch, from, to) > stepBytes {
			// The row that passes the limit is the last of the step.
			to = from + 1 + sort.Search(to-from-1, func(i int) bool { return e.bytes+sizeOf(batch, from, from+1+i) > stepBytes })
		}
		e.step = append(e.step, batch.NewSlice(int64(from), int64(to)))
		e.rows += to - from
		e.bytes += sizeOf(batch, from, to)
		from = to
		if e.rows < stepRows && e.bytes <= stepBytes {
			continue
		}
		if err := e.endStep(); err != nil {
			return err
		}
	}
	return nil
}

// Close implements load.Encoder.
func (e *encoder) Close() error {
	if e.rows > 0 {
		if err := e.endStep(); err != nil {
			return err
		}
	}
	if e.file == nil {
		if err := e.begin(); err != nil {
			return err
		}
	}
	if err := e.file.Close(); err != nil {
		return fmt.Errorf("parquet: write the footer: %w", err)
	}
	if err := e.out.Flush(); err != nil {
		return fmt.Errorf("parquet: write the footer: %w", err)
	}
	return nil
}

// Discard releases the rows that were not written.
func (e *encoder) Discard() {
	e.step = released(e.step)
	e.first = released(e.first)
}

// endStep makes one batch of the step's rows. It writes the batch, or keeps it for the
// sample.
func (e *encoder) endStep() error {
	if e.groupRows >= groupRows || e.groupBytes >= groupBytes {
		if err := e.file.NewBufferedRowGroupChecked(); err != nil {
			return fmt.Errorf("parquet: write a row group: %w", err)
		}
		e.groupRows, e.groupBytes = 0, 0
	}
	batch, err := joined(e.step)
	if err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	e.groupRows += e.rows
	e.groupBytes += e.bytes
	e.step, e.rows, e.bytes = released(e.step), 0, 0
	if e.file != nil {
		defer batch.Release()
		return e.write(batch)
	}
	e.first = append(e.first, batch)
	if e.groupRows < firstRows && e.groupBytes < firstBytes {
		return nil
	}
	return e.begin()
}

// begin begins the file. The first steps decide which columns get a dictionary.
func (e *encoder) begin() error {
	for i, pays := range dictionaries(e.schema, e.first) {
		if pays {
			e.properties = append(e.properties, parquet.WithDictionaryPath(pathOf(e.schema.Field(i)), true))
		}
	}
	var err error
	if e.file, err = pqarrow.NewFileWriter(e.schema, e.out, parquet.NewWriterProperties(e.properties...), pqarrow.DefaultWriterProps()); err != nil {
		return fmt.Errorf("parquet: begin the file: %w", err)
	}
	for _, m := range e.metadata {
		if err := e.file.AppendKeyValueMetadata(m.Key, m.Value); err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
	}
	for _, batch := range e.first {
		if err := e.write(batch); err != nil {
			return err
		}
	}
	e.first = released(e.first)
	return nil
}

// write appends the batch to the open row group.
func (e *encoder) write(batch arrow.RecordBatch) error {
	if err := e.file.WriteBuffered(batch); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	return nil
}

// pathOf returns the path of a column's values in the file's schema.
func pathOf(f arrow.Field) parquet.ColumnPath {
	if f.Type.ID() == arrow.LIST {
		return parquet.ColumnPath{f.Name, "list", "element"}
	}
	return parquet.ColumnPath{f.Name}
}

// joined returns the rows of all batches, of which there is at least one, as one batch.
func joined(batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(batches) == 1 {
		batches[0].Retain()
		return batches[0], nil
	}
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	columns := make([]arrow.Array, batches[0].NumCols())
	parts := make([]arrow.Array, len(batches))
	for i := range columns {
		for k, b := range batches {
			parts[k] = b.Column(i)
		}
		var err error
		if columns[i], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("join the batches of column %q: %w", batches[0].ColumnName(i), err)
		}
		defer columns[i].Release()
	}
	return array.NewRecordBatch(batches[0].Schema(), columns, rows), nil
}

// released releases the batches and returns an empty slice in their place.
func released(batches []arrow.RecordBatch) []arrow.RecordBatch {
	for i, b := range batches {
		b.Release()
		batches[i] = nil
	}
	return batches[:0]
}
