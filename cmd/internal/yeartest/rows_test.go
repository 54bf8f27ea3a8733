package yeartest

import (
	"fmt"
	"strconv"

	"github.com/formetl/formetl/cmd/internal/readback"
)

// decode reads the rows of a data file, of whose columns result_id is one.
func decode(name string, data []byte, l readback.Layout) ([]*row, error) {
	read, err := readback.Read(name, data, l)
	if err != nil {
		return nil, err
	}
	rows := make([]*row, 0, len(read))
	for _, r := range read {
		id, err := strconv.ParseInt(r["result_id"].Value(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a row without an id: %w", err)
		}
		columns := map[string]string{}
		for name, cell := range r {
			if name != "result_id" {
				columns[name] = cell.Value()
			}
		}
		rows = append(rows, &row{id: id, text: canonical(columns)})
	}
	return rows, nil
}
