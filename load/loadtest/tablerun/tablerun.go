// Package tablerun makes runs of a table for tests: rows in the bytes of a format, and a
// commit of them. Begin reading with Run.
package tablerun

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
)

// Encoded returns what a format makes of batches.
func Encoded(t testing.TB, format load.Format, schema *arrow.Schema, batches ...arrow.RecordBatch) []byte {
	t.Helper()
	var out bytes.Buffer
	e, err := format.New(&out, schema, load.EncodeOptions{})
	for _, batch := range batches {
		if err == nil {
			err = e.Write(batch)
		}
	}
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// ID returns a field that holds the result's id, as transform makes it.
func ID(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{"formetl.from"}, []string{"result_id"})}
}

// Columns are the columns of rows: an id and a text, and then others.
func Columns(more ...arrow.Field) *arrow.Schema {
	return arrow.NewSchema(append([]arrow.Field{ID("id"), {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}}, more...), nil)
}

// Rows returns the bytes of rows with the ids from 1 to n and one text.
func Rows(t testing.TB, format load.Format, n int, text string) []byte {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, Columns())
	defer b.Release()
	for row := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(row + 1))
		b.Field(1).(*array.StringBuilder).Append(text)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	return Encoded(t, format, batch.Schema(), batch)
}

// Run stages a run that replaces a whole table by n rows, which hold the run's id.
func Run(t testing.TB, d load.Destination, format load.Format, run string, n int) load.DatasetCommit {
	t.Helper()
	base, version, err := load.ReadManifest(t.Context(), d, load.ManifestName)
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		t.Fatal(err)
	}
	c := load.DatasetCommit{RunID: run, Base: version}
	generation := 1
	if base != nil {
		generation = load.NextGeneration(base.Parts)
		for _, p := range base.Parts {
			c.Superseded = append(c.Superseded, p.Path)
		}
	}
	u, err := d.Stage(t.Context(), run, load.PartName(load.PartKey{Generation: generation, Extension: format.Extension}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write(Rows(t, format, n, run)); err != nil {
		t.Fatal(err)
	}
	p, err := u.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.New = []load.Prepared{p}
	c.Manifest = load.Manifest{
		Format: format.Name, Pipeline: "p", Form: "f", RunID: run, CreatedAt: time.Now(), Rows: int64(n),
		Parts: []load.Part{{Path: p.Name, Rows: int64(n), MinID: 1, MaxID: int64(n), Bytes: p.Bytes, SHA256: p.SHA256}},
	}
	return c
}
