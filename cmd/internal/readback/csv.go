package readback

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// readCSV reads CSV by RFC 4180 with \n, where null is empty without quotes.
// encoding/csv would not do: it changes line ends in values, and does not tell
// null from the empty string.
func readCSV(data []byte, l Layout) ([]Row, error) {
	records, err := csvRecords(data)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, errors.New("it has no heading")
	}
	if len(records[0]) != len(l.Columns) {
		return nil, fmt.Errorf("it has %d columns, and should have %d", len(records[0]), len(l.Columns))
	}
	for i, heading := range records[0] {
		if heading.Value() != l.Columns[i].Name {
			return nil, fmt.Errorf("column %d is %s, and should be %q", i+1, heading, l.Columns[i].Name)
		}
	}
	rows := make([]Row, 0, len(records)-1)
	for n, record := range records[1:] {
		if len(record) != len(l.Columns) {
			return nil, fmt.Errorf("row %d has %d fields of %d", n+1, len(record), len(l.Columns))
		}
		row := Row{}
		for i, field := range record {
			if field.IsNull() {
				continue
			}
			if _, isList := l.Columns[i].element(); isList {
				field = joined(field.Value())
			}
			row[l.Columns[i].Name] = field
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// csvRecords divides a file into fields; those that are empty and unquoted are
// null.
func csvRecords(data []byte) (records [][]Cell, err error) {
	var record []Cell
	for len(data) > 0 {
		var field Cell
		if field, data, err = csvField(data); err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		record = append(record, field)
		switch {
		case len(data) == 0:
			return nil, errors.New("the last line has no end")
		case data[0] == ',':
			if data = data[1:]; len(data) == 0 {
				return nil, errors.New("the last line has no end")
			}
		case data[0] == '\n':
			records, record, data = append(records, record), nil, data[1:]
		default:
			return nil, fmt.Errorf("record %d: %q follows a quote", len(records)+1, data[0])
		}
	}
	return records, nil
}

// csvField reads a field up to the comma or line end behind it.
func csvField(data []byte) (field Cell, rest []byte, err error) {
	if data[0] != '"' {
		n := bytes.IndexAny(data, ",\n\"\r")
		if n < 0 {
			return Cell{}, nil, errors.New("the last line has no end")
		}
		if data[n] == '"' || data[n] == '\r' {
			return Cell{}, nil, fmt.Errorf("%q in a field without quotes", data[n])
		}
		if n == 0 {
			return Cell{}, data, nil
		}
		return Text(string(data[:n])), data[n:], nil
	}
	var value strings.Builder
	for data = data[1:]; ; {
		n := bytes.IndexByte(data, '"')
		if n < 0 {
			return Cell{}, nil, errors.New("a quote without its partner")
		}
		value.Write(data[:n])
		if data = data[n+1:]; len(data) == 0 || data[0] != '"' {
			return Text(value.String()), data, nil
		}
		value.WriteByte('"')
		data = data[1:]
	}
}
