package readback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// readJSON reads one object a line, or one array of them.
func readJSON(data []byte, array bool, l Layout) ([]Row, error) {
	var objects []map[string]any
	if array {
		if err := decodeJSON(data, &objects); err != nil {
			return nil, err
		}
	} else if len(data) > 0 && data[len(data)-1] != '\n' {
		return nil, errNoEnd
	} else {
		for line := range bytes.Lines(data) {
			var object map[string]any
			if err := decodeJSON(line, &object); err != nil {
				return nil, fmt.Errorf("line %d: %w", len(objects)+1, err)
			}
			objects = append(objects, object)
		}
	}
	rows := make([]Row, len(objects))
	for i, object := range objects {
		rows[i] = Row{}
		for name, value := range object {
			c, err := jsonCell(value)
			if _, known := l.column(name); err == nil && !known {
				err = errors.New("no such column is known")
			}
			if err != nil {
				return nil, fmt.Errorf("row %d, column %q: %w", i+1, name, err)
			}
			rows[i][name] = c
		}
	}
	return rows, nil
}

// decodeJSON reads one value and keeps its numbers as they are written. Anything
// behind the value is an error.
func decodeJSON(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}

func jsonCell(value any) (Cell, error) {
	switch v := value.(type) {
	case nil:
		return Cell{}, nil
	case string:
		return Text(v), nil
	case json.Number:
		return Text(v.String()), nil
	case bool:
		return Text(strconv.FormatBool(v)), nil
	case []any:
		cells := make([]Cell, 0, len(v))
		for _, e := range v {
			c, err := jsonCell(e)
			if err != nil {
				return Cell{}, err
			}
			cells = append(cells, c)
		}
		return List(cells...), nil
	}
	return Cell{}, fmt.Errorf("it holds a %T", value)
}
