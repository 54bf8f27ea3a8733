package transform

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// growing counts how often memory in use had to be moved to larger memory.
type growing struct {
	memory.Allocator
	moved int
}

func (g *growing) Reallocate(size int, b []byte) []byte {
	if len(b) > 0 && size > cap(b) {
		g.moved++
	}
	return g.Allocator.Reallocate(size, b)
}

// TestSizes: a flattener reserves what another one of the form needed before.
func TestSizes(t *testing.T) {
	p, _ := benchPage(t)
	mem := &growing{Allocator: memory.NewGoAllocator()}
	var sizes Sizes
	flatten := func(pages int) (moved int) {
		t.Helper()
		before := mem.moved
		f, err := NewFlattener(schema(t, benchSchema(t, true)...), Options{
			Zone: zone(t, "UTC"), Mem: mem, Sizes: &sizes, Emit: func(arrow.RecordBatch) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		for range pages {
			if err := f.Append(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		return mem.moved - before
	}
	if flatten(10) == 0 {
		t.Error("the first batch never grew: the test shows nothing")
	}
	for _, pages := range []int{10, 11, 1, 10} {
		if n := flatten(pages); n > 0 {
			t.Errorf("%d pages after 10: memory was moved %d times", pages, n)
		}
	}
	if flatten(40) == 0 {
		t.Error("a batch of 4000 rows fitted into what 1000 needed")
	}
}

// TestRestart: a flattener that begins anew gives the batches and the statistics of a new
// one, and refuses where it cannot.
func TestRestart(t *testing.T) {
	p, _ := benchPage(t)
	for i := range p.Fields {
		p.Fields[i].Type = "radio"
	}
	other := new(answer).result(7, "item:1@1=no choice of before", "item:99=unknown").page(t)
	declared := schema(t, benchSchema(t, true)...)
	declared.Unknown = schemas.UnknownIgnore
	run := func(f *Flattener, p *page.Page) (rows int64, s Stats) {
		t.Helper()
		emit := func(b arrow.RecordBatch) error { rows += b.NumRows(); return nil }
		if !f.Restart(emit, nil) {
			t.Fatal("it cannot begin anew")
		}
		if err := errors.Join(f.Append(p), f.Flush()); err != nil {
			t.Fatal(err)
		}
		return rows, f.Stats()
	}
	fresh := func() *Flattener {
		f, err := NewFlattener(declared, Options{Zone: zone(t, "UTC"), Emit: func(arrow.RecordBatch) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Release)
		return f
	}
	used := fresh()
	run(used, p)
	for _, page := range []*page.Page{other, p, other} {
		rows, stats := run(used, page)
		wantRows, want := run(fresh(), page)
		if rows != wantRows || !reflect.DeepEqual(stats, want) {
			t.Errorf("%d rows, %+v; a new one gives %d, %+v", rows, stats, wantRows, want)
		}
	}
	if err := used.Append(p); err != nil {
		t.Fatal(err)
	}
	if used.Restart(nil, nil) {
		t.Error("it began anew with rows that were not flushed")
	}
	declared.Unknown = schemas.UnknownAdd
	adding := fresh()
	run(adding, other)
	if adding.Restart(nil, nil) {
		t.Error("it began anew with a column that was added")
	}
	labelled := fresh()
	other.Headings = append(other.Headings, page.Heading{ID: "1", Label: "One"})
	run(labelled, other)
	if labelled.Restart(nil, nil) {
		t.Error("it began anew with a label that a new one would not know")
	}
}

// TestPooledMemory: batches in memory that held others before are the same, to the byte.
func TestPooledMemory(t *testing.T) {
	p, _ := benchPage(t)
	written := func(mem memory.Allocator) (all []byte) {
		t.Helper()
		var out bytes.Buffer
		f, err := NewFlattener(schema(t, append(benchSchema(t, true), "none item:none string", "nothing item:nothing list<string>")...), Options{
			Zone: zone(t, "UTC"), Mem: mem, BatchRows: 77,
			Emit: func(b arrow.RecordBatch) error {
				w := ipc.NewWriter(&out, ipc.WithSchema(b.Schema()))
				return errors.Join(w.Write(b), w.Close())
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		if err := errors.Join(f.Append(p), f.Flush()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	pool := new(Pool)
	for size := 1 << 10; size <= 64<<10; size += size / 4 {
		used := make([][]byte, 0, 8)
		for range 8 {
			b := pool.Allocate(size)
			for i := range b {
				b[i] = 0xaa
			}
			used = append(used, b)
		}
		for _, b := range used {
			pool.Free(b)
		}
	}
	if !bytes.Equal(written(pool), written(memory.NewGoAllocator())) {
		t.Error("the batches differ")
	}
}
