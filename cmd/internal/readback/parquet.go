package readback

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Definition levels of a list in three levels: where an element is missing the
// level tells how much of it is there.
const (
	listIsEmpty   = 1
	elementIsNull = 2
)

// readParquet reads all row groups by their rows of leaves.
func readParquet(data []byte, l Layout) ([]Row, error) {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var columns []Column
	for _, path := range file.Schema().Columns() {
		c, known := l.column(path[0])
		if !known {
			return nil, fmt.Errorf("the column %s is not known", strings.Join(path, "."))
		}
		columns = append(columns, c)
	}
	var rows []Row
	for _, group := range file.RowGroups() {
		if rows, err = appendGroup(rows, group, columns, l); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func appendGroup(rows []Row, group parquet.RowGroup, columns []Column, l Layout) ([]Row, error) {
	reader := group.Rows()
	defer func() { _ = reader.Close() }() // read only
	for {
		batch := make([]parquet.Row, 64)
		n, err := reader.ReadRows(batch)
		for _, leaves := range batch[:n] {
			row, err := parquetRow(leaves, columns, l)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func parquetRow(leaves parquet.Row, columns []Column, l Layout) (Row, error) {
	row := Row{}
	for _, v := range leaves {
		c := columns[v.Column()]
		element, isList := c.element()
		if !isList {
			if v.IsNull() {
				continue
			}
			cell, err := parquetCell(v, c.Type, l)
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", c.Name, err)
			}
			row[c.Name] = cell
			continue
		}
		cells := row[c.Name].list
		switch {
		case !v.IsNull():
			cell, err := parquetCell(v, element, l)
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", c.Name, err)
			}
			cells = append(cells, cell)
		case v.DefinitionLevel() == elementIsNull:
			cells = append(cells, Cell{})
		case v.DefinitionLevel() < listIsEmpty:
			continue
		}
		row[c.Name] = List(cells...)
	}
	return row, nil
}

func parquetCell(v parquet.Value, kind string, l Layout) (Cell, error) {
	switch {
	case kind == "string":
		return Text(string(v.ByteArray())), nil
	case kind == "int64":
		return Text(strconv.FormatInt(v.Int64(), 10)), nil
	case kind == "float64":
		return Text(strconv.FormatFloat(v.Double(), 'g', -1, 64)), nil
	case kind == "bool":
		return Text(strconv.FormatBool(v.Boolean())), nil
	case kind == "date":
		return Text(time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly)), nil
	case kind == "timestamp":
		return Text(l.stamp(time.UnixMicro(v.Int64()))), nil
	case strings.HasPrefix(kind, "decimal("):
		return decimalCell(v, kind)
	}
	return Cell{}, fmt.Errorf("the type %s is not known", kind)
}

// decimalCell reads a decimal(p,s), whose leaf is as wide as p needs.
func decimalCell(v parquet.Value, kind string) (Cell, error) {
	var precision, scale int
	if _, err := fmt.Sscanf(kind, "decimal(%d,%d)", &precision, &scale); err != nil {
		return Cell{}, fmt.Errorf("the type %s: %w", kind, err)
	}
	unscaled := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		unscaled.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		unscaled.SetInt64(v.Int64())
	default:
		raw := v.ByteArray()
		unscaled.SetBytes(raw)
		if len(raw) > 0 && raw[0] >= 0x80 { // two's complement
			unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw)))) //nolint:gosec // not negative
		}
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return Text(new(big.Rat).SetFrac(unscaled, power).FloatString(scale)), nil
}
