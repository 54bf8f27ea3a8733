package model

import (
	"strconv"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// children are the rows of a child output: one for each element of a list, with
// the result's id and the element's position. columns are those of the child's
// manifest: the id, position and the element, under the list's name.
func (d *Definition) children(r formservice.Result, columns []readback.Column) (rows []readback.Row, rejected bool) {
	if d.rejects(r) || len(columns) != 3 {
		return nil, true
	}
	element := columns[2]
	values, answered := d.values(r, element.From)
	if !answered {
		return nil, false
	}
	if len(values) == 1 && values[0] == "" {
		return nil, false
	}
	for i, v := range values {
		row := readback.Row{
			columns[0].Name: readback.Text(strconv.FormatInt(r.ID, 10)),
			columns[1].Name: readback.Text(strconv.Itoa(i + 1)),
		}
		if cell, _ := d.scalar(element.Type, v); !cell.IsNull() {
			row[element.Name] = cell
		}
		rows = append(rows, row)
	}
	return rows, false
}

// rejects tells whether a declared column rejects the result.
func (d *Definition) rejects(r formservice.Result) bool {
	declared := make([]readback.Column, len(d.Columns))
	for i, c := range d.Columns {
		declared[i] = readback.Column{Name: c.Name, Type: c.Type, From: c.From}
	}
	known := *d
	known.Ignore = true
	_, rejected, _ := known.Row(r, declared) // no error: unknown fields are left out
	return rejected
}

// hasRow tells whether a result has a row in an output at all.
func (d *Definition) hasRow(r formservice.Result, o *Output, columns []readback.Column) bool {
	if o.Explode == "" {
		return !d.rejects(r)
	}
	rows, rejected := d.children(r, columns)
	return !rejected && len(rows) > 0
}
