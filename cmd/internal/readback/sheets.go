package readback

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/xuri/excelize/v2"
)

// readSheets reads a workbook, each of whose sheets has the layout's headings.
func readSheets(data []byte, l Layout) ([]Row, error) {
	book, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{RawCellValue: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = book.Close() }() // read only
	var rows []Row
	for _, name := range book.GetSheetList() {
		if rows, err = appendSheet(rows, book, name, l); err != nil {
			return nil, fmt.Errorf("sheet %q: %w", name, err)
		}
	}
	return rows, nil
}

func appendSheet(rows []Row, book *excelize.File, name string, l Layout) ([]Row, error) {
	lines, err := book.Rows(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lines.Close() }() // read only
	n := 0
	for lines.Next() {
		line, err := lines.Columns()
		if err != nil {
			return nil, err
		}
		if n++; len(line) > len(l.Columns) || n == 1 && len(line) < len(l.Columns) {
			return nil, fmt.Errorf("row %d has %d columns, and the manifest %d", n, len(line), len(l.Columns))
		}
		row := Row{}
		for i, value := range line {
			column := l.Columns[i]
			if n == 1 && value != column.Name {
				return nil, fmt.Errorf("heading %d is %q, and should be %q", i+1, value, column.Name)
			}
			at, err := excelize.CoordinatesToCellName(i+1, n)
			if err != nil {
				return nil, err
			}
			kind, err := book.GetCellType(name, at)
			if err == nil && n > 1 {
				row[column.Name], err = sheetCell(kind, value, column, l)
			}
			if err != nil {
				return nil, fmt.Errorf("%s, column %q: %w", at, column.Name, err)
			}
		}
		if n > 1 {
			rows = append(rows, row)
		}
	}
	if n == 0 {
		return nil, errors.New("it has no heading")
	}
	return rows, lines.Error()
}

// sheetCell returns the cell of a type and a value.
func sheetCell(kind excelize.CellType, value string, column Column, l Layout) (Cell, error) {
	_, isList := column.element()
	switch {
	case kind == excelize.CellTypeBool:
		return Text(strconv.FormatBool(value == "1")), nil
	case kind == excelize.CellTypeInlineString && isList:
		return joined(value), nil
	case kind == excelize.CellTypeInlineString:
		return Text(value), nil
	case kind != excelize.CellTypeUnset:
		return Cell{}, fmt.Errorf("it is of type %d", kind)
	case value == "":
		return Cell{}, nil
	}
	return number(value, column.Type, l)
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
