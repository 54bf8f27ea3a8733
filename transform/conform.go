package transform

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/schemas"
)

// Conform returns the batch's rows under the target schema. It matches columns by their source
// (the metadata schemas.MetaFrom of both schemas), not by name. A column that the batch lacks
// is null. It is an error if a column has another type than in the target, or if the target
// lacks the column: no value is dropped. The result shares the batch's arrays; the caller
// releases it. A nil mem means Arrow's default allocator.
func Conform(b arrow.RecordBatch, target *arrow.Schema, mem memory.Allocator) (arrow.RecordBatch, error) {
	mem = cmp.Or(mem, memory.DefaultAllocator)
	given := b.Schema()
	have := make(map[string]int, given.NumFields())
	for i := range given.NumFields() {
		field := given.Field(i)
		from, ok := field.Metadata.GetValue(schemas.MetaFrom)
		if !ok {
			return nil, fmt.Errorf("conform: column %q of the batch does not name its source (no %s)", field.Name, schemas.MetaFrom)
		}
		if _, twice := have[from]; twice {
			return nil, fmt.Errorf("conform: two columns of the batch are from %s", from)
		}
		have[from] = i
	}
	columns := make([]arrow.Array, 0, target.NumFields())
	defer func() {
		for _, c := range columns {
			c.Release() // the new batch holds the columns now
		}
	}()
	for k := range target.NumFields() {
		field := target.Field(k)
		from, _ := field.Metadata.GetValue(schemas.MetaFrom)
		i, ok := have[from]
		if !ok {
			columns = append(columns, array.MakeArrayOfNull(mem, field.Type, int(b.NumRows())))
			continue
		}
		c := b.Column(i)
		if !arrow.TypeEqual(c.DataType(), field.Type) {
			return nil, fmt.Errorf("conform: column %q (from %s) is %s in the batch and %s in the schema", field.Name, from, c.DataType(), field.Type)
		}
		c.Retain()
		columns = append(columns, c)
		delete(have, from)
	}
	if len(have) > 0 {
		return nil, fmt.Errorf("conform: the schema lacks a column of the batch: %s", slices.Min(slices.Collect(maps.Keys(have))))
	}
	return array.NewRecordBatch(target, columns, b.NumRows()), nil
}

// Narrow returns the batch without the columns that the target schema lacks. It matches
// columns as Conform does. The result shares the batch's arrays; the caller releases it.
func Narrow(b arrow.RecordBatch, target *arrow.Schema) arrow.RecordBatch {
	wanted := make(map[string]bool, target.NumFields())
	for k := range target.NumFields() {
		from, _ := target.Field(k).Metadata.GetValue(schemas.MetaFrom)
		wanted[from] = true
	}
	var fields []arrow.Field
	var columns []arrow.Array
	for i := range b.Schema().NumFields() {
		field := b.Schema().Field(i)
		if from, _ := field.Metadata.GetValue(schemas.MetaFrom); wanted[from] {
			fields, columns = append(fields, field), append(columns, b.Column(i))
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
}
