package readback

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// sheetCell is a cell in the XML of a sheet.
type sheetCell struct {
	Ref     string   `xml:"r,attr"`
	Kind    string   `xml:"t,attr"`
	Value   string   `xml:"v"`
	Formula *string  `xml:"f"`
	Text    string   `xml:"is>t"`
	Runs    []string `xml:"is>r>t"`
}

func readSheets(data []byte, l Layout) ([]Row, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var rows []Row
	for number := 1; ; number++ {
		f, err := archive.Open(fmt.Sprintf("xl/worksheets/sheet%d.xml", number))
		if errors.Is(err, fs.ErrNotExist) && number > 1 {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows, err = appendSheet(rows, f, l)
		_ = f.Close() // read only
		if err != nil {
			return nil, fmt.Errorf("sheet %d: %w", number, err)
		}
	}
}

func appendSheet(rows []Row, from io.Reader, l Layout) ([]Row, error) {
	var sheet struct {
		Rows []struct {
			Cells []sheetCell `xml:"c"`
		} `xml:"sheetData>row"`
	}
	if err := xml.NewDecoder(from).Decode(&sheet); err != nil {
		return nil, err
	}
	if len(sheet.Rows) == 0 || len(sheet.Rows[0].Cells) != len(l.Columns) {
		return nil, errors.New("its heading has other columns than the manifest")
	}
	for n, line := range sheet.Rows {
		row := Row{}
		for _, c := range line.Cells {
			at, err := columnOf(c.Ref)
			if err != nil || at >= len(l.Columns) {
				return nil, fmt.Errorf("row %d: the cell %q lies outside, %w", n+1, c.Ref, err)
			}
			column := l.Columns[at]
			if n == 0 {
				if c.text() != column.Name {
					return nil, fmt.Errorf("the heading %s is %q, and should be %q", c.Ref, c.text(), column.Name)
				}
				continue
			}
			if row[column.Name], err = c.cell(column, l); err != nil {
				return nil, fmt.Errorf("%s, column %q: %w", c.Ref, column.Name, err)
			}
		}
		if n > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// columnOf is the number, from 0, of the column of a cell like AB12.
func columnOf(ref string) (int, error) {
	n := 0
	for _, letter := range strings.TrimRight(ref, "0123456789") {
		if letter < 'A' || letter > 'Z' {
			return 0, errors.New("it is no cell")
		}
		n = n*26 + int(letter-'A') + 1
	}
	return n - 1, nil
}

var escaped = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// text is the cell's text. Spreadsheets decode escapes such as _x000D_ in each
// piece of it by itself.
func (c sheetCell) text() string {
	var b strings.Builder
	for _, piece := range append([]string{c.Text}, c.Runs...) {
		b.WriteString(escaped.ReplaceAllStringFunc(piece, func(m string) string {
			n, _ := strconv.ParseUint(m[2:6], 16, 16) // four hexadecimal digits
			return string(rune(n))
		}))
	}
	return b.String()
}

func (c sheetCell) cell(column Column, l Layout) (Cell, error) {
	_, isList := column.element()
	switch {
	case c.Formula != nil:
		return Cell{}, errors.New("it is a formula")
	case c.Kind == "b":
		return Text(strconv.FormatBool(c.Value == "1")), nil
	case c.Kind == "inlineStr" && isList:
		return joined(c.text()), nil
	case c.Kind == "inlineStr":
		return Text(c.text()), nil
	case c.Kind == "" && c.Value == "":
		return Cell{}, nil
	case c.Kind == "":
		return number(c.Value, column.Type, l)
	}
	return Cell{}, fmt.Errorf("it is of type %q", c.Kind)
}

// number reads a number of a sheet. Dates and timestamps are numbers of days.
func number(value, kind string, l Layout) (Cell, error) {
	exact, ok := new(big.Rat).SetString(value)
	if !ok {
		return Cell{}, fmt.Errorf("%q is no number", value)
	}
	serial, _ := exact.Float64()
	switch {
	case kind == "date" || kind == "timestamp":
		days, part := math.Modf(serial)
		at := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(days)).
			Add(time.Duration(math.Round(part*86_400_000)) * time.Millisecond)
		if kind == "date" {
			return Text(at.Format(time.DateOnly)), nil
		}
		return Text(l.stamp(Instant(at, l.Zone))), nil
	case kind == "float64":
		return Text(strconv.FormatFloat(serial, 'g', -1, 64)), nil
	case kind == "int64" && exact.IsInt():
		return Text(exact.Num().String()), nil
	}
	scale, err := scaleOf(kind)
	if err != nil {
		return Cell{}, fmt.Errorf("it is the number %s: %w", value, err)
	}
	return Text(exact.FloatString(scale)), nil
}
