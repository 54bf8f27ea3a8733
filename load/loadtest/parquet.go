package loadtest

import (
	"bytes"
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// ParquetLines gives the schema of a Parquet file, with the metadata of its footer, and its rows
// as NDJSON in Arrow's manner.
func ParquetLines(data []byte) (schema *arrow.Schema, lines []byte, err error) {
	table, err := pqarrow.ReadTable(context.Background(), bytes.NewReader(data), parquet.NewReaderProperties(nil), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, nil, err
	}
	defer table.Release()
	var text bytes.Buffer
	batches := array.NewTableReader(table, 0)
	defer batches.Release()
	for batches.Next() {
		if err := array.RecordToJSON(batches.RecordBatch(), &text); err != nil {
			return nil, nil, err
		}
	}
	return table.Schema(), text.Bytes(), batches.Err()
}
