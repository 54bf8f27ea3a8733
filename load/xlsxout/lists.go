package xlsxout

import (
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load/internal/cells"
	"github.com/formetl/formetl/load/internal/lists"
)

// list gives the value of a column of a list: a text, or a boolean that tells
// whether the list holds the column's choice.
func (c column) list(e *encoder, a *array.List) value {
	if c.listAs == lists.Columns {
		texts := a.ListValues().(*array.String)
		return func(row int) (any, error) {
			start, end := a.ValueOffsets(row)
			for i := int(start); i < int(end); i++ {
				if !texts.IsNull(i) && texts.Value(i) == c.choice {
					return true, nil
				}
			}
			return false, nil
		}
	}
	write := lists.Join(a, func(dst []byte, us int64) []byte { return cells.AppendLocal(dst, us, e.zone) })
	if c.listAs == lists.JSON {
		write = cells.JSON(a, e.zone)
	}
	var scratch []byte
	return func(row int) (any, error) {
		scratch = write(scratch[:0], row)
		return textCell(string(scratch))
	}
}
