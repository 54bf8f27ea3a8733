package loadtest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
)

// encoderProtocolCases are about equal bytes, errors and the ownership of
// batches.
func encoderProtocolCases() []encoderCase {
	return []encoderCase{
		{"the same bytes for any batches", caseBatches},
		{"the same bytes twice", caseTwice},
		{"slices of a batch", caseSlices},
		{"batches without rows", caseEmptyBatches},
		{"an error is kept", caseStickyError},
		{"an error at any byte", caseErrorAnywhere},
		{"close twice", caseCloseTwice},
		{"write after close", caseWriteAfterClose},
		{"the writer stays open", caseWriterStaysOpen},
		{"a batch of another schema", caseOtherSchema},
		{"a null where none may be", caseRequired},
		{"required columns", caseRequiredValues},
		{"schemas that are refused", caseRefused},
		{"options left out", caseNoOptions},
	}
}

// caseBatches checks that the file does not depend on how rows are divided into
// batches. Otherwise a rerun would not be byte-identical. 8500 rows are more
// than any encoder samples.
func caseBatches(t encoderTest) {
	whole := Realistic(t.mem, 8500, 5)
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

func caseTwice(t encoderTest) {
	first := t.encode(AllTypes(), t.random(AllTypes(), 2000, 6))
	second := t.encode(AllTypes(), t.random(AllTypes(), 2000, 6))
	if !bytes.Equal(first, second) {
		t.Errorf("the same rows gave %d bytes and other %d bytes", len(first), len(second))
	}
}

func caseSlices(t encoderTest) {
	whole := t.random(AllTypes(), 500, 8)
	defer whole.Release()
	t.roundTrip(whole.NewSlice(123, 457))
}

func caseEmptyBatches(t encoderTest) {
	batch := t.random(AllTypes(), 10, 9)
	want := Text(batch)
	schema := batch.Schema()
	none := func() arrow.RecordBatch { return t.random(schema, 0, 1) }
	t.compare(t.encode(schema, none(), none(), batch, none()), schema, want)
}

// fillUp writes until the encoder fails, and returns the error.
func (t encoderTest) fillUp(e load.Encoder, batch arrow.RecordBatch) error {
	for range 100 {
		if err := e.Write(batch); err != nil {
			return err
		}
	}
	return e.Close()
}

func caseStickyError(t encoderTest) {
	batch := Realistic(t.mem, 9000, 10)
	defer batch.Release()
	w := &failingWriter{room: 100_000}
	e := t.open(w, batch.Schema())
	err := t.fillUp(e, batch)
	if !errors.Is(err, errFull) {
		t.Fatalf("the error is %v, not the writer's", err)
	}
	if again := e.Write(batch); !errors.Is(again, errFull) {
		t.Errorf("the next Write gives %v", again)
	}
	if again := e.Close(); !errors.Is(again, errFull) {
		t.Errorf("Close gives %v", again)
	}
	if w.calls > 0 {
		t.Errorf("%d writes to a writer that had failed", w.calls)
	}
}

func caseErrorAnywhere(t encoderTest) {
	batch := t.random(AllTypes(), 30, 11)
	defer batch.Release()
	batch.Retain()
	size := len(t.encode(batch.Schema(), batch))
	for room := 0; room < size; room += 1 + size/97 {
		e := t.open(&failingWriter{room: room}, batch.Schema())
		err := e.Write(batch)
		if closed := e.Close(); err == nil {
			err = closed
		}
		if !errors.Is(err, errFull) {
			t.Fatalf("with room for %d of %d bytes the error is %v", room, size, err)
		}
	}
}

func caseCloseTwice(t encoderTest) {
	batch := t.random(AllTypes(), 3, 12)
	defer batch.Release()
	var out bytes.Buffer
	e := t.open(&out, batch.Schema())
	if err := e.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	size := out.Len()
	if err := e.Close(); err != nil || out.Len() != size {
		t.Errorf("the second Close gives %v and %d more bytes", err, out.Len()-size)
	}
}

func caseWriteAfterClose(t encoderTest) {
	batch := t.random(AllTypes(), 3, 13)
	defer batch.Release()
	e := t.open(&bytes.Buffer{}, batch.Schema())
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(batch); !errors.Is(err, load.ErrClosed) {
		t.Errorf("Write after Close gives %v", err)
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

func caseOtherSchema(t encoderTest) {
	batch := t.random(Columns("b", arrow.PrimitiveTypes.Int64), 3, 15)
	defer batch.Release()
	e := t.open(&bytes.Buffer{}, Columns("a", arrow.PrimitiveTypes.Int64))
	if err := e.Write(batch); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("a batch of another schema gives %v, which does not name the column", err)
	}
}

func caseRequired(t encoderTest) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	batch := Build(t.mem, schema, 1, func(b array.Builder, _, _ int) { b.AppendNull() })
	defer batch.Release()
	e := t.open(&bytes.Buffer{}, schema)
	if err := e.Write(batch); err == nil || !strings.Contains(err.Error(), `"id"`) {
		t.Errorf("a null in a required column gives %v, which does not name the column", err)
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

func caseRefused(t encoderTest) {
	whole := arrow.PrimitiveTypes.Int64
	for name, schema := range map[string]*arrow.Schema{
		"no columns":     arrow.NewSchema(nil, nil),
		"one name twice": Columns("a", whole, "a", whole),
		"an int32":       Columns("a", arrow.PrimitiveTypes.Int32),
		"milliseconds":   Columns("a", arrow.FixedWidthTypes.Timestamp_ms),
		"another zone":   Columns("a", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "America/Chicago"}),
		"no zone":        Columns("a", &arrow.TimestampType{Unit: arrow.Microsecond}),
		"negative scale": Columns("a", &arrow.Decimal128Type{Precision: 5, Scale: -1}),
		"a list of list": Columns("a", ListOf(ListOf(whole))),
		"a struct":       Columns("a", arrow.StructOf(arrow.Field{Name: "x", Type: whole})),
	} {
		var out bytes.Buffer
		if _, err := t.format.New(&out, schema, load.EncodeOptions{}); err == nil || out.Len() > 0 {
			t.Errorf("%s: the error is %v, after %d bytes", name, err, out.Len())
		}
	}
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
