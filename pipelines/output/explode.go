package output

import (
	"fmt"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// The rows of a child output (explode: true) are made of the run's batches as they
// are encoded. See definition.Definition.Explode for its place and settings.

// The columns of a child output besides the list's own name.
const (
	positionName = "position"
	positionAt   = 1 // after the result's id
)

// ChildColumns are the columns of the child output of a list: the result's id
// as the main output has it, the element's position from 1, and the element.
// Both have the list's source: they come from nowhere else.
func ChildColumns(columns []schemas.Column, list schemas.Source) ([]schemas.Column, error) {
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
func (p *place) checkChild() error {
	schema := p.job.Def.Schema
	if schema == nil {
		return nil
	}
	now, err := ChildColumns(schema.Columns, p.out.Explode)
	if err != nil {
		return err
	}
	for i, is := range manifestColumns(now, schema.HMACKey) {
		if i >= len(p.manifest.Schema) {
			break
		}
		was := p.manifest.Schema[i]
		if was.Name != is.Name || was.Type != is.Type || was.From != is.From {
			describe := func(c load.Column) string { return c.Name + " " + c.Type + " from " + c.From }
			return &SchemaChangedError{Path: p.Path, Column: was.Name, Was: describe(was), Is: describe(is)}
		}
	}
	return checkRules(p.Path, elements(p.manifest).Schema, schema)
}
