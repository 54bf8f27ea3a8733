// Package parquetout writes record batches as Parquet.
//
// Columns keep their order and their names, whatever characters those hold.
// Strings are UTF8, dates DATE, timestamps TIMESTAMP in microseconds adjusted
// to UTC, decimals DECIMAL in the narrowest physical type, lists LIST in three
// levels (list.element). Every chunk has statistics and a page index; zstd is
// the default codec.
//
// A column is dictionary-encoded if that pays for the first rows of the part,
// never because of its name: this choice is the largest lever on speed and
// size that there is (decisions.md).
//
// Equal rows give equal bytes, however they were divided into batches: the
// sample, the pages and the row groups are counted in rows and in bytes of
// values, and the file holds no time of writing and no build's version.
package parquetout

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/gzip"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/uncompressed"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/rows"
)

const (
	// stepRows is how many rows go to a column at once. A page ends between
	// two steps, so this bounds how far a page of long values overshoots.
	stepRows = 64
	// A row group ends after either. 65,536 rows are the unit of DuckDB's and
	// others' parallel scans; the bytes (of values, before encoding) bound the
	// memory that a part takes to write and to read. Ordinary rows meet the
	// first; 64 MiB of long ones would be a third of what a run may hold.
	groupRows  = 65_536
	groupBytes = 32 << 20
	// pageBytes is what a page holds before compression, roughly.
	pageBytes = 256 << 10
	// dictionaryBytes is the size at which a column goes on without its
	// dictionary, for a part that changes after its sample.
	dictionaryBytes = 1 << 20
	// createdBy is constant: with the version of the build in it, which is the
	// library's default, the same results would give other bytes after an
	// upgrade. It names a version all the same, because parquet-mr parses this
	// field and drops the statistics of strings where it cannot.
	createdBy = "formetl version 1"
)

// Format is the Parquet row of the table of formats.
func Format() load.Format {
	return load.Format{Name: "parquet", Extension: ".parquet", New: New}
}

// New returns an encoder that writes the schema's columns to w as one Parquet
// file. o.Compression is "zstd" (the default), "snappy", "gzip" or "none";
// o.Metadata goes into the footer in its order. The encoder keeps up to 8192
// rows or 16 MiB of values before it writes, and then one row group.
func New(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	if err := load.CheckSchema(schema); err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	codec, err := codecOf(o.Compression)
	if err != nil {
		return nil, err
	}
	e := &encoder{w: w, schema: schema, codec: codec, metadata: o.Metadata, sample: newSample(schema.NumFields())}
	return load.Guard(schema, e), nil
}

func codecOf(name string) (compress.Codec, error) {
	switch name {
	case "", "zstd":
		return newZstdCodec()
	case "snappy":
		return &snappy.Codec{}, nil
	case "gzip":
		return &gzip.Codec{Level: 6}, nil
	case "none":
		return &uncompressed.Codec{}, nil
	}
	return nil, fmt.Errorf("parquet: there is no compression %q: use zstd, snappy, gzip or none", name)
}

type encoder struct {
	w        io.Writer
	schema   *arrow.Schema
	codec    compress.Codec
	metadata []load.KeyValue

	sample  *sample                     // nil when it is done
	queue   rows.Queue                  // rows not yet given to the writer
	out     *parquet.GenericWriter[any] // rows never pass as Go values: only its column writers are used
	writers []*parquet.ColumnWriter
	columns []*column
	rows    int // in the open row group
	bytes   int // of values in the open row group
}

// Write is that of load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	e.queue.Push(batch)
	if e.sample != nil {
		if !e.sample.add(batch) {
			return nil
		}
		e.begin()
	}
	return e.drain(stepRows)
}

// Close is that of load.Encoder.
func (e *encoder) Close() error {
	if e.sample != nil {
		e.begin()
	}
	if err := e.drain(1); err != nil {
		return err
	}
	if err := e.out.Close(); err != nil {
		return fmt.Errorf("parquet: write the footer: %w", err)
	}
	return nil
}

// Discard releases the rows that are not written yet.
func (e *encoder) Discard() { e.queue.Discard() }

// begin opens the writer once the sample has told which dictionaries pay.
func (e *encoder) begin() {
	e.out = parquet.NewGenericWriter[any](e.w,
		newSchema(e.schema, e.sample.dictionary()),
		parquet.Compression(e.codec),
		&parquet.WriterConfig{CreatedBy: createdBy},
		// The page index holds the bounds of pages, cut to 16 bytes; in the
		// headers of pages they would stand uncut, and arrow-go, for one, does
		// not read the header of a page whose bounds are long texts.
		parquet.DataPageStatistics(false),
		parquet.PageBufferSize(pageBytes),
		parquet.DictionaryMaxBytes(dictionaryBytes),
	)
	for _, m := range e.metadata {
		e.out.SetKeyValueMetadata(m.Key, m.Value)
	}
	e.writers = e.out.ColumnWriters()
	e.columns = make([]*column, len(e.writers))
	for i, f := range e.schema.Fields() {
		e.columns[i] = newColumn(i, f)
	}
	e.sample = nil
}

// drain writes steps while the queue holds at least that many rows.
func (e *encoder) drain(least int) error {
	for e.queue.Len() >= least {
		step := e.queue.Peek(stepRows)
		if err := e.step(step); err != nil {
			return err
		}
		e.queue.Drop(stepRows)
	}
	return nil
}

// step writes the rows of the pieces and ends the row group if it is full.
func (e *encoder) step(pieces []rows.Piece) error {
	for i, c := range e.columns {
		c.reset()
		for _, p := range pieces {
			c.add(p.Batch.Column(i), p.From, p.To)
		}
		if _, err := e.writers[i].WriteRowValues(c.scratch); err != nil {
			return fmt.Errorf("parquet: write column %q: %w", e.schema.Field(i).Name, err)
		}
		e.bytes += c.bytes
		clear(c.scratch) // it would keep a batch that is released alive
	}
	for _, p := range pieces {
		e.rows += p.To - p.From
	}
	if e.rows < groupRows && e.bytes < groupBytes {
		return nil
	}
	e.rows, e.bytes = 0, 0
	if err := e.out.Flush(); err != nil {
		return fmt.Errorf("parquet: write a row group: %w", err)
	}
	return nil
}
