package readback

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// listIsEmpty is the definition level of an empty list. Below it the list is null,
// and above it there is an element, which may be null.
const listIsEmpty = 1

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
	into := parquet.RowWriterFunc(func(batch []parquet.Row) (int, error) {
		for n, leaves := range batch {
			row, err := parquetRow(leaves, columns, l)
			if err != nil {
				return n, err
			}
			rows = append(rows, row)
		}
		return len(batch), nil
	})
	for _, group := range file.RowGroups() {
		reader := group.Rows()
		_, err := parquet.CopyRows(into, reader)
		if err := errors.Join(err, reader.Close()); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func parquetRow(leaves parquet.Row, columns []Column, l Layout) (Row, error) {
	row := Row{}
	for _, v := range leaves {
		c := columns[v.Column()]
		kind, isList := c.element()
		cell, err := parquetCell(v, kind, l)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		switch level := v.DefinitionLevel(); {
		case !isList:
			row[c.Name] = cell
		case level > listIsEmpty:
			row[c.Name] = List(append(row[c.Name].list, cell)...)
		case level == listIsEmpty:
			row[c.Name] = List()
		}
	}
	return row, nil
}

func parquetCell(v parquet.Value, kind string, l Layout) (Cell, error) {
	switch {
	case v.IsNull():
		return Cell{}, nil
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
	}
	scale, err := scaleOf(kind)
	if err != nil {
		return Cell{}, err
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return Text(new(big.Rat).SetFrac(unscaled(v), power).FloatString(scale)), nil
}

// unscaled is the whole number behind a decimal. Its leaf is as wide as the
// decimal's precision needs.
func unscaled(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	raw := v.ByteArray()
	n := new(big.Int).SetBytes(raw)
	if len(raw) > 0 && raw[0] >= 0x80 { // two's complement
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw)))) //nolint:gosec // not negative
	}
	return n
}
