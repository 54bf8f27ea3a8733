package transform

import (
	"bytes"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// typedMark stands in an element of a list between the label of a choice and the text that
// somebody typed for it. No text of the service holds it, because XML 1.0 forbids it.
const typedMark = "\x1f"

// Typed returns a list of strings that a Flattener made for a column with list_as: columns,
// with one text for each element: of an "other" choice its label, or else what was typed.
// The caller releases it.
func Typed(list *array.List, labels bool, mem memory.Allocator) *array.List {
	texts := list.ListValues().(*array.String)
	if !bytes.Contains(texts.ValueBytes(), []byte(typedMark)) {
		list.Retain()
		return list
	}
	b := array.NewListBuilder(mem, texts.DataType())
	defer b.Release()
	elements := b.ValueBuilder().(*array.StringBuilder)
	for row := range list.Len() {
		if list.IsNull(row) {
			b.AppendNull()
			continue
		}
		b.Append(true)
		start, end := list.ValueOffsets(row)
		for i := int(start); i < int(end); i++ {
			label, typed, other := strings.Cut(texts.Value(i), typedMark)
			switch {
			case texts.IsNull(i):
				elements.AppendNull()
			case other && !labels:
				elements.Append(typed)
			default:
				elements.Append(label)
			}
		}
	}
	return b.NewListArray()
}
