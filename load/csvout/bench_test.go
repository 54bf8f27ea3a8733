package csvout_test

import (
	"encoding/csv"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/loadtest"
)

func BenchmarkEncode(b *testing.B) {
	b.Run("formetl", func(b *testing.B) {
		loadtest.Bench(b, csvout.Format(), load.EncodeOptions{Zone: loadtest.Chicago()})
	})
	b.Run("formetl/excel", func(b *testing.B) {
		loadtest.Bench(b, csvout.Format(), load.EncodeOptions{Zone: loadtest.Chicago(), Profile: csvout.Excel})
	})
	// The baseline makes the same cells by the plainest means.
	b.Run("encoding-csv", func(b *testing.B) {
		zone := loadtest.Chicago()
		loadtest.BenchRows(b, func(w *loadtest.CountingWriter, batches []arrow.RecordBatch) error {
			out := csv.NewWriter(w)
			for _, batch := range batches {
				record := make([]string, batch.NumCols())
				for row := range int(batch.NumRows()) {
					for i, arr := range batch.Columns() {
						record[i] = plainCell(arr, row, zone)
					}
					if err := out.Write(record); err != nil {
						return err
					}
				}
			}
			out.Flush()
			return out.Error()
		})
	})
}

func plainCell(arr arrow.Array, row int, zone *time.Location) string {
	if arr.IsNull(row) {
		return ""
	}
	switch a := arr.(type) {
	case *array.String:
		return a.Value(row)
	case *array.Int64:
		return strconv.FormatInt(a.Value(row), 10)
	case *array.Float64:
		return strconv.FormatFloat(a.Value(row), 'f', -1, 64)
	case *array.Timestamp:
		return time.UnixMicro(int64(a.Value(row))).In(zone).Format(time.RFC3339)
	case *array.List:
		start, end := a.ValueOffsets(row)
		var elements []string
		for i := start; i < end; i++ {
			elements = append(elements, a.ListValues().(*array.String).Value(int(i)))
		}
		return strings.Join(elements, "|")
	}
	return loadtest.Cell(arr, row)
}
