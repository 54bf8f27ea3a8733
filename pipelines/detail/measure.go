package detail

import (
	"cmp"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Unit says what a measure is about.
type Unit string

// The units of a measure.
const (
	NoUnit     Unit = ""
	Values     Unit = "values"     // of numbers, days and times
	Characters Unit = "characters" // of texts: a text itself may be anything, and is not shown
	Elements   Unit = "elements"   // of lists
)

// Measure is the least and the most of what a column holds. The zero value has nothing.
type Measure struct {
	Unit        Unit
	Least, Most string
}

// bounds are the least and the most of values.
type bounds[T any] struct {
	least, most T
	any         bool
}

func (b *bounds[T]) take(v T, compare func(a, b T) int) {
	if !b.any {
		b.least, b.most, b.any = v, v, true
		return
	}
	if compare(v, b.least) < 0 {
		b.least = v
	}
	if compare(v, b.most) > 0 {
		b.most = v
	}
}

// measure measures a column of one type.
type measure struct {
	kind     arrow.Type
	whole    bounds[int64] // numbers, days, microseconds; characters of texts, elements of lists
	floats   bounds[float64]
	decimals bounds[decimal128.Num]
	scale    int32
	is       [2]int64 // how often a bool is false and true
}

// take adds the values of an array.
func (m *measure) take(values arrow.Array) {
	m.kind = values.DataType().ID()
	for i := range values.Len() {
		if values.IsNull(i) {
			continue
		}
		switch a := values.(type) {
		case *array.Int64:
			m.whole.take(a.Value(i), cmp.Compare)
		case *array.Date32:
			m.whole.take(int64(a.Value(i)), cmp.Compare)
		case *array.Timestamp:
			m.whole.take(int64(a.Value(i)), cmp.Compare)
		case *array.Float64:
			if v := a.Value(i); !math.IsNaN(v) {
				m.floats.take(v, cmp.Compare)
			}
		case *array.Decimal128:
			m.scale = a.DataType().(*arrow.Decimal128Type).Scale
			m.decimals.take(a.Value(i), decimal128.Num.Cmp)
		case *array.Boolean:
			if a.Value(i) {
				m.is[1]++
			} else {
				m.is[0]++
			}
		case *array.String:
			m.whole.take(int64(utf8.RuneCountInString(a.Value(i))), cmp.Compare)
		case *array.List:
			from, to := a.ValueOffsets(i)
			m.whole.take(to-from, cmp.Compare)
		}
	}
}

// choices returns how often a bool is true and false; nil for other columns.
func (m *measure) choices() map[string]int64 {
	choices := map[string]int64{}
	for i, n := range m.is {
		if n > 0 {
			choices[strconv.FormatBool(i == 1)] = n
		}
	}
	return choices
}

// result returns what was measured. Times are wall clock of the zone.
func (m *measure) result(zone *time.Location) Measure {
	switch {
	case m.floats.any:
		text := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
		return Measure{Values, text(m.floats.least), text(m.floats.most)}
	case m.decimals.any:
		return Measure{Values, m.decimals.least.ToString(m.scale), m.decimals.most.ToString(m.scale)}
	case !m.whole.any:
		return Measure{}
	}
	text, unit := func(v int64) string { return strconv.FormatInt(v, 10) }, Values
	switch m.kind {
	case arrow.DATE32:
		text = func(v int64) string { return arrow.Date32(v).ToTime().Format(time.DateOnly) } //nolint:gosec // it was one
	case arrow.TIMESTAMP:
		text = func(v int64) string { return time.UnixMicro(v).In(zone).Format(time.DateTime) }
	case arrow.STRING:
		unit = Characters
	case arrow.LIST:
		unit = Elements
	}
	return Measure{unit, text(m.whole.least), text(m.whole.most)}
}
