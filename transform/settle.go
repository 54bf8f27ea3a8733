package transform

import (
	"math"
	"strconv"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// outcome is what happened to a column's value: it was joined with others or shifted, or
// became null for a reason. The outcome is counted once the row is written.
type outcome struct {
	column *column
	what   string
}

const (
	joined  = "joined"
	shifted = "shifted"
)

// settle reads and parses the row's values of column c. If a value does not fit, it applies
// the column's rule. If the rule is on_error: fail or reject, it returns the raw value and the
// reason. Else the reason is "".
func (r *row) settle(c *column, g *gathered, cells []page.Cell) (raw, reason string) {
	c.vals, c.null = c.vals[:0], false
	if g.row != r.number {
		c.null = true
		return "", c.missing()
	}
	if g.values > 1 && !c.list {
		return r.settleSeveral(c, g, cells)
	}
	seen := 0
	for k := g.head; k >= 0; k = r.next[k] {
		for i := range int(cells[k].Values) {
			v := r.page.Value(cells[k], i)
			if len(v) > 0 || c.list && g.values > 1 || c.Type.Kind == schemas.String && !r.emptyAsNull {
				if raw, reason = r.take(c, v); reason != "" {
					return raw, reason
				}
				seen++
			}
		}
	}
	if seen == 0 {
		c.null = !c.list || r.emptyAsNull
	} else if !c.list {
		c.null = c.vals[0].null
	}
	return "", c.missing()
}

// missing returns the reason to refuse the row if it has null in a column that must not be
// null, else "".
func (c *column) missing() string {
	if c.null && c.Required && !c.Inferred {
		return reasonMissing
	}
	return ""
}

// mostUnread is how many characters of a value that does not fit are shown.
const mostUnread = 30

// take parses a value and adds it to the row. For a value that the column
// cannot take it returns the raw value and the reason.
func (r *row) take(c *column, v []byte) (raw, reason string) {
	if len(v) == 0 { // an empty element of a list, or an empty string that is not null
		c.vals = append(c.vals, value{null: !c.isString() || r.emptyAsNull})
		return "", ""
	}
	v = r.valueOf(c, v)
	parsed, moved, reason := r.parse(c, v)
	if reason != "" {
		if !c.heals() {
			return string(v), reason
		}
		parsed = value{null: true}
		r.pending = append(r.pending, outcome{c, reason})
		if c.unread == "" && c.Inferred && c.PII.Kind == schemas.PIINone {
			c.unread = plain.Cut(plain.Line(string(v[:min(len(v), 200)])), mostUnread)
		}
	}
	if moved {
		r.pending = append(r.pending, outcome{c, shifted})
	}
	c.vals = append(c.vals, parsed)
	return "", ""
}

// settleSeveral handles several values in a column that is no list. An inferred string column,
// and one of typed texts, takes the values joined. They do not fit any other column.
func (r *row) settleSeveral(c *column, g *gathered, cells []page.Cell) (raw, reason string) {
	switch texts := c.From.Kind == schemas.FromOther; {
	case c.isString() && (c.Inferred || texts):
		c.text = r.join(c.text[:0], c, g, cells)
		c.set(value{text: c.text})
		if !texts { // of typed texts there may be several from the first
			r.pending = append(r.pending, outcome{c, joined})
		}
	case c.heals():
		c.null = true
		r.pending = append(r.pending, outcome{c, reasonSeveral})
	default:
		return string(r.join(nil, c, g, cells)), reasonSeveral
	}
	return "", ""
}

// heals tells whether a value that does not fit the column becomes null.
func (c *column) heals() bool { return c.Inferred || c.OnError == schemas.OnErrorSetNull }

// join appends the row's values of column c to out as CSV shows a list: "|" between them, "\"
// before a "|" or "\" of a value. The column's pii rule is applied to each value.
func (r *row) join(out []byte, c *column, g *gathered, cells []page.Cell) []byte {
	first := true
	for k := g.head; k >= 0; k = r.next[k] {
		for i := range int(cells[k].Values) {
			if !first {
				out = append(out, '|')
			}
			first = false
			for _, b := range r.valueOf(c, r.page.Value(cells[k], i)) {
				if b == '|' || b == '\\' {
					out = append(out, '\\')
				}
				out = append(out, b)
			}
		}
	}
	return out
}

// parse reads a value that is not empty as one of column c. The reason is "" if the value
// fits. moved marks a wall-clock time that the zone skips.
func (r *row) parse(c *column, v []byte) (out value, moved bool, reason string) {
	switch {
	case c.elem.Kind == schemas.String:
		return value{text: v}, false, ""
	case c.declared != nil:
		return r.parseDeclared(c, trim(v))
	}
	return r.parseScalar(&c.elem, trim(v))
}

// parseScalar reads a value without blanks around it as the scalar type t, in
// the form that the package comment gives.
func (r *row) parseScalar(t *schemas.Type, v []byte) (out value, moved bool, reason string) {
	switch t.Kind {
	case schemas.Int64:
		out.num, reason = parseInt(v)
	case schemas.Float64:
		var x float64
		x, reason = parseFloat(v)
		out.num = int64(math.Float64bits(x))
	case schemas.Bool:
		var b bool
		if b, reason = parseBool(v); b {
			out.num = 1
		}
	case schemas.Date:
		var days int32
		days, reason = parseDate(v)
		out.num = int64(days)
	case schemas.Timestamp:
		out.num, moved, reason = r.clock.parseTimestamp(v)
	case schemas.Decimal:
		n, why := parseDecimal(v, t.Precision, t.Scale)
		out.num, out.low, reason = n.HighBits(), n.LowBits(), why
	}
	return out, moved, reason
}

// settleID sets the result id as value of its column, an int64 or a string.
func settleID(c *column, id int64) {
	if c.isString() {
		c.text = strconv.AppendInt(c.text[:0], id, 10)
		c.set(value{text: c.text})
		return
	}
	c.set(value{num: id})
}
