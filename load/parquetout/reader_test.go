package parquetout_test

import (
	"bytes"
	"fmt"
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/formetl/formetl/load/loadtest"
)

// read reads a file with arrow-go's column readers. load/loadtest has DuckDB read the
// same rows, which shares no code with the encoder.
func read(data []byte, want *arrow.Schema) ([][]string, error) {
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if err := checkSchema(r.MetaData().Schema, want); err != nil {
		return nil, err
	}
	var rows [][]string
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		part := make([][]string, group.NumRows())
		for i := range part {
			part[i] = make([]string, want.NumFields())
		}
		for i, f := range want.Fields() {
			column, err := group.Column(i)
			if err != nil {
				return nil, err
			}
			cells, err := readColumn(column, f)
			if err != nil {
				return nil, fmt.Errorf("row group %d, column %q: %w", g, f.Name, err)
			}
			if len(cells) != len(part) {
				return nil, fmt.Errorf("row group %d, column %q: %d rows, not %d", g, f.Name, len(cells), len(part))
			}
			for row, cell := range cells {
				part[row][i] = cell
			}
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

// checkSchema holds the file's schema to what contract.md says.
func checkSchema(got *schema.Schema, want *arrow.Schema) error {
	if got.Root().NumFields() != want.NumFields() {
		return fmt.Errorf("%d columns", got.Root().NumFields())
	}
	for i, f := range want.Fields() {
		node, t := got.Root().Field(i), f.Type
		if node.Name() != f.Name || f.Nullable != (node.RepetitionType() == parquet.Repetitions.Optional) {
			return fmt.Errorf("column %d is %q, %s", i, node.Name(), node.RepetitionType())
		}
		if list, ok := t.(*arrow.ListType); ok {
			middle := node.(*schema.GroupNode).Field(0).(*schema.GroupNode)
			element := middle.Field(0)
			if !node.LogicalType().Equals(schema.NewListLogicalType()) || middle.Name() != "list" ||
				middle.RepetitionType() != parquet.Repetitions.Repeated || element.Name() != "element" ||
				element.RepetitionType() != parquet.Repetitions.Optional {
				return fmt.Errorf("column %q is not a list in three levels", f.Name)
			}
			node, t = element, list.Elem()
		}
		logical, physical := parquetType(t)
		leaf := node.(*schema.PrimitiveNode)
		if !leaf.LogicalType().Equals(logical) || leaf.PhysicalType() != physical {
			return fmt.Errorf("column %q is %s, %s", f.Name, leaf.PhysicalType(), leaf.LogicalType())
		}
	}
	return nil
}

// parquetType is what contract.md and the Parquet format ask for a type.
func parquetType(t arrow.DataType) (schema.LogicalType, parquet.Type) {
	switch t := t.(type) {
	case *arrow.StringType:
		return schema.StringLogicalType{}, parquet.Types.ByteArray
	case *arrow.Int64Type:
		return schema.NewIntLogicalType(64, true), parquet.Types.Int64
	case *arrow.Float64Type:
		return schema.NoLogicalType{}, parquet.Types.Double
	case *arrow.BooleanType:
		return schema.NoLogicalType{}, parquet.Types.Boolean
	case *arrow.Date32Type:
		return schema.DateLogicalType{}, parquet.Types.Int32
	case *arrow.TimestampType:
		return schema.NewTimestampLogicalType(true, schema.TimeUnitMicros), parquet.Types.Int64
	case *arrow.Decimal128Type:
		physical := parquet.Types.FixedLenByteArray
		switch {
		case t.Precision <= 9:
			physical = parquet.Types.Int32
		case t.Precision <= 18:
			physical = parquet.Types.Int64
		}
		return schema.NewDecimalLogicalType(t.Precision, t.Scale), physical
	}
	panic(t)
}

// readColumn returns the cells of a column chunk.
func readColumn(column file.ColumnChunkReader, f arrow.Field) ([]string, error) {
	t, present := f.Type, int16(0)
	if f.Nullable {
		present = 1
	}
	list, isList := t.(*arrow.ListType)
	if isList {
		t = list.Elem()
	}
	levels, values, err := readValues(column, t)
	if err != nil {
		return nil, err
	}
	var cells []string
	var lists [][]string // of the rows, nil: null
	for _, l := range levels {
		switch {
		case !isList && l.def == present:
			cells, values = append(cells, values[0]), values[1:]
		case !isList:
			cells = append(cells, loadtest.Null)
		case l.rep == 0 && l.def < present:
			lists = append(lists, nil)
		default:
			if l.rep == 0 {
				lists = append(lists, []string{})
			}
			last := &lists[len(lists)-1]
			switch l.def - present {
			case 1:
				*last = append(*last, loadtest.Null)
			case 2:
				*last, values = append(*last, values[0]), values[1:]
			}
		}
	}
	for _, l := range lists {
		if l == nil {
			cells = append(cells, loadtest.Null)
			continue
		}
		cells = append(cells, loadtest.ListText(l))
	}
	if len(values) != 0 {
		return nil, fmt.Errorf("%d values too many", len(values))
	}
	return cells, nil
}

type level struct{ def, rep int16 }

// readValues returns the levels and the values that are not null, page by page.
func readValues(column file.ColumnChunkReader, t arrow.DataType) ([]level, []string, error) {
	switch c := column.(type) {
	case *file.ByteArrayColumnChunkReader:
		return readPages(c.ReadBatchInPage, func(v parquet.ByteArray) string { return string(v) })
	case *file.BooleanColumnChunkReader:
		return readPages(c.ReadBatchInPage, func(v bool) string { return fmt.Sprint(v) })
	case *file.Float64ColumnChunkReader:
		return readPages(c.ReadBatchInPage, loadtest.FloatText)
	case *file.Int32ColumnChunkReader:
		return readPages(c.ReadBatchInPage, func(v int32) string { return whole(int64(v), t) })
	case *file.Int64ColumnChunkReader:
		return readPages(c.ReadBatchInPage, func(v int64) string { return whole(v, t) })
	case *file.FixedLenByteArrayColumnChunkReader:
		return readPages(c.ReadBatchInPage, func(v parquet.FixedLenByteArray) string {
			n := new(big.Int).SetBytes(v)
			if v[0]&0x80 != 0 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
			}
			return decimal128.FromBigInt(n).ToString(t.(*arrow.Decimal128Type).Scale)
		})
	}
	return nil, nil, fmt.Errorf("a reader of type %T", column)
}

func whole(v int64, t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.Date32Type:
		return arrow.Date32(v).ToTime().Format(time.DateOnly)
	case *arrow.TimestampType:
		return loadtest.TimeText(time.UnixMicro(v))
	case *arrow.Decimal128Type:
		return decimal128.FromI64(v).ToString(t.Scale)
	}
	return fmt.Sprint(v)
}

func readPages[T any](next func(int64, []T, []int16, []int16) (int64, int, error), text func(T) string) ([]level, []string, error) {
	const size = 1024
	var levels []level
	var values []string
	buffer, def, rep := make([]T, size), make([]int16, size), make([]int16, size)
	for {
		clear(def)
		clear(rep)
		n, got, err := next(size, buffer, def, rep)
		if err != nil {
			return nil, nil, err
		}
		if n == 0 {
			return levels, values, nil
		}
		for i := range n {
			levels = append(levels, level{def[i], rep[i]})
		}
		for _, v := range buffer[:got] {
			values = append(values, text(v))
		}
	}
}
