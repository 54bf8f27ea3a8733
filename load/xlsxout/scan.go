package xlsxout

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xuri/excelize/v2"

	"github.com/formetl/formetl/load"
)

// scan is the load.Scan of workbooks. Each sheet has the same heading, and goes on where
// the one before ended.
func scan(r io.Reader, id string, each func(int64) error) (s load.Scanned, err error) {
	defer load.Damaged(&err)
	book, err := excelize.OpenReader(r, excelize.Options{RawCellValue: true})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	for _, name := range book.GetSheetList() {
		if err := scanSheet(book, name, id, &s, each); err != nil {
			return s, fmt.Errorf("sheet %s: %w", name, err)
		}
	}
	return s, nil
}

func scanSheet(book *excelize.File, name, id string, s *load.Scanned, each func(int64) error) (err error) {
	rows, err := book.Rows(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	at := -1
	for first := true; rows.Next(); first = false {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		if first {
			if s.Columns != nil && !slices.Equal(s.Columns, cells) {
				return errors.New("it has another heading than the first sheet")
			}
			s.Columns, at = cells, slices.Index(cells, id)
			continue
		}
		s.Rows++
		if at < 0 {
			continue
		}
		if at >= len(cells) {
			return fmt.Errorf("row %d: %w", s.Rows, load.ErrScanID)
		}
		n, err := load.ScanID(cells[at])
		if err == nil {
			err = each(n)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", s.Rows, err)
		}
	}
	return rows.Error()
}
