package xlsxout_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load/loadtest"
)

// cell is a cell as the sheet's XML has it.
type cell struct {
	Ref     string   `xml:"r,attr"`
	Kind    string   `xml:"t,attr"`
	Style   int      `xml:"s,attr"`
	Value   string   `xml:"v"`
	Formula *string  `xml:"f"`
	Text    *string  `xml:"is>t"`
	Runs    []string `xml:"is>r>t"`
}

// text is the cell's text with what spreadsheets decode in it: each piece by
// itself.
func (c cell) text() string {
	pieces := c.Runs
	if c.Text != nil {
		pieces = append(pieces, *c.Text)
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`).ReplaceAllStringFunc(p, func(m string) string {
			n, err := strconv.ParseUint(m[2:6], 16, 16)
			if err != nil {
				return m
			}
			return string(rune(n))
		}))
	}
	return b.String()
}

// part is a part of the workbook's archive.
func part(file []byte, name string) ([]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	f, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// sheet reads a sheet's rows of cells, the heading's first.
func sheet(file []byte, number, columns int) ([][]*cell, error) {
	data, err := part(file, fmt.Sprintf("xl/worksheets/sheet%d.xml", number))
	if err != nil {
		return nil, err
	}
	var doc struct {
		Rows []struct {
			Number int    `xml:"r,attr"`
			Cells  []cell `xml:"c"`
		} `xml:"sheetData>row"`
	}
	if err := xml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	out := make([][]*cell, 0, len(doc.Rows))
	for i, row := range doc.Rows {
		if row.Number != i+1 {
			return nil, fmt.Errorf("row %d is numbered %d", i+1, row.Number)
		}
		line := make([]*cell, columns)
		for _, c := range row.Cells {
			column := 0
			letters := strings.TrimRight(c.Ref, "0123456789")
			for _, l := range letters {
				column = column*26 + int(l-'A') + 1
			}
			if c.Ref != letters+strconv.Itoa(row.Number) || column > columns || c.Formula != nil {
				return nil, fmt.Errorf("the cell %+v", c)
			}
			line[column-1] = &c
		}
		out = append(out, line)
	}
	return out, nil
}

// read is the suite's reader.
func read(file []byte, schema *arrow.Schema) ([][]string, error) {
	rows, err := sheet(file, 1, schema.NumFields())
	if err != nil {
		return nil, err
	}
	for i, c := range rows[0] {
		if c == nil || c.text() != schema.Field(i).Name {
			return nil, fmt.Errorf("heading %d is %+v", i, c)
		}
	}
	out := make([][]string, len(rows)-1)
	for r, row := range rows[1:] {
		out[r] = make([]string, len(row))
		for i, c := range row {
			out[r][i] = loadtest.Null
			if c == nil {
				continue
			}
			if out[r][i], err = valueOf(schema.Field(i).Type, *c); err != nil {
				return nil, fmt.Errorf("row %d, column %d: %w", r, i, err)
			}
		}
	}
	return out, nil
}

func valueOf(t arrow.DataType, c cell) (string, error) {
	switch c.Kind {
	case "b":
		return strconv.FormatBool(c.Value == "1"), nil
	case "inlineStr":
		if list, ok := t.(*arrow.ListType); ok {
			return listValue(list.Elem(), c.text())
		}
		return textValue(t, c.text())
	case "":
		return numberValue(t, c.Value)
	}
	return "", fmt.Errorf("the cell is of type %q", c.Kind)
}

func numberValue(t arrow.DataType, number string) (string, error) {
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		r, ok := new(big.Rat).SetString(number)
		if !ok {
			return "", fmt.Errorf("the number %q", number)
		}
		return r.FloatString(int(t.Scale)), nil
	case *arrow.Date32Type, *arrow.TimestampType:
		serial, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return "", err
		}
		days, part := math.Modf(serial)
		at := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(days)).
			Add(time.Duration(math.Round(part*86_400_000)) * time.Millisecond)
		if t.ID() == arrow.DATE32 {
			return at.Format(time.DateOnly), nil
		}
		return loadtest.TimeText(at), nil
	case *arrow.StringType:
		return "", fmt.Errorf("a string became the number %q", number)
	}
	return loadtest.ParseText(t, number)
}

// textValue is a value that is shown as text.
func textValue(t arrow.DataType, text string) (string, error) {
	if t.ID() == arrow.TIMESTAMP {
		at, err := time.Parse("2006-01-02 15:04:05.999999", text)
		return loadtest.TimeText(at), err
	}
	return loadtest.ParseText(t, text)
}

func listValue(t arrow.DataType, text string) (string, error) {
	elements := loadtest.SplitList(text)
	for i, element := range elements {
		if element == loadtest.Null {
			continue
		}
		var err error
		if elements[i], err = textValue(t, element); err != nil {
			return "", err
		}
	}
	return loadtest.ListText(elements), nil
}
