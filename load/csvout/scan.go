package csvout

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/formetl/formetl/load"
)

// scan returns the Scan of CSV with a delimiter. Headings are as the file has them, in
// the profile excel with a ' in front of some.
func scan(delimiter rune) load.Scan {
	return func(r io.Reader, id string, each func(int64) error) (s load.Scanned, err error) {
		buffered := bufio.NewReaderSize(r, 64<<10)
		if head, _ := buffered.Peek(len(bom)); string(head) == bom {
			_, _ = buffered.Discard(len(bom)) // they are in the buffer
		}
		rows := csv.NewReader(buffered)
		rows.Comma, rows.ReuseRecord = delimiter, true
		head, err := rows.Read()
		if err != nil {
			return s, fmt.Errorf("its heading: %w", noEOF(err))
		}
		s.Columns = slices.Clone(head)
		at := slices.Index(s.Columns, id)
		for {
			row, err := rows.Read()
			if errors.Is(err, io.EOF) {
				return s, nil
			}
			if err != nil {
				return s, err
			}
			s.Rows++
			if at < 0 {
				continue
			}
			n, err := load.ScanID(row[at])
			if err == nil {
				err = each(n)
			}
			if err != nil {
				return s, fmt.Errorf("row %d: %w", s.Rows, err)
			}
		}
	}
}

// noEOF makes an error of the end of a file that ends too early.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
