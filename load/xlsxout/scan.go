package xlsxout

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/load"
)

// scan is the load.Scan of workbooks that formetl wrote. Each sheet has the same heading,
// and goes on where the one before ended.
func scan(r io.Reader, id string, each func(int64) error) (s load.Scanned, err error) {
	from, size, err := load.Anywhere(r)
	if err != nil {
		return s, err
	}
	archive, err := zip.NewReader(from, size)
	if err != nil {
		return s, err
	}
	for number := 1; ; number++ {
		file, err := archive.Open(sheetPath(number))
		if number > 1 && errors.Is(err, fs.ErrNotExist) {
			return s, nil
		}
		if err == nil {
			err = scanSheet(file, id, &s, each)
			_ = file.Close() // read only
		}
		if err != nil {
			return s, fmt.Errorf("sheet %d: %w", number, err)
		}
	}
}

// scanSheet reads a sheet row by row.
func scanSheet(r io.Reader, id string, s *load.Scanned, each func(int64) error) error {
	tokens := xml.NewDecoder(r)
	at := -1
	for first := true; ; {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if start, ok := token.(xml.StartElement); !ok || start.Name.Local != "row" {
			continue
		}
		cells, err := scanRow(tokens)
		if err != nil {
			return err
		}
		if first {
			if s.Columns != nil && !slices.Equal(s.Columns, cells) {
				return errors.New("it has another heading than the first sheet")
			}
			s.Columns, at, first = cells, slices.Index(cells, id), false
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
}

// scanRow returns the texts of a row's cells, once its element has begun. Where no cell
// is, the text is "".
func scanRow(tokens *xml.Decoder) ([]string, error) {
	var cells []string
	for {
		token, err := tokens.Token()
		if err != nil {
			return nil, err
		}
		switch token := token.(type) {
		case xml.EndElement:
			return cells, nil
		case xml.StartElement:
			var c struct {
				Place  string `xml:"r,attr"`
				Number string `xml:"v"`
				Text   string `xml:"is>t"`
			}
			if err := tokens.DecodeElement(&c, &token); err != nil {
				return nil, err
			}
			column := columnOf(c.Place)
			if column <= len(cells) || column > maxColumns {
				return nil, fmt.Errorf("a cell lies at %q", c.Place)
			}
			cells = append(cells, make([]string, column-len(cells))...)
			cells[column-1] = c.Number + decoded(c.Text)
		}
	}
}

// columnOf returns the number of a cell's column, from 1, or 0 where there is none.
func columnOf(place string) (column int) {
	for i := 0; i < len(place) && place[i] >= 'A' && place[i] <= 'Z' && column <= maxColumns; i++ {
		column = column*26 + int(place[i]-'A') + 1
	}
	return column
}

var coded = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// decoded returns a text as spreadsheets show it: _x0041_ is an A.
func decoded(s string) string {
	if !strings.Contains(s, "_x") {
		return s
	}
	return coded.ReplaceAllStringFunc(s, func(code string) string {
		n, _ := strconv.ParseUint(code[2:6], 16, 16) // four digits
		return string(rune(n))
	})
}
