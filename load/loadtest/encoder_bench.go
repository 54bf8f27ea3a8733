package loadtest

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
)

// Each round of a benchmark writes benchRows rows in batches of benchBatch.
const (
	benchRows  = 32_768
	benchBatch = 4096
)

// Bench measures an encoder on realistic rows, in rows a second and in MB of
// output a second.
func Bench(b *testing.B, format load.Format, o load.EncodeOptions) {
	b.Helper()
	BenchRows(b, func(w *CountingWriter, batches []arrow.RecordBatch) error {
		e, err := format.New(w, batches[0].Schema(), o)
		if err != nil {
			return err
		}
		for _, batch := range batches {
			if err := e.Write(batch); err != nil {
				return err
			}
		}
		return e.Close()
	})
}

// BenchRows measures any function that writes the batches of Bench.
func BenchRows(b *testing.B, write func(w *CountingWriter, batches []arrow.RecordBatch) error) {
	b.Helper()
	whole := Realistic(memory.NewGoAllocator(), benchRows, 1)
	defer whole.Release()
	batches := divide(whole, benchBatch)
	b.ReportAllocs()
	var w CountingWriter
	for b.Loop() {
		w = CountingWriter{}
		if err := write(&w, batches); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(w.Bytes)
	b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// CountingWriter counts the bytes written to it and discards them.
type CountingWriter struct{ Bytes int64 }

// Write counts and discards the bytes.
func (w *CountingWriter) Write(p []byte) (int, error) {
	w.Bytes += int64(len(p))
	return len(p), nil
}
