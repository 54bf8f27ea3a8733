package readback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// readJSON reads one object a line, or one array of them.
func readJSON(data []byte, array bool, l Layout) ([]Row, error) {
	var rows []Row
	switch {
	case array:
		if err := json.Unmarshal(data, &rows); err != nil {
			return nil, err
		}
	case len(data) > 0 && data[len(data)-1] != '\n':
		return nil, errNoEnd
	default:
		for line := range bytes.Lines(data) {
			var row Row
			if err := json.Unmarshal(line, &row); err != nil {
				return nil, fmt.Errorf("line %d: %w", len(rows)+1, err)
			}
			rows = append(rows, row)
		}
	}
	for i, row := range rows {
		for name := range row {
			if !l.has(name) {
				return nil, fmt.Errorf("row %d: the column %q is not known", i+1, name)
			}
		}
	}
	return rows, nil
}

// UnmarshalJSON reads a value, or an array of values. Numbers stay as they are
// written.
func (c *Cell) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case 'n': // null
		*c = Cell{}
	case '"':
		c.kind = text
		return json.Unmarshal(data, &c.text)
	case '[':
		c.kind = list
		return json.Unmarshal(data, &c.list)
	case '{':
		return errors.New("a cell holds an object")
	default:
		*c = Text(string(data))
	}
	return nil
}
