package loadtest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// caseBatches checks that the file does not depend on how rows are divided into
// batches. Otherwise a rerun would not be byte-identical. 8500 rows, which .ci/run asks for, are more
// than any encoder samples.
func caseBatches(t encoderTest) {
	whole := t.random(AllTypes(), needs.Rounds(8500, 1500), 5)
	defer whole.Release()
	few := whole.NewSlice(100, 400)
	defer few.Release()
	for _, c := range []struct {
		rows  arrow.RecordBatch
		sizes []int
	}{{few, []int{1, 7}}, {whole, []int{63, 1000}}} {
		c.rows.Retain()
		one := t.encode(c.rows.Schema(), c.rows)
		for _, size := range c.sizes {
			if got := t.encode(c.rows.Schema(), divide(c.rows, size)...); !bytes.Equal(one, got) {
				t.Errorf("batches of %d rows give %d bytes that differ from the %d of one batch", size, len(got), len(one))
			}
		}
	}
}

// divide returns the batch in slices of that many rows.
func divide(batch arrow.RecordBatch, size int) []arrow.RecordBatch {
	var parts []arrow.RecordBatch
	for from := int64(0); from < batch.NumRows(); from += int64(size) {
		parts = append(parts, batch.NewSlice(from, min(from+int64(size), batch.NumRows())))
	}
	return parts
}

func caseEmptyBatches(t encoderTest) {
	batch := t.random(AllTypes(), 10, 9)
	want := Text(batch)
	schema := batch.Schema()
	none := func() arrow.RecordBatch { return t.random(schema, 0, 1) }
	t.compare(t.encode(schema, none(), none(), batch, none()), schema, want)
}

func caseErrorAnywhere(t encoderTest) {
	batch := t.random(AllTypes(), 30, 11)
	defer batch.Release()
	batch.Retain()
	size := len(t.encode(batch.Schema(), batch))
	for room := 0; room < size; room += 1 + size/97 {
		e := t.open(&failingWriter{room: room}, batch.Schema())
		err := e.Write(batch)
		if err == nil {
			err = e.Close()
		}
		load.Discard(e)
		if !errors.Is(err, errFull) {
			t.Fatalf("with room for %d of %d bytes the error is %v", room, size, err)
		}
	}
}

func caseWriterStaysOpen(t encoderTest) {
	batch := t.random(AllTypes(), 3, 14)
	defer batch.Release()
	w := &closeWatcher{}
	e := t.open(w, batch.Schema())
	if err := errors.Join(e.Write(batch), e.Close()); err != nil {
		t.Fatal(err)
	}
	if w.closed {
		t.Error("the encoder closed the writer beneath it")
	}
}

func caseRequiredValues(t encoderTest) {
	fields := make([]arrow.Field, 0, AllTypes().NumFields())
	for i, kind := range AllTypes().Fields() {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: kind.Type})
	}
	schema := arrow.NewSchema(fields, nil)
	t.roundTrip(Build(t.mem, schema, 200, func(b array.Builder, _, row int) {
		list, ok := b.(*array.ListBuilder)
		if !ok {
			b.AppendEmptyValue()
			return
		}
		list.Append(true)
		for range row % 3 {
			list.ValueBuilder().AppendNull()
		}
	}))
}

func caseNoOptions(t encoderTest) {
	batch := t.random(AllTypes(), 50, 16)
	defer batch.Release()
	var out bytes.Buffer
	e, err := t.format.New(&out, batch.Schema(), load.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Write(batch), e.Close()); err != nil {
		t.Fatal(err)
	}
	t.compare(out.Bytes(), batch.Schema(), Text(batch))
}

// Overwriting is an allocator of Arrow memory that overwrites memory once it is
// freed. The allocator of a run gives freed memory to other batches. So a value
// that is used after its batch was released is wrong in the same way, but always.
// The zero value is ready, and may be used by several goroutines at once.
type Overwriting struct{}

// Allocate returns size bytes, all zero.
func (Overwriting) Allocate(size int) []byte { return make([]byte, size) }

// Reallocate returns the bytes of b in a slice of the given size, and frees b.
func (o Overwriting) Reallocate(size int, b []byte) []byte {
	moved := o.Allocate(size)
	copy(moved, b)
	o.Free(b)
	return moved
}

// Free overwrites b.
func (Overwriting) Free(b []byte) {
	for i := range b {
		b[i] = '#'
	}
}
