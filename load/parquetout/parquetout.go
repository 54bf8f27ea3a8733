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
// has the largest effect on speed and size. A part of fewer than a thousand rows
// has no dictionaries.
//
// Equal rows give equal bytes, however they are divided into batches. The
// file holds neither a time of writing nor a program version.
//
// Arrow's own writer, pqarrow, writes the pages and the footer. It may end a page
// and a row group wherever a batch ends. Therefore it gets the rows in steps, which
// end at counts of rows or of bytes of values. `dictionaries`
// (sample.go) decides which columns get one. Begin reading with New and endStep.
package parquetout

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/cells"
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

// codecSnappy is the name of a codec that Parquet has and no other format.
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
		return nil, fmt.Errorf("parquet: unknown compression %q; use zstd, snappy, gzip or none", o.Compression)
	}
	e := &encoder{
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
	}
	e.steps = cells.Steps{Rows: stepRows, Bytes: stepBytes, End: e.endStep}
	return e, nil
}

type encoder struct {
	// out gathers small writes to the file. It also hides Close of the writer beneath it, which
	// pqarrow would call.
	out        *bufio.Writer
	schema     *arrow.Schema
	metadata   []load.KeyValue
	properties []parquet.WriterProperty

	steps cells.Steps

	groupRows  int                 // number of rows in the open row group
	groupBytes int                 // bytes of values in the open row group
	first      []arrow.RecordBatch // the steps of rows that are kept until the file begins
	file       *pqarrow.FileWriter // writes the Parquet file; nil until the file begins
}

// Write adds the batch's rows to the Parquet file, see load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error { return e.steps.Write(batch) }

// Close writes the rows that are buffered and the file's footer, see load.Encoder.
func (e *encoder) Close() error {
	if err := e.steps.Flush(); err != nil {
		return fmt.Errorf("parquet: %w", err)
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

// Discard releases the rows that the encoder did not write.
func (e *encoder) Discard() {
	e.steps.Discard()
	e.first = cells.Release(e.first)
}

// endStep writes the rows of a step to the file, or keeps them for the sample of the first
// rows.
func (e *encoder) endStep(step arrow.RecordBatch, bytes int) error {
	if e.groupRows >= groupRows || e.groupBytes >= groupBytes {
		if err := e.file.NewBufferedRowGroupChecked(); err != nil {
			return fmt.Errorf("parquet: write a row group: %w", err)
		}
		e.groupRows, e.groupBytes = 0, 0
	}
	e.groupRows += int(step.NumRows())
	e.groupBytes += bytes
	if e.file != nil {
		return e.write(step)
	}
	step.Retain()
	e.first = append(e.first, step)
	if e.groupRows < firstRows && e.groupBytes < firstBytes {
		return nil
	}
	return e.begin()
}

// begin begins the Parquet file. The steps kept so far decide which columns get a dictionary.
func (e *encoder) begin() error {
	for i, pays := range dictionaries(e.schema, e.first, e.groupBytes) {
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
	e.first = cells.Release(e.first)
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
