package transform

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// randomPages makes pages of random results: fields come and go, values fit
// or do not, some come several times.
func randomPages(t *testing.T, r *rand.Rand) []*page.Page {
	values := []string{"", "1", "-7", "1.25", "true", "2026-01-01", "2026-03-08 02:30:00", "2026-11-01 01:30:00", "x", "a|b", "|", "1|2|x", `\`, "0"}
	pages := make([]*page.Page, 1+r.IntN(4))
	id := int64(0)
	for i := range pages {
		a := new(answer)
		for range r.IntN(12) {
			id += 1 + int64(r.IntN(3))
			cells := make([]string, r.IntN(9))
			for k := range cells {
				kind := []string{"meta", "item"}[r.IntN(2)]
				field := r.IntN(9)
				cells[k] = fmt.Sprintf("%s:%d@%d=%s", kind, field, 9-field, values[r.IntN(len(values))])
			}
			a.result(id, cells...)
		}
		pages[i] = a.page(t)
	}
	return pages
}

func randomSchema(t *testing.T, r *rand.Rand) *schemas.Schema {
	types := []string{"string", "int64", "float64", "bool", "date", "timestamp", "decimal(4,2)", "list<string>", "list<int64>", "list<timestamp>"}
	rules := []string{"reject", "set_null", "set_null", "set_null"}
	s := schema(t, "id result_id int64")
	for i := range r.IntN(7) {
		kind := []string{"meta", "item"}[r.IntN(2)]
		c := col(t, fmt.Sprintf("c%d %s:%d %s %s", i, kind, i, types[r.IntN(len(types))], rules[r.IntN(len(rules))]))
		c.Inferred = r.IntN(4) == 0
		c.Required = c.OnError == schemas.OnErrorReject && r.IntN(4) == 0
		if r.IntN(3) == 0 {
			c.Reading = randomReading(c.Type)
		}
		s.Columns = append(s.Columns, c)
	}
	s.Unknown = []schemas.Unknown{schemas.UnknownAdd, schemas.UnknownIgnore, ""}[r.IntN(3)]
	s.Empty = []schemas.Empty{schemas.EmptyKeep, schemas.EmptyAsNull}[r.IntN(2)]
	return s
}

// randomReading declares a form that some of the random values have.
func randomReading(t schemas.Type) schemas.Reading {
	switch t.Kind {
	case schemas.Int64, schemas.Float64, schemas.Decimal:
		return schemas.Reading{Group: ","}
	case schemas.Bool:
		return schemas.Reading{True: []string{"X", "1"}, False: []string{"a"}}
	case schemas.Date:
		return schemas.Reading{Formats: []string{"D/M/YYYY", "YYYY-MM-DD"}}
	case schemas.Timestamp:
		return schemas.Reading{Formats: []string{"YYYY-M-D", "YYYY-M-D H:m:s"}}
	}
	return schemas.Reading{}
}

// flattened is everything that a run gave, its batches conformed to the last
// schema as a file of several batches is.
func flattened(t *testing.T, s *schemas.Schema, pages []*page.Page, batchRows int) (all []string, r *run) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	var kept []arrow.RecordBatch
	r = start(t, s, func(o *Options) {
		o.Zone, o.BatchRows = zone(t, "America/Chicago"), batchRows
		o.Emit = func(b arrow.RecordBatch) error {
			b.Retain()
			kept = append(kept, b)
			return nil
		}
	}).feed(t, pages...)
	for _, b := range kept {
		c, err := Conform(b, r.schema, mem)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows(c)...)
		c.Release()
		b.Release()
	}
	return all, r
}

// TestBatchesDoNotMatter: the rows, the dead letters, the columns and the
// counts are the same whether a batch holds one row or all.
func TestBatchesDoNotMatter(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		pages, s := randomPages(t, r), randomSchema(t, r)
		want, whole := flattened(t, s, pages, 0)
		for _, batchRows := range []int{1, 2, 3, 7} {
			got, run := flattened(t, s, pages, batchRows)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %d rows a batch:\n%s\nwant\n%s", seed, batchRows, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if !slices.Equal(run.rejects, whole.rejects) || !reflect.DeepEqual(run.Stats(), whole.Stats()) || !reflect.DeepEqual(run.Columns(), whole.Columns()) {
				t.Fatalf("seed %d, %d rows a batch: %+v and %+v", seed, batchRows, run.Stats(), whole.Stats())
			}
		}
		results := 0
		for _, p := range pages {
			results += p.Len()
		}
		if got := whole.Stats(); got.Rows+got.Rejected != int64(results) || got.Rows != int64(len(want)) || got.Rejected != int64(len(whole.rejects)) {
			t.Fatalf("seed %d: %d results gave %+v", seed, results, got)
		}
	}
}

// TestWindowsDoNotMatter: flatteners that each read one page, in any order,
// add the same columns under the same names as one that reads them all, and
// give the same rows once conformed to their union.
func TestWindowsDoNotMatter(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		pages, s := randomPages(t, r), randomSchema(t, r)
		want, whole := flattened(t, s, pages, 0)
		var added [][]schemas.Column
		var total Stats
		for _, p := range pages {
			_, part := flattened(t, s, []*page.Page{p}, 2)
			added = append(added, part.Stats().Added)
			total.Add(part.Stats())
		}
		union := schemas.Merge(s.Columns, added...)
		if !reflect.DeepEqual(union, whole.Columns()) {
			t.Fatalf("seed %d: columns\n%v\nwant\n%v", seed, union, whole.Columns())
		}
		if !reflect.DeepEqual(total, whole.Stats()) {
			t.Fatalf("seed %d: stats\n%+v\nwant\n%+v", seed, total, whole.Stats())
		}
		target := schemas.ArrowSchema(union)
		var got []string
		for _, p := range pages {
			start(t, s, func(o *Options) {
				o.Zone = zone(t, "America/Chicago")
				o.Emit = func(b arrow.RecordBatch) error {
					c, err := Conform(b, target, nil)
					if err != nil {
						return err
					}
					defer c.Release()
					got = append(got, rows(c)...)
					return nil
				}
			}).feed(t, p)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
