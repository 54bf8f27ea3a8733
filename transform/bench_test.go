package transform

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract/page"
)

// benchPage is a page of 100 results of 31 columns: the id, three metas, 27
// items, as decisions.md measures.
func benchPage(tb testing.TB) (*page.Page, int64) {
	a := new(answer)
	for i := range 100 {
		cells := append(make([]string, 0, 30),
			"meta:result_status=Complete",
			fmt.Sprintf("meta:date_start=2026-01-%02d %02d:%02d:00", i%28+1, i%24, i%60),
			fmt.Sprintf("meta:date_finish=2026-01-%02d %02d:%02d:30", i%28+1, i%24, i%60),
		)
		for k := range 24 {
			cells = append(cells, fmt.Sprintf("item:%d@%d=answer %d of a usual length %d", k+1, k+1, i, k))
		}
		cells = append(cells, fmt.Sprintf("item:25@25=%d.%02d", i*37, i), fmt.Sprintf("item:26@26=%d", i), "item:27@27=red|green|blue")
		a.result(int64(i+1), cells...)
	}
	return a.page(tb), int64(a.Len())
}

func benchSchema(tb testing.TB, typed bool) []string {
	lines := []string{"result_id result_id int64", "status meta:result_status string", "started meta:date_start timestamp", "finished meta:date_finish timestamp"}
	for k := range 24 {
		lines = append(lines, fmt.Sprintf("c%d item:%d string", k+1, k+1))
	}
	last := []string{"price item:25 string", "n item:26 string", "colours item:27 list<string>"}
	if typed {
		last[0], last[1] = "price item:25 decimal(12,2)", "n item:26 int64"
	}
	if len(lines)+len(last) != 31 {
		tb.Fatal(strings.Join(lines, "\n"))
	}
	return append(lines, last...)
}

// BenchmarkFlatten measures pages of 100 results of 31 columns. MB/s are of
// the answers' bytes; allocations are per page, those of the batches included.
func BenchmarkFlatten(b *testing.B) {
	for name, typed := range map[string]bool{"strings": false, "typed": true} {
		b.Run(name, func(b *testing.B) {
			p, size := benchPage(b)
			rows := int64(0)
			f, err := NewFlattener(schema(b, benchSchema(b, typed)...), Options{
				Zone: zone(b, "America/Chicago"),
				Emit: func(batch arrow.RecordBatch) error { rows += batch.NumRows(); return nil },
			})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Release()
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Append(p); err != nil {
					b.Fatal(err)
				}
			}
			if err := f.Flush(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// TestAppendAllocates holds that nothing is allocated per value: only the builders grow, by
// doubling.
func TestAppendAllocates(t *testing.T) {
	p, _ := benchPage(t)
	f, err := NewFlattener(schema(t, benchSchema(t, true)...), Options{
		Zone: zone(t, "America/Chicago"), BatchRows: 1 << 20, BatchBytes: 1 << 30,
		Emit: func(arrow.RecordBatch) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	if err := f.Append(p); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(50, func() { _ = f.Append(p) }); n > 31 { // columns
		t.Errorf("%.1f allocations a page of 3,100 values", n)
	}
}
