package csvout

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load/internal/cells"
)

// texts are the strings of a column as Arrow keeps them. Row i is what lies between
// bounds i and i+1 in data. The zero value is of a column without strings.
type texts struct {
	bounds []int32
	data   []byte
}

func textsOf(a *array.String) texts {
	buffers, from := a.Data().Buffers(), a.Data().Offset()
	if a.Len() == 0 || buffers[1] == nil {
		return texts{}
	}
	t := texts{bounds: arrow.Int32Traits.CastFromBytes(buffers[1].Bytes())[from : from+a.Len()+1]}
	if buffers[2] != nil {
		t.data = buffers[2].Bytes()
	}
	return t
}

// value returns the string of a row.
func (t *texts) value(row int) []byte { return t.data[t.bounds[row]:t.bounds[row+1]] }

// plain tells whether no string of the rows [from, to) holds a character that CSV quotes.
// One look at all of them costs less than a look at each.
func (t *texts) plain(from, to int, d dialect) bool {
	all := t.data[t.bounds[from]:t.bounds[to]]
	return cells.IndexCSV(all) < 0 && (d.delimiter != '\t' || !cells.HasDivider(all))
}
