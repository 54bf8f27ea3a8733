// Package arrowout writes record batches as an Arrow IPC file (.arrow, also known
// as Feather version 2). The file holds the schema, batches whose buffers are
// compressed with zstd, and a footer.
//
// Equal rows give equal bytes, however they are divided into batches, because rows are
// copied into batches of one size. The bytes under a null are those of the rows; builders
// leave zeros there. EncodeOptions.Metadata becomes metadata of the schema.
package arrowout

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/cells"
)

const (
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
		return nil, fmt.Errorf("arrow: unknown compression %q; use zstd or none", o.Compression)
	}
	file, err := ipc.NewFileWriter(w, options...)
	if err != nil {
		return nil, fmt.Errorf("arrow: %w", err)
	}
	e := &encoder{file: file, schema: out}
	e.steps = cells.Steps{Rows: batchRows, Bytes: batchBytes, End: e.batch}
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
	file   *ipc.FileWriter
	schema *arrow.Schema // the columns, with the metadata
	steps  cells.Steps
}

// Write adds the batch's rows to the Arrow file, see load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error { return e.steps.Write(batch) }

// Close writes the rows that are buffered and the file's footer, see load.Encoder.
func (e *encoder) Close() error {
	if err := e.steps.Flush(); err != nil {
		return err
	}
	if err := e.file.Close(); err != nil {
		return fmt.Errorf("arrow: write the footer: %w", err)
	}
	return nil
}

// Discard releases the rows that the encoder did not write.
func (e *encoder) Discard() { e.steps.Discard() }

// batch writes a step of rows as one batch of the file.
func (e *encoder) batch(step arrow.RecordBatch, _ int) error {
	batch := array.NewRecordBatch(e.schema, step.Columns(), step.NumRows())
	defer batch.Release()
	if err := e.file.Write(batch); err != nil {
		return fmt.Errorf("arrow: write a batch: %w", err)
	}
	return nil
}
