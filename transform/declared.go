package transform

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/schemas"
)

// declared holds the forms in which a column's values are read, if its schema
// declares any (schemas.Reading).
type declared struct {
	formats []*schemas.Format
	yes, no [][]byte // the words of a bool
	decimal string   // separator before a fraction; "" if no separator is declared
	group   string
	scratch []byte // memory for a number in the form that the type expects
}

// newDeclared compiles a column's declared forms. It returns nil if the column declares none.
// The schema has been validated, so every format compiles.
func newDeclared(r schemas.Reading) *declared {
	d := &declared{yes: words(r.True), no: words(r.False), decimal: r.Decimal, group: r.Group}
	for _, text := range r.Formats {
		if f, err := schemas.ParseFormat(text); err == nil {
			d.formats = append(d.formats, f)
		}
	}
	if d.decimal == "" && d.group != "" {
		d.decimal = "."
	}
	if d.formats == nil && d.yes == nil && d.decimal == "" {
		return nil
	}
	return d
}

func words(texts []string) (words [][]byte) {
	for _, t := range texts {
		words = append(words, []byte(strings.TrimSpace(t)))
	}
	return words
}

// parseDeclared reads a value without blanks around it, only in the forms that column c
// declares. moved marks a wall-clock time that the zone skips.
func (r *row) parseDeclared(c *column, v []byte) (out value, moved bool, reason string) {
	d := c.declared
	switch c.elem.Kind {
	case schemas.Bool:
		switch {
		case isWord(v, d.yes):
			out.num = 1
		case !isWord(v, d.no):
			reason = reasonWord
		}
	case schemas.Date:
		at, format := d.read(v)
		if format == nil {
			return out, false, reasonDateForm
		}
		out.num = at.Unix() / daySeconds
	case schemas.Timestamp:
		at, format := d.read(v)
		if format == nil {
			return out, false, reasonTimeForm
		}
		unix := at.Unix()
		if !format.HasOffset() {
			unix, moved = r.clock.instant(unix)
		}
		out.num, reason = unix*1e6+int64(at.Nanosecond())/1000, r.clock.year(unix)
	default:
		return r.parseNumber(c, v)
	}
	return out, moved, reason
}

// parseNumber reads v as a number of column c, with the separators that the column declares.
func (r *row) parseNumber(c *column, v []byte) (out value, moved bool, reason string) {
	v, ok := c.declared.plain(v, c.elem.Kind == schemas.Float64)
	if ok {
		out, moved, reason = r.parseScalar(&c.elem, v)
	}
	if !ok || reason == reasonInt || reason == reasonFloat || reason == reasonDecimal {
		return value{}, false, reasonSeparators
	}
	return out, moved, reason
}

// read parses v by the first declared format that fits; the returned format is nil if none
// does.
func (d *declared) read(v []byte) (at time.Time, format *schemas.Format) {
	for _, format := range d.formats {
		if at, ok := format.Read(v); ok {
			return at, format
		}
	}
	return at, nil
}

// isWord tells whether v is one of the words, letter case aside.
func isWord(v []byte, words [][]byte) bool {
	return slices.ContainsFunc(words, func(w []byte) bool { return bytes.EqualFold(v, w) })
}

// plain rewrites a number as its type expects it: without group separators, and
// with a point before the fraction. ok is false if a separator is misplaced.
// Groups have three digits, the first one to three. If exponent is set, the
// parser checks what follows an "e". The result is valid until the next call.
func (d *declared) plain(v []byte, exponent bool) (number []byte, ok bool) {
	out := d.scratch[:0]
	if len(v) > 0 && (v[0] == '-' || v[0] == '+') {
		out, v = append(out, v[0]), v[1:]
	}
	run, groups := 0, 0 // digits since the last separator; number of separators
	for len(v) > 0 && !d.atFraction(v, exponent) {
		switch {
		case digit(v[0]):
			out, v = append(out, v[0]), v[1:]
			run++
			continue
		case d.group == "" || !hasPrefix(v, d.group):
			return nil, false
		case groups == 0 && (run < 1 || run > 3), groups > 0 && run != 3:
			return nil, false
		}
		v = v[len(d.group):]
		run, groups = 0, groups+1
	}
	if groups > 0 && run != 3 {
		return nil, false
	}
	if len(v) > 0 && hasPrefix(v, d.decimal) {
		out, v = append(out, '.'), v[len(d.decimal):]
	}
	for i, c := range v {
		if exponent && (c == 'e' || c == 'E') {
			out = append(out, v[i:]...)
			break
		}
		if !digit(c) {
			return nil, false
		}
		out = append(out, c)
	}
	d.scratch = out
	return out, true
}

// atFraction tells whether v begins with the decimal separator or, if exponent is set, with an
// exponent. A sign that is declared as both separators divides groups.
func (d *declared) atFraction(v []byte, exponent bool) bool {
	return d.decimal != d.group && hasPrefix(v, d.decimal) || exponent && (v[0] == 'e' || v[0] == 'E')
}

func hasPrefix(v []byte, text string) bool {
	return len(v) >= len(text) && string(v[:len(text)]) == text
}
