package output

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// The rows of a child output (explode: true) are made from the run's batches
// during encoding. For its place and settings see definition.Definition.Explode.

// These are the columns of a child output besides the list itself.
const (
	positionName = "position"
	positionAt   = 1 // index of the column of positions, behind the result's id
)

// ChildColumns returns the columns of a list's child output: the result's id as in the main
// output, the element's position from 1, and the element. The columns of the position and the
// element have the source of the list.
func ChildColumns(columns []schemas.Column, list schemas.Source) ([]schemas.Column, error) {
	s := schemas.Schema{Columns: columns}
	id, of := s.Find(schemas.Source{Kind: schemas.FromResultID}), s.Find(list)
	if list.Kind == schemas.FromFile && id >= 0 {
		return fileColumns(columns[id]), nil
	}
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

// fileColumns returns the columns of the output that lists uploaded files, each of which is a row.
// id is the column of the result's id.
func fileColumns(id schemas.Column) []schemas.Column {
	var unique schemas.Uniquer
	unique.Name(id.Name)
	column := func(name string, kind schemas.TypeKind) schemas.Column {
		return schemas.Column{Name: unique.Name(name), From: schemas.Source{Kind: schemas.FromFile, ID: name}, Type: schemas.Type{Kind: kind}}
	}
	return []schemas.Column{
		id, column("item", schemas.String), column("n", schemas.Int64), column("name", schemas.String), column("type", schemas.String),
		column("bytes", schemas.Int64), column("sha256", schemas.String), column("path", schemas.String), column("status", schemas.String),
	}
}

// elements returns a child's manifest without the column of positions. That
// column has the same source as the elements, and its settings never change.
func elements(m *load.Manifest) *load.Manifest {
	if m == nil || len(m.Schema) <= positionAt {
		return m
	}
	only := *m
	only.Schema = slices.Delete(slices.Clone(m.Schema), positionAt, positionAt+1)
	return &only
}

// tellOrphans warns of child outputs that the schema no longer asks for. Such outputs
// stay as they are, with their values.
func (p *place) tellOrphans() {
	if p.manifest == nil || p.job.Def.Schema == nil || p.out.Exploded() {
		return
	}
	for _, was := range p.manifest.Schema {
		now, ok := columnFrom(p.job.Def.Schema, was.From)
		if was.Explode && (!ok || !now.Explode || now.Name != was.Name) {
			p.job.Drift("the list " + was.Name + " has no explode: true any more; " + definition.ChildPath(p.Path, was.Name) + " still has its old values: delete this folder, file or table if they must not be kept")
		}
	}
}

// mostExploded limits the rows in a batch of a child output, because a batch of
// results may hold many more elements. The elements of one result stay together.
const mostExploded = 16 << 10

// explosion turns a batch of results into the rows of a child output.
type explosion struct {
	schema *arrow.Schema // schema of the child output
	ids    arrow.Array
	lists  *array.List
}

// newExplosion finds the id column and the list column of the batch by their sources.
func newExplosion(b arrow.RecordBatch, list schemas.Source, schema *arrow.Schema) (*explosion, error) {
	x := &explosion{schema: schema, ids: schemas.ColumnFrom(b, schemas.Source{Kind: schemas.FromResultID})}
	x.lists, _ = schemas.ColumnFrom(b, list).(*array.List)
	if x.ids == nil || x.lists == nil {
		return nil, fmt.Errorf("a batch has no list from %s and result id to explode it", list) // a bug
	}
	return x, nil
}

// each calls visit with the child output's rows in batches of about `most` rows. A null or
// empty list gives no row. A batch is valid only during the call.
func (x *explosion) each(most int, visit func(arrow.RecordBatch) error) error {
	for first := 0; first < x.lists.Len(); {
		end, rows := first, 0
		for end < x.lists.Len() && (end == first || rows+x.elementCount(end) <= most) {
			rows += x.elementCount(end)
			end++
		}
		b, err := x.rows(first, end, rows)
		if err != nil {
			return err
		}
		err = visit(b)
		b.Release()
		if err != nil {
			return err
		}
		first = end
	}
	return nil
}

// elementCount returns how many elements the list of a result has.
func (x *explosion) elementCount(row int) int {
	if x.lists.IsNull(row) {
		return 0
	}
	start, end := x.lists.ValueOffsets(row)
	return int(end - start)
}

// rows returns the n rows of the child output for the results from index first up to, but not
// including, index end.
func (x *explosion) rows(first, end, n int) (arrow.RecordBatch, error) {
	positions, ids := array.NewInt64Builder(memory.DefaultAllocator), array.NewBuilder(memory.DefaultAllocator, x.ids.DataType())
	defer positions.Release()
	defer ids.Release()
	positions.Reserve(n)
	for row := first; row < end; row++ {
		for i := range x.elementCount(row) {
			positions.Append(int64(i + 1))
			switch of := x.ids.(type) {
			case *array.Int64:
				ids.(*array.Int64Builder).Append(of.Value(row))
			case *array.String:
				ids.(*array.StringBuilder).Append(of.Value(row))
			default:
				return nil, fmt.Errorf("a result id is no %s", x.ids.DataType()) // a bug: schemas are validated
			}
		}
	}
	from, _ := x.lists.ValueOffsets(first)
	_, to := x.lists.ValueOffsets(end - 1)
	if int(to-from) != n {
		return nil, errors.New("a list that is null has elements") // a bug: transform gives it none
	}
	elements := array.NewSlice(x.lists.ListValues(), from, to)
	defer elements.Release()
	id, position := ids.NewArray(), positions.NewArray()
	defer id.Release()
	defer position.Release()
	return array.NewRecordBatch(x.schema, []arrow.Array{id, position, elements}, int64(n)), nil
}
