// Package arrowout writes record batches as an Arrow IPC file (.arrow, also known
// as Feather version 2). The file holds the schema, batches whose buffers are
// compressed with zstd, and a footer.
//
// Equal rows give equal bytes, however they are divided into batches. To that end,
// rows are copied into new batches. Bytes that stand for no value are always zero,
// such as those of nulls and the spare bits of a bitmap. EncodeOptions.Metadata
// becomes metadata of the schema. Begin reading with New and drain.
package arrowout

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/rows"
)

const (
	// stepRows is how many rows are copied before the limits of a batch are
	// checked again.
	stepRows = 64
	// A batch ends at batchRows rows or batchBytes bytes of values. So many
	// rows let readers work in bulk, and the bytes limit the memory.
	batchRows  = 16_384
	batchBytes = 32 << 20
)

// Format describes Arrow IPC files: the name, the file extension and the encoder.
func Format() load.Format {
	return load.Format{Name: "arrow", Extension: ".arrow", Codecs: []string{load.CodecZstd}, New: New}
}

// New returns an encoder that writes the schema's columns to w as one Arrow
// IPC file. o.Compression is "zstd" (the default) or "none".
func New(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	// Memory from Go's allocator is zeroed, which the promise of equal bytes
	// needs.
	mem := memory.NewGoAllocator()
	out := withMetadata(schema, o.Metadata)
	options := []ipc.Option{ipc.WithSchema(out), ipc.WithAllocator(mem)}
	switch o.Compression {
	case "", load.CodecZstd:
		options = append(options, ipc.WithZstd(), ipc.WithCompressConcurrency(1))
	case load.CodecNone:
	default:
		return nil, fmt.Errorf("arrow: there is no compression %q: use zstd or none", o.Compression)
	}
	file, err := ipc.NewFileWriter(w, options...)
	if err != nil {
		return nil, fmt.Errorf("arrow: %w", err)
	}
	e := &encoder{file: file, builder: array.NewRecordBuilder(mem, out), copiers: make([]copier, schema.NumFields())}
	for i, b := range e.builder.Fields() {
		e.copiers[i] = e.copierOf(b)
	}
	return e, nil
}

// withMetadata returns the schema with the pairs as its metadata, in order.
func withMetadata(schema *arrow.Schema, pairs []load.KeyValue) *arrow.Schema {
	keys, values := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		keys[i], values[i] = p.Key, p.Value
	}
	metadata := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(schema.Fields(), &metadata)
}

type encoder struct {
	file    *ipc.FileWriter
	builder *array.RecordBuilder
	copiers []copier
	queue   rows.Queue
	rows    int // number of rows in the builder
	bytes   int // bytes of values in the builder
}

// Write implements load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	e.queue.Push(batch)
	return e.drain(stepRows)
}

// Close implements load.Encoder.
func (e *encoder) Close() error {
	if err := e.drain(1); err != nil {
		return err
	}
	if err := e.flush(); err != nil {
		return err
	}
	e.builder.Release()
	if err := e.file.Close(); err != nil {
		return fmt.Errorf("arrow: write the footer: %w", err)
	}
	return nil
}

// Discard releases the rows that were not written.
func (e *encoder) Discard() {
	e.queue.Discard()
	e.builder.Release()
}

// drain copies rows from the queue, stepRows at a time, until fewer than least are left.
func (e *encoder) drain(least int) error {
	for e.queue.Len() >= least {
		for _, p := range e.queue.Peek(stepRows) {
			for i, c := range e.copiers {
				c(p.Batch.Column(i), p.From, p.To)
			}
			e.rows += p.To - p.From
		}
		e.queue.Drop(stepRows)
		if e.rows >= batchRows || e.bytes >= batchBytes {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the builder's rows as one batch, if it has any.
func (e *encoder) flush() error {
	if e.rows == 0 {
		return nil
	}
	batch := e.builder.NewRecordBatch()
	defer batch.Release()
	e.rows, e.bytes = 0, 0
	if err := e.file.Write(batch); err != nil {
		return fmt.Errorf("arrow: write a batch: %w", err)
	}
	return nil
}
