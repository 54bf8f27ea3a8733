package arrowout

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/formetl/formetl/load"
)

// scan is the load.Scan of Arrow's file format. It reads one record batch after the other.
func scan(r io.Reader, id string, each func(int64) error) (s load.Scanned, err error) {
	from, ok := r.(ipc.ReadAtSeeker)
	if !ok {
		return s, errors.New("arrow: the file cannot be read from any place")
	}
	defer load.Damaged(&err)
	file, err := ipc.NewFileReader(from)
	if err != nil {
		return s, err
	}
	defer func() { _ = file.Close() }() // read only
	for _, f := range file.Schema().Fields() {
		s.Columns = append(s.Columns, f.Name)
	}
	for i := range file.NumRecords() {
		batch, err := file.RecordBatch(i)
		if err != nil {
			return s, err
		}
		err = eachID(batch, id, each)
		s.Rows += batch.NumRows()
		batch.Release()
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// eachID calls each with the ids of a batch.
func eachID(batch arrow.RecordBatch, id string, each func(int64) error) error {
	at := batch.Schema().FieldIndices(id)
	if len(at) == 0 {
		return nil
	}
	ids := batch.Column(at[0])
	for row := range ids.Len() {
		n, err := load.ScanID(ids.ValueStr(row))
		if numbers, ok := ids.(*array.Int64); ok && numbers.IsValid(row) {
			n, err = numbers.Value(row), nil
		}
		if err == nil {
			err = each(n)
		}
		if err != nil {
			return fmt.Errorf("row %d of a batch: %w", row+1, err)
		}
	}
	return nil
}
