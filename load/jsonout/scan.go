package jsonout

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/formetl/formetl/load"
)

// scan returns the Scan of objects, one behind the other or, if array is set, as the
// elements of one array. The columns are the keys of the first object, and every other
// one must have the same keys in the same order. A file without rows tells no columns.
func scan(array bool) load.Scan {
	return func(r io.Reader, id string, each func(int64) error) (s load.Scanned, err error) {
		d := &objects{Decoder: json.NewDecoder(bufio.NewReaderSize(r, 64<<10)), id: id}
		if array {
			if err := d.delimiter('['); err != nil {
				return s, err
			}
		}
		for d.More() {
			if s.Columns, err = d.row(s.Columns, s.Rows == 0); err == nil && d.found != "" {
				var n int64
				if n, err = load.ScanID(d.found); err == nil {
					err = each(n)
				}
			}
			if err != nil {
				return s, fmt.Errorf("row %d: %w", s.Rows+1, err)
			}
			s.Rows++
		}
		if array {
			if err := d.delimiter(']'); err != nil {
				return s, err
			}
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return s, errors.New("there is something behind the last row, or the last row is cut")
		}
		return s, nil
	}
}

// objects reads one object after the other.
type objects struct {
	*json.Decoder
	id    string
	found string // the id of the last row, as its digits
}

// row reads an object. It returns its keys, which are columns unless it is the first.
func (d *objects) row(columns []string, first bool) ([]string, error) {
	if err := d.delimiter('{'); err != nil {
		return columns, err
	}
	d.found = ""
	at := 0
	for ; d.More(); at++ {
		token, err := d.Token()
		if err != nil {
			return columns, err
		}
		key, _ := token.(string)
		if first {
			columns = append(columns, key)
		} else if at >= len(columns) || columns[at] != key {
			return columns, errOtherKeys
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return columns, err
		}
		if key == d.id && d.id != "" {
			d.found = string(value)
			if value[0] == '"' {
				d.found = string(value[1 : len(value)-1])
			}
		}
	}
	if at != len(columns) {
		return columns, errOtherKeys
	}
	return columns, d.delimiter('}')
}

var errOtherKeys = errors.New("it has other keys than the rows before")

func (d *objects) delimiter(want json.Delim) error {
	token, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("%v stands where %v should", token, want)
	}
	return nil
}
