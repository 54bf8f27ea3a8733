// Package parquetout writes record batches as Parquet.
//
// Columns keep their order and their names, which may hold any character.
// Strings are UTF8 and dates are DATE. Timestamps are TIMESTAMP in microseconds
// adjusted to UTC. Decimals are DECIMAL in the narrowest physical type. Lists
// are LIST in three levels (list.element). Every column chunk has statistics
// and a page index. zstd is the default codec. A page of less than a kilobyte is stored as
// it is, in a frame of zstd. Version 2 of data pages has a mark for pages that are not
// compressed, but some readers do not heed it.
//
// A column is dictionary-encoded if a dictionary makes the first rows of the
// part smaller, by a sample of a thousand of them. Of all settings this choice
// has the largest effect on speed and size.
//
// Equal rows give equal bytes, however they are divided into batches. The
// sample, the pages and the row groups end at counts of rows or of bytes of
// values. The file holds neither a time of writing nor a program version.
//
// The package writes pages and the footer itself, from Arrow arrays. parquet-go
// gives the encodings, Thrift, the footer's structs and the codecs. Its writer takes
// a struct for each cell, which costs twice the CPU of everything here. Arrow's own
// writer allocates for each value of a dictionary, and was slower than both.
//
// Begin reading with New and the encoder's step.
package parquetout

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/gzip"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/uncompressed"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/rows"
)

const (
	// stepRows is how many rows are written to a column at once. A page ends
	// between two steps, so this bounds how much a page of long values exceeds
	// pageBytes.
	stepRows = 64
	// A row group ends at groupRows rows or groupBytes bytes of values before
	// encoding. DuckDB and others scan groups in parallel, and 65,536 rows suit
	// them. The bytes limit the memory for writing and reading. Rows of usual
	// length reach the limit of rows first. A limit of 64 MiB would allow a
	// third of the memory that a run may use.
	groupRows  = 65_536
	groupBytes = 32 << 20
	// pageBytes is the approximate size of a page before compression. Each column has
	// an open page. With pages of 256 KiB a run of 850,000 results in 73 parts took
	// 89 MB instead of 73, for the same CPU and files smaller by a hundredth.
	pageBytes = 64 << 10
	// dictionaryBytes is the size of a dictionary at which the column continues
	// without one. A column reaches it if the values after the sample vary more
	// than those in it.
	dictionaryBytes = 1 << 20
)

// codecSnappy is a codec that Parquet alone has.
const codecSnappy = "snappy"

// Format describes Parquet: its name, its file extension and its encoder.
func Format() load.Format {
	return load.Format{Name: "parquet", Extension: ".parquet", Codecs: []string{load.CodecZstd, load.CodecGzip, codecSnappy}, New: New}
}

// New returns an encoder that writes the schema's columns to w as one Parquet
// file. o.Compression is "zstd" (the default), "snappy", "gzip" or "none".
// o.Metadata goes into the footer in its order. The encoder buffers up to 4096
// rows or 16 MiB of values, of which it takes a sample. After that it buffers the
// pages of one row group.
func New(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	memory := takeMemory()
	var err error
	if memory.pages.codec, err = memory.codecOf(o.Compression); err != nil {
		return nil, err
	}
	return &encoder{schema: schema, metadata: o.Metadata, buffer: &buffer{}, file: newFile(w), memory: memory}, nil
}

func (m *fileMemory) codecOf(name string) (codec compress.Codec, err error) {
	switch name {
	case "", load.CodecZstd:
		if m.zstd == nil {
			m.zstd, err = newZstdCodec()
		}
		return m.zstd, err
	case codecSnappy:
		return &snappy.Codec{}, nil
	case load.CodecGzip:
		return &gzip.Codec{Level: 6}, nil
	case load.CodecNone:
		return &uncompressed.Codec{}, nil
	}
	return nil, fmt.Errorf("parquet: there is no compression %q: use zstd, snappy, gzip or none", name)
}

type encoder struct {
	schema   *arrow.Schema
	metadata []load.KeyValue

	buffer  *buffer    // nil once it is complete
	queue   rows.Queue // rows not yet in a page
	file    *file
	memory  *fileMemory
	columns []*column
	rows    int // number of rows in the open row group
	bytes   int // bytes of values in the open row group
}

// Write implements load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	e.queue.Push(batch)
	if e.buffer != nil {
		if !e.buffer.add(batch) {
			return nil
		}
		e.begin()
	}
	return e.drain(stepRows)
}

// Close implements load.Encoder.
func (e *encoder) Close() error {
	if e.buffer != nil {
		e.begin()
	}
	if err := e.drain(1); err != nil {
		return err
	}
	if err := e.endGroup(); err != nil {
		return err
	}
	if err := e.file.close(e.schema, e.metadata); err != nil {
		return fmt.Errorf("parquet: write the footer: %w", err)
	}
	keepMemory(e.memory, e.columns)
	e.memory, e.columns = nil, nil
	return nil
}

// Discard releases the rows that were not written.
func (e *encoder) Discard() { e.queue.Discard() }

// begin makes the columns. The buffered rows decide which of them get a dictionary.
func (e *encoder) begin() {
	pays := e.memory.sample.dictionaries(e.schema.NumFields(), e.queue.Peek(e.buffer.rows), e.buffer.rows)
	e.columns = make([]*column, len(pays))
	for i, f := range e.schema.Fields() {
		e.columns[i] = newColumn(f, pays[i], e.memory.column(i))
	}
	e.buffer = nil
}

// drain writes rows from the queue, stepRows at a time, until fewer than least are left.
func (e *encoder) drain(least int) error {
	for e.queue.Len() >= least {
		if err := e.step(e.queue.Peek(stepRows)); err != nil {
			return err
		}
		e.queue.Drop(stepRows)
	}
	return nil
}

// step writes the rows of pieces, and then ends the row group if it is full.
func (e *encoder) step(pieces []rows.Piece) error {
	for i, c := range e.columns {
		for _, p := range pieces {
			e.bytes += c.add(p.Batch.Column(i), p.From, p.To)
		}
		if !c.full() {
			continue
		}
		if err := c.endPage(e.memory.pages); err != nil {
			return fmt.Errorf("parquet: column %q: %w", e.schema.Field(i).Name, err)
		}
	}
	for _, p := range pieces {
		e.rows += p.To - p.From
	}
	if e.rows < groupRows && e.bytes < groupBytes {
		return nil
	}
	return e.endGroup()
}

// endGroup writes the open row group, if it has rows.
func (e *encoder) endGroup() error {
	if e.rows == 0 {
		return nil
	}
	if err := e.file.rowGroup(e.schema, e.columns, e.rows, e.memory.pages); err != nil {
		return fmt.Errorf("parquet: write a row group: %w", err)
	}
	e.rows, e.bytes = 0, 0
	return nil
}
