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
			if strings.HasPrefix(columns[i].Type, "list<") && !field.IsNull() {
				field = joined(field.Value())
			}
			row[columns[i].Name] = field
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// headed gives the columns of a heading. They are the layout's in its order, but
// a part lacks the columns that were added after it was written.
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

var errNoEnd = errors.New("the last line has no end")

// csvRecords divides a file into records and these into fields. A field that is
// empty and has no quotes is null.
func csvRecords(data []byte) (records [][]Cell, err error) {
	if len(data) > 0 && data[len(data)-1] != '\n' {
		return nil, errNoEnd
	}
	var record []Cell
	for len(data) > 0 {
		field, rest := csvField(data)
		record = append(record, field)
		switch {
		case len(rest) == 0:
			return nil, fmt.Errorf("record %d: a quote without its partner", len(records)+1)
		case rest[0] == '\n':
			records, record = append(records, record), nil
		case rest[0] != ',':
			return nil, fmt.Errorf("record %d: %q in a field without quotes, or behind one with quotes", len(records)+1, rest[0])
		}
		data = rest[1:]
	}
	return records, nil
}

// csvField reads a field. The rest begins with what ends the field, and is empty
// where a quote has no partner.
func csvField(data []byte) (field Cell, rest []byte) {
	data, quoted := bytes.CutPrefix(data, []byte{'"'})
	if !quoted {
		n := bytes.IndexAny(data, ",\n\"\r")
		if n > 0 {
			field = Text(string(data[:n]))
		}
		return field, data[n:]
	}
	var value []byte
	for {
		n := bytes.IndexByte(data, '"')
		if n < 0 {
			return Cell{}, nil
		}
		value, rest = append(value, data[:n]...), data[n+1:]
		if len(rest) == 0 || rest[0] != '"' {
			return Text(string(value)), rest
		}
		value, data = append(value, '"'), rest[1:]
	}
}
