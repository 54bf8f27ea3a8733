package load

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// ErrClosed is returned by a Write after Close.
var ErrClosed = errors.New("the encoder is closed")

// Guard wraps an encoder with the rules that hold for all encoders. A batch of
// another schema is refused before any of it is written. The first error is
// returned by every later call. Write after Close returns ErrClosed, and a
// second Close is harmless. After an error Close writes nothing, so that an
// incomplete file never looks complete.
//
// If enc has a Discard method, Guard calls it at the first error to release
// buffered batches.
func Guard(schema *arrow.Schema, enc Encoder) Encoder {
	return &guard{schema: schema, enc: enc}
}

type guard struct {
	schema *arrow.Schema
	enc    Encoder
	err    error
	closed bool
}

// discarder is an encoder that buffers batches and can release them.
type discarder interface{ Discard() }

// Write passes on a batch of the encoder's schema. After an error it returns
// that error again.
func (g *guard) Write(batch arrow.RecordBatch) error {
	if g.err != nil {
		return g.err
	}
	if g.closed {
		return ErrClosed
	}
	if s := batch.Schema(); s != g.schema && !s.Equal(g.schema) {
		return g.fail(fmt.Errorf("the batch has another schema than the file: %s: this is a bug in formetl", differs(g.schema, s)))
	}
	for i := range g.schema.NumFields() {
		if f := g.schema.Field(i); !f.Nullable && batch.Column(i).NullN() > 0 {
			return g.fail(fmt.Errorf("column %q holds %d nulls and was declared to hold none: this is a bug in formetl", f.Name, batch.Column(i).NullN()))
		}
	}
	if err := g.enc.Write(batch); err != nil {
		return g.fail(err)
	}
	return nil
}

// Close ends the file once. After an error it returns that error again.
func (g *guard) Close() error {
	if g.err != nil || g.closed {
		return g.err
	}
	g.closed = true
	if err := g.enc.Close(); err != nil {
		return g.fail(err)
	}
	return nil
}

// Discard gives up a file that was not closed. It releases what the encoder
// buffers. Later calls return an error.
func (g *guard) Discard() {
	if g.err == nil && !g.closed {
		_ = g.fail(ErrClosed)
	}
}

func (g *guard) fail(err error) error {
	g.err = err
	if d, ok := g.enc.(discarder); ok {
		d.Discard()
	}
	return err
}

// differs describes the first difference between two schemas.
func differs(want, got *arrow.Schema) string {
	for i := range min(want.NumFields(), got.NumFields()) {
		if w, g := want.Field(i), got.Field(i); !w.Equal(g) {
			return fmt.Sprintf("column %d is %q %s, not %q %s", i, g.Name, g.Type, w.Name, w.Type)
		}
	}
	return fmt.Sprintf("%d columns, not %d", got.NumFields(), want.NumFields())
}

// CheckSchema returns an error for a schema that no encoder can write. A schema
// needs at least one column, and no two columns may share a name. The types are
// String, Int64, Float64, Boolean, Date32, Timestamp(us, UTC), Decimal128(p, s)
// with 0 <= s <= p, and a List of any of these.
func CheckSchema(schema *arrow.Schema) error {
	if schema == nil || schema.NumFields() == 0 {
		return errors.New("a file needs at least one column")
	}
	seen := make(map[string]bool, schema.NumFields())
	for i, f := range schema.Fields() {
		if seen[f.Name] {
			return fmt.Errorf("column %d: the name %q is used twice: rename one", i, f.Name)
		}
		seen[f.Name] = true
		t := f.Type
		if l, ok := t.(*arrow.ListType); ok {
			t = l.Elem()
		}
		if !scalar(t) {
			return fmt.Errorf("column %d %q: no encoder writes the type %s", i, f.Name, f.Type)
		}
	}
	return nil
}

func scalar(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.StringType, *arrow.Int64Type, *arrow.Float64Type, *arrow.BooleanType, *arrow.Date32Type:
		return true
	case *arrow.TimestampType:
		return t.Unit == arrow.Microsecond && t.TimeZone == "UTC"
	case *arrow.Decimal128Type:
		return t.Scale >= 0 && t.Scale <= t.Precision && t.Precision >= 1 && t.Precision <= 38
	default:
		return false
	}
}
