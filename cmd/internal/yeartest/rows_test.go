package yeartest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// newRow makes a row of its columns, of which result_id is one.
func newRow(columns map[string]string) (*row, error) {
	id, err := strconv.ParseInt(columns["result_id"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("a row without an id: %w", err)
	}
	delete(columns, "result_id")
	return &row{id: id, text: canonical(columns)}, nil
}

// decodeNDJSON reads rows of objects whose values are strings, numbers or null.
func decodeNDJSON(data []byte) ([]*row, error) {
	var rows []*row
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	for {
		var object map[string]any
		if err := dec.Decode(&object); errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return nil, err
		}
		columns := map[string]string{}
		for name, value := range object {
			switch v := value.(type) {
			case nil:
			case string:
				columns[name] = v
			case json.Number:
				columns[name] = v.String()
			default:
				return nil, fmt.Errorf("the column %s holds %v", name, v)
			}
		}
		r, err := newRow(columns)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
}

// decodeParquet reads rows of strings, timestamps and the id.
func decodeParquet(data []byte, zone *time.Location) ([]*row, error) {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	names := file.Schema().Columns()
	var rows []*row
	for _, group := range file.RowGroups() {
		reader := group.Rows()
		for {
			batch := make([]parquet.Row, 64)
			n, err := reader.ReadRows(batch)
			for _, values := range batch[:n] {
				r, err := rowOf(names, values, zone)
				if err != nil {
					return nil, err
				}
				rows = append(rows, r)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
		}
		if err := reader.Close(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func rowOf(names [][]string, values parquet.Row, zone *time.Location) (*row, error) {
	columns := map[string]string{}
	for _, v := range values {
		name := strings.Join(names[v.Column()], ".")
		switch {
		case v.IsNull():
		case strings.HasPrefix(name, "date_"): // microseconds, UTC-adjusted
			columns[name] = time.UnixMicro(v.Int64()).In(zone).Format(time.RFC3339)
		case v.Kind() == parquet.Int64:
			columns[name] = strconv.FormatInt(v.Int64(), 10)
		default:
			columns[name] = string(v.ByteArray())
		}
	}
	return newRow(columns)
}
