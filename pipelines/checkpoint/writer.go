package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
)

// Writer collects the rows of one piece in memory.
type Writer struct {
	c       *Checkpoint
	data    *bytes.Buffer // the encoded rows; goes back to Checkpoint.buffers at the end
	streams []stream
	begin   int // where the current stream begins in data
	schema  *arrow.Schema
	batches *ipc.Writer
}

// Write returns a Writer for a new piece.
func (c *Checkpoint) Write() *Writer {
	return &Writer{c: c, data: c.buffer()}
}

// buffer returns an empty buffer. The caller puts it into buffers again.
func (c *Checkpoint) buffer() *bytes.Buffer {
	if b, ok := c.buffers.Get().(*bytes.Buffer); ok {
		b.Reset()
		return b
	}
	return &bytes.Buffer{}
}

// Bytes returns how many bytes of memory the rows take so far.
func (w *Writer) Bytes() int { return w.data.Len() }

// Add appends a batch of rows to the piece. A batch with another schema begins a new stream.
func (w *Writer) Add(b arrow.RecordBatch) error {
	if b.NumRows() == 0 {
		return nil
	}
	if w.batches == nil || !w.schema.Equal(b.Schema()) {
		if err := w.endStream(); err != nil {
			return err
		}
		w.begin, w.schema = w.data.Len(), b.Schema()
		w.batches = ipc.NewWriter(w.data, ipc.WithSchema(w.schema))
	}
	return w.batches.Write(b)
}

func (w *Writer) endStream() error {
	if w.batches == nil {
		return nil
	}
	err := w.batches.Close()
	w.batches = nil
	data := w.data.Bytes()[w.begin:]
	w.streams = append(w.streams, stream{Bytes: int64(len(data)), CRC: crc32.Checksum(data, castagnoli)})
	return err
}

// End writes the piece to the checkpoint, first the added rows and then the record. It returns
// the piece with the number in its objects' names.
func (w *Writer) End(ctx context.Context, p Piece) (Piece, error) {
	if err := w.endStream(); err != nil {
		return p, err
	}
	p.number, p.by, p.streams = int(w.c.next.Add(1)-1), w.c.run, w.streams
	data, err := json.Marshal(record{
		Piece: p, Window: load.Span(p.Window.From, p.Window.To), IDs: idset.Encode(p.IDs), Stats: stats{p.Stats, EncodeColumns(p.Stats.Added)}, Streams: p.streams,
	})
	if err != nil {
		return p, err
	}
	if len(p.streams) > 0 {
		if err := w.c.put(ctx, p.object(rowsSuffix), w.data.Bytes()); err != nil {
			return p, err
		}
	}
	if err := w.c.put(ctx, p.object(recordSuffix), seal(data)); err != nil {
		return p, err
	}
	p.Stats.Seen = nil
	w.c.buffers.Put(w.data)
	return p, nil
}
