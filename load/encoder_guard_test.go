package load_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
)

// fakeEncoder counts calls and fails on demand.
type fakeEncoder struct {
	writes, closes, discards int
	fail                     error
}

func (e *fakeEncoder) Write(arrow.RecordBatch) error { e.writes++; return e.fail }
func (e *fakeEncoder) Close() error                  { e.closes++; return e.fail }
func (e *fakeEncoder) Discard()                      { e.discards++ }

func column(name string, t arrow.DataType, nullable bool) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: name, Type: t, Nullable: nullable}}, nil)
}

// oneRow returns a batch of one row that is null.
func oneRow(t *testing.T, schema *arrow.Schema) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).AppendNull()
	batch := b.NewRecordBatch()
	t.Cleanup(batch.Release)
	return batch
}

func TestGuardKeepsTheFirstError(t *testing.T) {
	schema := column("a", arrow.PrimitiveTypes.Int64, true)
	first := errors.New("disk full")
	enc := &fakeEncoder{fail: first}
	g := load.Guard(schema, enc)
	for range 3 {
		if err := g.Write(oneRow(t, schema)); !errors.Is(err, first) {
			t.Errorf("Write gives %v", err)
		}
	}
	if err := g.Close(); !errors.Is(err, first) {
		t.Errorf("Close gives %v", err)
	}
	if enc.writes != 1 || enc.closes != 0 || enc.discards != 1 {
		t.Errorf("%d writes, %d closes, %d discards beneath", enc.writes, enc.closes, enc.discards)
	}
}

func TestGuardClose(t *testing.T) {
	schema := column("a", arrow.PrimitiveTypes.Int64, true)
	enc := &fakeEncoder{}
	g := load.Guard(schema, enc)
	if err := errors.Join(g.Write(oneRow(t, schema)), g.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	if err := g.Write(oneRow(t, schema)); !errors.Is(err, load.ErrClosed) {
		t.Errorf("Write after Close gives %v", err)
	}
	if err := g.Close(); err != nil {
		t.Errorf("a refused Write changed what Close gives: %v", err)
	}
	if enc.writes != 1 || enc.closes != 1 || enc.discards != 0 {
		t.Errorf("%d writes, %d closes, %d discards beneath", enc.writes, enc.closes, enc.discards)
	}
}

func TestGuardKeepsAnErrorOfClose(t *testing.T) {
	enc := &fakeEncoder{fail: errors.New("disk full")}
	g := load.Guard(column("a", arrow.PrimitiveTypes.Int64, true), enc)
	if first, second := g.Close(), g.Close(); !errors.Is(first, enc.fail) || !errors.Is(second, enc.fail) || enc.closes != 1 {
		t.Errorf("Close gives %v, then %v, with %d calls beneath", first, second, enc.closes)
	}
}

func TestGuardRefusesBatches(t *testing.T) {
	schema := column("a", arrow.PrimitiveTypes.Int64, true)
	for name, c := range map[string]struct {
		batch *arrow.Schema
		want  string
	}{
		"another name":     {column("b", arrow.PrimitiveTypes.Int64, true), `"b"`},
		"another type":     {column("a", arrow.BinaryTypes.String, true), "utf8"},
		"not nullable":     {column("a", arrow.PrimitiveTypes.Int64, false), `"a"`},
		"one column more":  {arrow.NewSchema(append(schema.Fields(), arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), nil), "2 columns"},
		"metadata differs": {arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{"k"}, []string{"v"})}}, nil), `"a"`},
	} {
		enc := &fakeEncoder{}
		b := array.NewRecordBuilder(memory.DefaultAllocator, c.batch)
		batch := b.NewRecordBatch()
		if err := load.Guard(schema, enc).Write(batch); err == nil || !strings.Contains(err.Error(), c.want) || enc.writes != 0 {
			t.Errorf("%s: %v after %d writes", name, err, enc.writes)
		}
		batch.Release()
		b.Release()
	}
	required := column("a", arrow.PrimitiveTypes.Int64, false)
	if err := load.Guard(required, &fakeEncoder{}).Write(oneRow(t, required)); err == nil || !strings.Contains(err.Error(), "1 nulls") {
		t.Errorf("a null in a required column gives %v", err)
	}
}

func TestCheckSchema(t *testing.T) {
	utc := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	for _, good := range []arrow.DataType{
		arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Boolean,
		arrow.FixedWidthTypes.Date32, utc, &arrow.Decimal128Type{Precision: 38, Scale: 38}, &arrow.Decimal128Type{Precision: 1},
		arrow.ListOf(utc), arrow.ListOf(arrow.BinaryTypes.String),
	} {
		if err := load.CheckSchema(column("a", good, true)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []arrow.DataType{
		arrow.Null, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.FixedWidthTypes.Date64, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Berlin"},
		&arrow.Decimal128Type{Precision: 2, Scale: 3}, &arrow.Decimal128Type{}, &arrow.Decimal256Type{Precision: 5},
		arrow.ListOf(arrow.ListOf(utc)), arrow.LargeListOf(utc), arrow.StructOf(),
	} {
		if err := load.CheckSchema(column("a", bad, true)); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := load.CheckSchema(nil); err == nil {
		t.Error("no schema is taken")
	}
	twice := arrow.NewSchema(append(column("a", utc, true).Fields(), column("a", utc, true).Fields()...), nil)
	if err := load.CheckSchema(twice); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("one name twice: %v", err)
	}
}

func TestGuardDiscardsOnce(t *testing.T) {
	schema := column("a", arrow.PrimitiveTypes.Int64, true)
	discard := func(e load.Encoder) { e.(interface{ Discard() }).Discard() }
	enc := &fakeEncoder{}
	g := load.Guard(schema, enc)
	discard(g)
	discard(g)
	if err := g.Write(oneRow(t, schema)); !errors.Is(err, load.ErrClosed) {
		t.Errorf("Write after Discard gives %v", err)
	}
	if err := g.Close(); err == nil || enc.discards != 1 || enc.writes+enc.closes != 0 {
		t.Errorf("%v after %d discards, %d writes, %d closes", err, enc.discards, enc.writes, enc.closes)
	}
	whole := &fakeEncoder{}
	g = load.Guard(schema, whole)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if discard(g); whole.discards != 0 {
		t.Error("a file that is whole was discarded")
	}
}
