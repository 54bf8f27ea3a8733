package cells

import (
	"fmt"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Steps gathers the rows of batches into steps. A step ends at Rows rows, or with the row that
// passes Bytes bytes of values. So equal rows give equal files, however they are divided into
// batches.
type Steps struct {
	Rows, Bytes int
	// End takes a step as one batch, whose values take so many bytes. The batch is released after
	// the call.
	End func(step arrow.RecordBatch, bytes int) error

	open  []arrow.RecordBatch // rows of the open step
	rows  int
	bytes int
}

// Write adds the rows of a batch, and calls End for each step that they fill.
func (s *Steps) Write(batch arrow.RecordBatch) error {
	for from, n := 0, int(batch.NumRows()); from < n; {
		to := min(n, from+s.Rows-s.rows)
		if s.bytes+sizeOf(batch, from, to) > s.Bytes {
			to = from + 1 + sort.Search(to-from-1, func(i int) bool { return s.bytes+sizeOf(batch, from, from+1+i) > s.Bytes })
		}
		s.open = append(s.open, batch.NewSlice(int64(from), int64(to)))
		s.rows += to - from
		s.bytes += sizeOf(batch, from, to)
		from = to
		if s.rows >= s.Rows || s.bytes > s.Bytes {
			if err := s.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Flush calls End with the rows of the open step, if it has any.
func (s *Steps) Flush() error {
	if s.rows == 0 {
		return nil
	}
	step, err := joined(s.open)
	if err != nil {
		return err
	}
	defer step.Release()
	bytes := s.bytes
	s.Discard()
	return s.End(step, bytes)
}

// Discard releases the rows of the open step.
func (s *Steps) Discard() { s.open, s.rows, s.bytes = Release(s.open), 0, 0 }

// Release releases batches, and returns an empty slice in their place.
func Release(batches []arrow.RecordBatch) []arrow.RecordBatch {
	for i, b := range batches {
		b.Release()
		batches[i] = nil
	}
	return batches[:0]
}

// joined returns the rows of all batches, of which there is at least one, as one batch.
func joined(batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	columns := make([]arrow.Array, batches[0].NumCols())
	parts := make([]arrow.Array, len(batches))
	for i := range columns {
		for k, b := range batches {
			parts[k] = b.Column(i)
		}
		var err error
		if columns[i], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("join the batches of column %q: %w", batches[0].ColumnName(i), err)
		}
		defer columns[i].Release()
	}
	return array.NewRecordBatch(batches[0].Schema(), columns, rows), nil
}

// sizeOf returns about how many bytes the values in the rows [from, to) of a batch take.
func sizeOf(batch arrow.RecordBatch, from, to int) int {
	n := 0
	for _, arr := range batch.Columns() {
		n += sizeOfArray(arr, from, to)
	}
	return n
}

func sizeOfArray(arr arrow.Array, from, to int) int {
	if from == to {
		return 0
	}
	switch a := arr.(type) {
	case *array.String:
		return 4*(to-from) + a.ValueOffset(to-1) + a.ValueLen(to-1) - a.ValueOffset(from)
	case *array.List:
		first, _ := a.ValueOffsets(from)
		_, end := a.ValueOffsets(to - 1)
		return sizeOfArray(a.ListValues(), int(first), int(end))
	case *array.Boolean:
		return to - from
	case *array.Date32:
		return 4 * (to - from)
	case *array.Decimal128:
		return 16 * (to - from)
	default:
		return 8 * (to - from)
	}
}
