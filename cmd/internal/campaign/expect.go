package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
)

// matches tells whether a result passes the definition's search.
func (d *definition) matches(r formservice.Result) bool {
	status, _ := r.Meta("result_status")
	return !d.complete || status == "Complete"
}

// rows are those that a definition makes of a state, by the columns of an output's manifest:
// one, or in a child output one for each element. rejected tells that a value does not fit a
// column that rejects then. A field that no column has room for is an error.
func (d *definition) rows(r formservice.Result, o *output, columns []load.Column) (rows []row, rejected bool, err error) {
	for _, c := range d.columns {
		values, answered := valuesOf(r, c.from)
		if _, fits := d.cell(load.Column{Type: c.kind, From: c.from}, values); answered && !fits && c.onError == "reject" {
			return nil, true, nil
		}
	}
	id := strconv.FormatInt(r.ID, 10)
	if o.explode != "" {
		list := d.columns[slices.IndexFunc(d.columns, func(c column) bool { return c.name == o.explode })]
		values, _ := valuesOf(r, list.from)
		if len(values) == 1 && values[0] == "" {
			values = nil
		}
		for i, v := range values {
			rows = append(rows, row{keyOf(columns): id, "position": strconv.Itoa(i + 1), o.explode: v})
		}
		return rows, false, nil
	}
	one, known := row{}, map[string]bool{}
	for _, c := range columns {
		known[c.From] = true
		if c.From == "result_id" {
			one[c.Name] = id
		} else if values, answered := valuesOf(r, c.From); answered {
			if cell, _ := d.cell(c, values); cell != nil {
				one[c.Name] = cell
			}
		}
	}
	for _, a := range r.Items {
		if !d.ignore && len(a.Values) > 0 && !known["item:"+a.ID] {
			return nil, false, fmt.Errorf("result %s answers item %s, for which there is no column", id, a.ID)
		}
	}
	return []row{one}, false, nil
}

// valuesOf are those of a source as they arrive, answered false where there is not even an
// empty answer.
func valuesOf(r formservice.Result, from string) (values []string, answered bool) {
	kind, id, _ := strings.Cut(from, ":")
	if kind == "meta" {
		value, answered := r.Meta(id)
		return []string{value}, answered
	}
	values, answered = r.Values(id)
	for i, v := range values {
		values[i] = strings.Map(allowed, v)
	}
	return values, answered
}

// allowed replaces a character that XML 1.0 forbids.
func allowed(c rune) rune {
	if c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0xfffe || c == 0xffff {
		return 0xfffd
	}
	return c
}

// cell makes the values of an answer a cell, as contract.md has it, nil for null; fits is
// false for what becomes null, or is rejected, because it does not fit.
func (d *definition) cell(c load.Column, values []string) (cell any, fits bool) {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	switch {
	case c.Type == "list<string>" && len(values) == 1 && values[0] == "":
		return []any{}, true
	case c.Type == "list<string>":
		return all, true
	case len(values) == 0:
		return nil, true
	case len(values) == 1:
		return d.scalar(c.Type, values[0])
	}
	return joined(all), true
}

var integer = regexp.MustCompile(`^[+-]?[0-9]+$`)

// scalar reads one value as a type.
func (d *definition) scalar(kind, v string) (cell any, fits bool) {
	if kind == "string" {
		return v, true
	}
	if v == "" {
		return nil, true
	}
	v = strings.Trim(v, " \t\r\n")
	switch kind {
	case "timestamp":
		if at, err := time.Parse(formservice.WallTime, v); err == nil {
			return formservice.Instant(at, d.zone).Format(time.RFC3339), true
		}
	case "int64":
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && integer.MatchString(v) {
			return strconv.FormatInt(n, 10), true
		}
	case "date":
		if at, err := time.Parse(time.DateOnly, v); err == nil && at.Year() > 0 {
			return at.Format(time.DateOnly), true
		}
	}
	return nil, false
}

// differ tells in what rows that were read differ from those that are wanted, "" for nothing.
func differ(got []read, want []row, o *output) string {
	if len(got) != len(want) {
		return fmt.Sprintf("there are %d rows, and then were %d", len(got), len(want))
	}
	for i, w := range want {
		all := maps.Clone(w)
		maps.Copy(all, got[i].row)
		for name := range all {
			is, was := got[i].row[name], w[name]
			if list, ok := was.([]any); ok && strings.HasPrefix(o.extension, ".csv") {
				was = joined(list)
			}
			if is, was := fmt.Sprintf("%q", is), fmt.Sprintf("%q", was); is != was {
				return fmt.Sprintf("column %q is %.300s, and then was %.300s", name, is, was)
			}
		}
	}
	return ""
}
