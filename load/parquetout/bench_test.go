package parquetout_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/parquetout"
)

func BenchmarkEncode(b *testing.B) {
	for _, codec := range []string{"zstd", "snappy", "none"} {
		b.Run(codec, func(b *testing.B) { loadtest.Bench(b, parquetout.Format(), load.EncodeOptions{Compression: codec}) })
	}
}

// BenchmarkParts writes the rows of BenchmarkEncode as one part for each 512 rows,
// as a form of a few hundred results a day does with one part a day.
func BenchmarkParts(b *testing.B) {
	const rows = 512
	loadtest.BenchRows(b, func(w *loadtest.CountingWriter, batches []arrow.RecordBatch) error {
		for _, batch := range batches {
			for from := int64(0); from < batch.NumRows(); from += rows {
				part := batch.NewSlice(from, min(from+rows, batch.NumRows()))
				err := encode(w, part)
				part.Release()
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func encode(w *loadtest.CountingWriter, part arrow.RecordBatch) error {
	e, err := parquetout.New(w, part.Schema(), load.EncodeOptions{})
	if err != nil {
		return err
	}
	if err := e.Write(part); err != nil {
		return err
	}
	return e.Close()
}
