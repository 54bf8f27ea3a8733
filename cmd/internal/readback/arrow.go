package readback

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

func readArrow(data []byte, l Layout) ([]Row, error) {
	file, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	var rows []Row
	for i := range file.NumRecords() {
		batch, err := file.RecordBatch(i)
		if err != nil {
			return nil, err
		}
		if rows, err = appendBatch(rows, batch, l); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// readParquet reads by Arrow's reader of Parquet. load/loadtest has DuckDB read what the encoder
// writes, which shares nothing with it.
func readParquet(data []byte, l Layout) (rows []Row, err error) {
	_, err = eachBatch(data, func(batch arrow.RecordBatch) (err error) {
		rows, err = appendBatch(rows, batch, l)
		return err
	})
	return rows, err
}

// ParquetLines gives the schema of a Parquet file, with the metadata of its footer, and its rows
// as NDJSON in Arrow's manner.
func ParquetLines(data []byte) (schema *arrow.Schema, lines []byte, err error) {
	var text bytes.Buffer
	schema, err = eachBatch(data, func(batch arrow.RecordBatch) error { return array.RecordToJSON(batch, &text) })
	return schema, text.Bytes(), err
}

func eachBatch(data []byte, take func(arrow.RecordBatch) error) (*arrow.Schema, error) {
	table, err := pqarrow.ReadTable(context.Background(), bytes.NewReader(data), parquet.NewReaderProperties(nil), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer table.Release()
	batches := array.NewTableReader(table, 0)
	defer batches.Release()
	for batches.Next() {
		if err := take(batches.RecordBatch()); err != nil {
			return nil, err
		}
	}
	return table.Schema(), batches.Err()
}

func appendBatch(rows []Row, batch arrow.RecordBatch, l Layout) ([]Row, error) {
	first := len(rows)
	for range batch.NumRows() {
		rows = append(rows, Row{})
	}
	for c, column := range batch.Columns() {
		name := batch.ColumnName(c)
		if !l.has(name) {
			return nil, fmt.Errorf("the column %q is not known", name)
		}
		for n := range column.Len() {
			var err error
			if rows[first+n][name], err = arrowCell(column, n, l); err != nil {
				return nil, fmt.Errorf("column %q: %w", name, err)
			}
		}
	}
	return rows, nil
}

func arrowCell(column arrow.Array, n int, l Layout) (Cell, error) {
	if column.IsNull(n) {
		return Cell{}, nil
	}
	switch a := column.(type) {
	case *array.String, *array.Int64, *array.Float64, *array.Boolean, *array.Date32:
		return Text(a.ValueStr(n)), nil
	case *array.Timestamp:
		return Text(l.stamp(time.UnixMicro(int64(a.Value(n))))), nil
	case *array.List:
		from, to := a.ValueOffsets(n)
		cells := make([]Cell, 0, to-from)
		for i := from; i < to; i++ {
			c, err := arrowCell(a.ListValues(), int(i), l)
			if err != nil {
				return Cell{}, err
			}
			cells = append(cells, c)
		}
		return List(cells...), nil
	}
	return Cell{}, fmt.Errorf("the type %s is not known", column.DataType())
}
