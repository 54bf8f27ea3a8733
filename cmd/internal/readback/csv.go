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
	columns, err := l.headed(records[0])
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(records)-1)
	for n, record := range records[1:] {
		if len(record) != len(columns) {
			return nil, fmt.Errorf("row %d has %d fields of %d", n+1, len(record), len(columns))
		}
		row := Row{}
		for i, field := range record {
			if field.IsNull() {
				continue
			}
			if _, isList := columns[i].element(); isList {
				field = joined(field.Value())
			}
			row[columns[i].Name] = field
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// headed gives the columns of a heading, which are those of the layout in its
// order. A part that was written before a column came lacks it.
func (l Layout) headed(heading []Cell) ([]Column, error) {
	columns, next := make([]Column, 0, len(heading)), 0
	for _, h := range heading {
		for next < len(l.Columns) && l.Columns[next].Name != h.Value() {
			next++
		}
		if next == len(l.Columns) {
			return nil, fmt.Errorf("the heading %s is none of the columns, or not in its place", h)
		}
		columns, next = append(columns, l.Columns[next]), next+1
	}
	return columns, nil
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
