package pipelines

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// A list with explode: true has a child output beside each output: a row for
// each of its elements, with the result's id and the element's position. A
// child is an output like any other, with a lease, a journal, a manifest and a
// watermark of its own; its rows are made of the run's batches as they are
// encoded.

// exploded tells whether the output is the child of another one.
func (o Output) exploded() bool { return o.Explode != schemas.Source{} }

// Explode adds the child outputs that the schema asks for, once. Definitions
// that are read from a file have them.
func (d *Definition) Explode() error {
	d.Outputs = slices.DeleteFunc(d.Outputs, Output.exploded)
	children, err := d.children(d.Outputs)
	d.Outputs = append(d.Outputs, children...)
	return err
}

// children are the child outputs of outputs, by output and then by column.
func (d *Definition) children(outputs []Output) ([]Output, error) {
	if d.Schema == nil {
		return nil, nil
	}
	var children []Output
	for _, out := range outputs {
		for _, c := range d.Schema.Columns {
			if !c.Explode {
				continue
			}
			child, err := out.child(c)
			if err != nil {
				return nil, err
			}
			children = append(children, child)
		}
	}
	return children, nil
}

// explode adds the child outputs to those of the definition, each at the place
// of the path that it lies beside.
func (r *definitionReader) explode() {
	for _, out := range slices.Clone(r.outputs) {
		if out.Path == "" {
			continue
		}
		children, err := r.def.children([]Output{out.Output})
		if err != nil {
			out.path.FailWith(err, "mend the schema")
			return
		}
		for _, child := range children {
			r.outputs = append(r.outputs, placedOutput{Output: child, path: out.path})
			r.def.Outputs = append(r.def.Outputs, child)
		}
	}
}

// childNote tells people of a child output, which stands nowhere in the
// definition; "" for others.
func (r *definitionReader) childNote(output int) string {
	out := r.outputs[output]
	if !out.exploded() {
		return ""
	}
	return fmt.Sprintf("; %s is the child output of the list from %s (explode: true)", strictyaml.Quote(out.Path), out.Explode)
}

// child is the child output of a column: beside the output, with its settings.
func (o Output) child(c schemas.Column) (Output, error) {
	if o.Path == StdoutPath {
		return o, &UnsupportedError{
			What:   fmt.Sprintf("explode: true (column %s) on standard output, which is one file,", c.Name),
			Remedy: "write to a file, or leave explode out of the schema",
		}
	}
	if problem := childNameProblem(c.Name); problem != "" {
		return o, &UnsupportedError{
			What:   fmt.Sprintf("explode: true for a column whose name %s cannot be part of a path (it %s)", strictyaml.Quote(c.Name), problem),
			Remedy: "rename the column, or leave explode out",
		}
	}
	o.Path, o.Explode = childPath(o.Path, c.Name), c.From
	o.NoCodebook = true // the main output's tells of the list
	return o, nil
}

// childNameProblem tells why a column's name cannot be part of a path, "" if
// it can.
func childNameProblem(name string) string {
	if err := checkPathName("column", name); err != nil {
		return err.Reason
	}
	if strings.ContainsAny(name, "{}") {
		return "holds a brace"
	}
	return ""
}

// childPath puts "__" and the column's name behind the name of a dataset, or of
// a file before its extensions.
func childPath(parent, column string) string {
	if folder, ok := strings.CutSuffix(parent, "/"); ok {
		return folder + "__" + column + "/"
	}
	at := strings.LastIndexByte(parent, '/') + 1
	stem, _ := splitCodec(parent[at:])
	stem = strings.TrimSuffix(stem, path.Ext(stem))
	return parent[:at] + stem + "__" + column + parent[at+len(stem):]
}

// The columns of a child output besides the list's own name.
const (
	positionName = "position"
	positionAt   = 1 // after the result's id
)

// childColumns are the columns of the child output of a list: the result's id
// as the main output has it, the element's position from 1, and the element.
// Both have the list's source: they come from nowhere else.
func childColumns(columns []schemas.Column, list schemas.Source) ([]schemas.Column, error) {
	s := schemas.Schema{Columns: columns}
	id, of := s.Find(schemas.Source{Kind: schemas.FromResultID}), s.Find(list)
	if id < 0 || of < 0 || columns[of].Type.Elem == nil {
		return nil, fmt.Errorf("the columns have no list from %s and result id to explode it", list) // a bug: schemas are validated
	}
	element := schemas.Column{
		Name: columns[of].Name, From: list, Type: *columns[of].Type.Elem, Label: columns[of].Label, PII: columns[of].PII,
	}
	var unique schemas.Uniquer
	unique.Name(columns[id].Name)
	unique.Name(element.Name)
	position := schemas.Column{Name: unique.Name(positionName), From: list, Type: schemas.Type{Kind: schemas.Int64}}
	return []schemas.Column{columns[id], position, element}, nil
}

// elements is a child's manifest as if it had no positions, about which there
// is nothing to remember.
func elements(m *load.Manifest) *load.Manifest {
	if m == nil || len(m.Schema) <= positionAt {
		return m
	}
	only := *m
	only.Schema = slices.Delete(slices.Clone(m.Schema), positionAt, positionAt+1)
	return &only
}

// checkChild refuses a definition that renames or retypes a committed column
// of a child output, or hides what its older parts show. Its columns are not
// those of later runs: they follow from the main output's.
func (o *datasetOutput) checkChild() error {
	schema := o.f.def.Schema
	if schema == nil {
		return nil
	}
	now, err := childColumns(schema.Columns, o.out.Explode)
	if err != nil {
		return err
	}
	for i, is := range manifestColumns(now, schema.HMACKey) {
		if i >= len(o.manifest.Schema) {
			break
		}
		was := o.manifest.Schema[i]
		if was.Name != is.Name || was.Type != is.Type || was.From != is.From {
			describe := func(c load.Column) string { return c.Name + " " + c.Type + " from " + c.From }
			return &SchemaChangedError{Path: o.path, Column: was.Name, Was: describe(was), Is: describe(is)}
		}
	}
	return checkRules(o.path, elements(o.manifest).Schema, schema)
}

// letters are the dead letters of the windows. Those of a child lie beside the
// main output alone: they are of results.
func (e encoding) letters(windows []*windowRun) ([]byte, error) {
	if e.out.exploded() {
		return nil, nil
	}
	return deadLetters(windows)
}
