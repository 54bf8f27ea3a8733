package output

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/schemas"
)

// mostExploded bounds the rows of a child's batch: a batch of results may hold
// many more elements. A result's elements stay together.
const mostExploded = 16 << 10

// explosion makes the rows of a child output of a batch of results.
type explosion struct {
	schema *arrow.Schema // of the child
	ids    arrow.Array
	lists  *array.List
}

// newExplosion finds the two columns of the batch by their sources.
func newExplosion(b arrow.RecordBatch, list schemas.Source, schema *arrow.Schema) (*explosion, error) {
	x := &explosion{schema: schema}
	id := schemas.Source{Kind: schemas.FromResultID}.String()
	for i, field := range b.Schema().Fields() {
		switch from, _ := field.Metadata.GetValue(schemas.MetaFrom); from {
		case id:
			x.ids = b.Column(i)
		case list.String():
			x.lists, _ = b.Column(i).(*array.List)
		}
	}
	if x.ids == nil || x.lists == nil {
		return nil, fmt.Errorf("a batch has no list from %s and result id to explode it", list) // a bug
	}
	return x, nil
}

// each gives the rows in batches, with the number of results that each is of.
// A null list and an empty one have no row. A batch is valid during the call.
func (x *explosion) each(most int, visit func(b arrow.RecordBatch, results int64) error) error {
	for first := 0; first < x.lists.Len(); {
		end, rows := first, 0
		for end < x.lists.Len() && (end == first || rows+x.size(end) <= most) {
			rows += x.size(end)
			end++
		}
		b, err := x.rows(first, end, rows)
		if err != nil {
			return err
		}
		err = visit(b, int64(end-first))
		b.Release()
		if err != nil {
			return err
		}
		first = end
	}
	return nil
}

// size is how many elements a result has.
func (x *explosion) size(row int) int {
	if x.lists.IsNull(row) {
		return 0
	}
	start, end := x.lists.ValueOffsets(row)
	return int(end - start)
}

// rows are the rows of the results from one up to another.
func (x *explosion) rows(first, end, n int) (arrow.RecordBatch, error) {
	positions := array.NewInt64Builder(memory.DefaultAllocator)
	defer positions.Release()
	positions.Reserve(n)
	for row := first; row < end; row++ {
		for i := range x.size(row) {
			positions.Append(int64(i + 1))
		}
	}
	ids, err := x.repeated(first, end)
	if err != nil {
		return nil, err
	}
	defer ids.Release()
	elements, err := x.elements(first, end)
	if err != nil {
		return nil, err
	}
	defer elements.Release()
	position := positions.NewArray()
	defer position.Release()
	return array.NewRecordBatch(x.schema, []arrow.Array{ids, position, elements}, int64(n)), nil
}

// repeated are the results' ids, each as often as its list has elements.
func (x *explosion) repeated(first, end int) (arrow.Array, error) {
	builder := array.NewBuilder(memory.DefaultAllocator, x.ids.DataType())
	defer builder.Release()
	for row := first; row < end; row++ {
		for range x.size(row) {
			switch ids := x.ids.(type) {
			case *array.Int64:
				builder.(*array.Int64Builder).Append(ids.Value(row))
			case *array.String:
				builder.(*array.StringBuilder).Append(ids.Value(row))
			default:
				return nil, fmt.Errorf("a result id is no %s", x.ids.DataType()) // a bug: schemas are validated
			}
		}
	}
	return builder.NewArray(), nil
}

// elements are those of the results' lists: one piece of the batch's, unless a
// null list hides some.
func (x *explosion) elements(first, end int) (arrow.Array, error) {
	values := x.lists.ListValues()
	from, _ := x.lists.ValueOffsets(first)
	var pieces []arrow.Array
	defer func() {
		for _, p := range pieces {
			p.Release()
		}
	}()
	at := from
	for row := first; row < end; row++ {
		start, stop := x.lists.ValueOffsets(row)
		if x.lists.IsNull(row) && start < stop {
			pieces = append(pieces, array.NewSlice(values, at, start))
			at = stop
		}
		if row == end-1 {
			pieces = append(pieces, array.NewSlice(values, at, max(at, stop)))
		}
	}
	if len(pieces) == 1 {
		pieces[0].Retain()
		return pieces[0], nil
	}
	return array.Concatenate(pieces, memory.DefaultAllocator)
}
