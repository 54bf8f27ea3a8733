//go:build duckdb

package duckdb

import (
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load/internal/tables"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/tablerun"
)

// BenchmarkRead reads staged rows into memory, as a commit does before it opens the database.
func BenchmarkRead(b *testing.B) {
	const rows = 20_000
	id := arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{tables.MetaFrom}, []string{tables.FromResultID})}
	fields := append([]arrow.Field{id}, loadtest.AllTypes().Fields()...)
	schema := arrow.NewSchema(fields, nil)
	next := int64(0)
	ids := loadtest.Build(memory.DefaultAllocator, arrow.NewSchema(fields[:1], nil), rows, func(to array.Builder, _, _ int) {
		next++
		to.(*array.Int64Builder).Append(next)
	})
	others := loadtest.Random(memory.DefaultAllocator, loadtest.AllTypes(), rows, 1)
	batch := array.NewRecordBatch(schema, append([]arrow.Array{ids.Column(0)}, others.Columns()...), rows)
	data := tablerun.Encoded(b, Format(), schema, batch)
	d := open(b, filepath.Join(b.TempDir(), "w.duckdb"), "main.t")
	u, err := d.Stage(b.Context(), "run1", "part-min-max-000001-0000.rows")
	if err == nil {
		_, err = u.Write(data)
	}
	if err != nil {
		b.Fatal(err)
	}
	p, err := u.Prepare(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportMetric(float64(rows*len(fields)), "values/op")
	for b.Loop() {
		s, err := d.newSession(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		t := &transaction{d: d, s: s, staged: map[string]tables.Staged{}}
		if err := t.read(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		s.close()
	}
}
