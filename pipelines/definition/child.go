package definition

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// A list column with explode: true has a child output beside each output. It has a
// row for each element of the list, with the result's id and the element's position.
// A child is an output like any other, but it does not stand in the file.

// Exploded tells whether the output is the child of another one.
func (o Output) Exploded() bool { return o.Explode != schemas.Source{} }

// Explode adds the child outputs that the schema asks for to Outputs. Calling it
// again replaces them. Load has done it for definitions that are read from a file.
func (d *Definition) Explode() error {
	d.Outputs = slices.DeleteFunc(d.Outputs, Output.Exploded)
	for _, out := range slices.Clone(d.Outputs) {
		children, err := d.children(out)
		if err != nil {
			return err
		}
		d.Outputs = append(d.Outputs, children...)
	}
	return nil
}

// children makes the child outputs of an output, in the order of the columns.
func (d *Definition) children(out Output) (children []Output, err error) {
	if d.Schema == nil {
		return nil, nil
	}
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
	return children, nil
}

// addChildren adds the child outputs to the definition. Problems with a child are
// reported at the path of the output that it lies beside.
func (r *reader) addChildren() {
	for _, out := range slices.Clone(r.outputs) {
		if out.Path == "" {
			continue
		}
		children, err := r.def.children(out.Output)
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

// childNote explains a child output in a message, because people do not find it in
// their file. It is "" for other outputs.
func (out placedOutput) childNote() string {
	if !out.Exploded() {
		return ""
	}
	return fmt.Sprintf("; %s is the child output of the list from %s (explode: true)", strictyaml.Quote(out.Path), out.Explode)
}

// child makes the child output of a column. It lies beside the output and has the
// output's settings.
func (o Output) child(c schemas.Column) (Output, error) {
	if o.Path == StdoutPath {
		return o, &UnsupportedError{
			What:   fmt.Sprintf("explode: true (column %s) on standard output, which is one file,", c.Name),
			Remedy: "write to a file, or leave explode out of the schema",
		}
	}
	problem := ""
	if err := checkPathName("column", c.Name); err != nil {
		problem = err.Reason
	} else if strings.ContainsAny(c.Name, "{}") {
		problem = "holds a brace"
	}
	if problem != "" {
		return o, &UnsupportedError{
			What:   fmt.Sprintf("explode: true for a column whose name %s cannot be part of a path (it %s)", strictyaml.Quote(c.Name), problem),
			Remedy: "rename the column, or leave explode out",
		}
	}
	o.Path, o.Explode = ChildPath(o.Path, c.Name), c.From
	o.NoCodebook = true // the main output's codebook describes the list
	return o, nil
}

// ChildPath is the path of the child output of a column. It is the parent's path with
// "__" and the column's name added, in a file's name before its extensions.
func ChildPath(parent, column string) string {
	if folder, ok := strings.CutSuffix(parent, "/"); ok {
		return folder + "__" + column + "/"
	}
	at := strings.LastIndexByte(parent, '/') + 1
	stem, _ := load.SplitCodec(parent[at:])
	stem = strings.TrimSuffix(stem, path.Ext(stem))
	return parent[:at] + stem + "__" + column + parent[at+len(stem):]
}
