package jsonout_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/loadtest"
)

func BenchmarkEncode(b *testing.B) {
	for _, format := range []load.Format{jsonout.NDJSON(), jsonout.JSON()} {
		b.Run("formetl/"+format.Name, func(b *testing.B) {
			loadtest.Bench(b, format, load.EncodeOptions{Zone: loadtest.Chicago()})
		})
	}
	// The baseline gives encoding/json a map per row, the plainest means.
	b.Run("encoding-json/map", func(b *testing.B) {
		zone := loadtest.Chicago()
		loadtest.BenchRows(b, func(w *loadtest.CountingWriter, batches []arrow.RecordBatch) error {
			out := json.NewEncoder(w)
			out.SetEscapeHTML(false)
			for _, batch := range batches {
				for row := range int(batch.NumRows()) {
					object := make(map[string]any, batch.NumCols())
					for i, arr := range batch.Columns() {
						object[batch.ColumnName(i)] = plainValue(arr, row, zone)
					}
					if err := out.Encode(object); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

func plainValue(arr arrow.Array, row int, zone *time.Location) any {
	if arr.IsNull(row) {
		return nil
	}
	switch a := arr.(type) {
	case *array.String:
		return a.Value(row)
	case *array.Int64:
		return a.Value(row)
	case *array.Float64:
		return a.Value(row)
	case *array.Boolean:
		return a.Value(row)
	case *array.Timestamp:
		return time.UnixMicro(int64(a.Value(row))).In(zone).Format(time.RFC3339)
	case *array.List:
		start, end := a.ValueOffsets(row)
		elements := []string{}
		for i := start; i < end; i++ {
			elements = append(elements, a.ListValues().(*array.String).Value(int(i)))
		}
		return elements
	}
	return loadtest.Cell(arr, row)
}
