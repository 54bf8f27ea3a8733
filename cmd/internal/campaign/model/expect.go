package model

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// Row is the row that a definition makes of a state, by the columns of the
// manifest. rejected tells that a value does not fit a column that rejects
// then. A field that no column has room for is an error.
func (d *Definition) Row(r formservice.Result, columns []readback.Column) (row readback.Row, rejected bool, err error) {
	row = readback.Row{}
	known := map[string]bool{}
	for _, c := range columns {
		known[c.From] = true
		if c.From == "result_id" {
			row[c.Name] = readback.Text(strconv.FormatInt(r.ID, 10))
			continue
		}
		values, answered := d.values(r, c.From)
		if !answered {
			continue
		}
		cell, fits := d.cell(c, values)
		if rule, declared := d.declared(c.From); !fits && declared && rule.OnError != "set_null" {
			return nil, true, nil
		}
		if !cell.IsNull() {
			row[c.Name] = cell
		}
	}
	if d.Ignore {
		return row, false, nil
	}
	for _, from := range fields(r) {
		if values, answered := d.values(r, from); answered && len(values) > 0 && !known[from] {
			return nil, false, fmt.Errorf("result %d has %s, for which there is no column", r.ID, from)
		}
	}
	return row, false, nil
}

// fields are the sources of all that a result has.
func fields(r formservice.Result) []string {
	all := make([]string, 0, len(r.Metas)+len(r.Items))
	for _, m := range r.Metas {
		all = append(all, "meta:"+m.ID)
	}
	for _, a := range r.Items {
		all = append(all, "item:"+a.ID)
	}
	return all
}

// values are those of a source as they arrive, answered false where there is
// not even an empty answer.
func (d *Definition) values(r formservice.Result, from string) (values []string, answered bool) {
	kind, id, _ := strings.Cut(from, ":")
	if !d.shows(id) {
		return nil, false
	}
	if kind == "meta" {
		var value string
		value, answered = r.Meta(id)
		values = []string{value}
	} else {
		values, answered = r.Values(id)
	}
	for i, v := range values {
		values[i] = allowed(v)
	}
	return values, answered
}

// allowed replaces the characters that XML 1.0 forbids.
func allowed(s string) string {
	return strings.Map(func(c rune) rune {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0xfffe || c == 0xffff {
			return 0xfffd
		}
		return c
	}, s)
}

// cell makes the values of an answer a cell, as contract.md has it; fits is
// false for what becomes null, or is rejected, because it does not fit.
func (d *Definition) cell(c readback.Column, values []string) (cell readback.Cell, fits bool) {
	if element, isList := strings.CutPrefix(c.Type, "list<"); isList {
		return d.list(strings.TrimSuffix(element, ">"), values)
	}
	switch {
	case len(values) == 0:
		return readback.Cell{}, true
	case len(values) > 1:
		if _, declared := d.declared(c.From); declared || c.Type != "string" {
			return readback.Cell{}, false
		}
		escape := strings.NewReplacer(`\`, `\\`, `|`, `\|`)
		joined := make([]string, len(values))
		for i, v := range values {
			joined[i] = escape.Replace(v)
		}
		return readback.Text(strings.Join(joined, "|")), true
	}
	return d.scalar(c.Type, values[0])
}

// list makes several values a list; an empty answer is an empty list.
func (d *Definition) list(element string, values []string) (cell readback.Cell, fits bool) {
	var cells []readback.Cell
	if len(values) == 1 && values[0] == "" {
		return readback.List(), true
	}
	for _, v := range values {
		c, fits := d.scalar(element, v)
		if !fits {
			return readback.Cell{}, false
		}
		cells = append(cells, c)
	}
	return readback.List(cells...), true
}

var integer = regexp.MustCompile(`^[+-]?[0-9]+$`)

// scalar reads one value as a type.
func (d *Definition) scalar(kind, v string) (cell readback.Cell, fits bool) {
	if kind == "string" {
		return readback.Text(v), true
	}
	if v == "" {
		return readback.Cell{}, true
	}
	v = strings.Trim(v, " \t\r\n")
	switch {
	case kind == "timestamp":
		at, err := time.Parse(formservice.WallTime, v)
		if err != nil {
			return readback.Cell{}, false
		}
		return readback.Text(readback.Instant(at, d.Zone).Format(time.RFC3339)), true
	case kind == "int64" && integer.MatchString(v):
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return readback.Text(strconv.FormatInt(n, 10)), true
		}
	case kind == "date":
		if at, err := time.Parse(time.DateOnly, v); err == nil && at.Year() > 0 {
			return readback.Text(at.Format(time.DateOnly)), true
		}
	}
	return readback.Cell{}, false
}
