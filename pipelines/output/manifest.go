package output

import (
	"context"
	"errors"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// ManifestAt reads the manifest that an earlier run left of an output. It checks
// the columns and, of a dataset, the names of the parts, because a run may
// remove these. The error is a *load.ManifestError where it was damaged. Without
// a manifest there is no error, and none is given.
func ManifestAt(ctx context.Context, s load.Store, name string, out definition.Output) (*load.Manifest, string, error) {
	m, version, err := load.ReadManifest(ctx, s, name)
	if errors.Is(err, load.ErrNotExist) {
		return nil, load.NoVersion, nil
	}
	if err != nil {
		return nil, version, err
	}
	if err := checkManifest(m, out); err != nil {
		return nil, load.NoVersion, &load.ManifestError{Name: name, Problem: "it cannot be gone on from", Err: err}
	}
	return m, version, nil
}

func checkManifest(m *load.Manifest, out definition.Output) error {
	if m.Form == "" {
		return errors.New("it names no form")
	}
	if len(m.Schema) == 0 && len(m.Parts) > 0 {
		return errors.New("it has parts and no columns")
	}
	for _, p := range m.Parts {
		if !out.Dataset() {
			break
		}
		if _, err := load.ParsePartName(p.Path); err != nil {
			return err
		}
	}
	columns := m.Schema
	if out.Exploded() && len(columns) > positionAt { // it has the list's source, as the element has
		if _, err := checkpoint.DecodeColumns(columns[positionAt : positionAt+1]); err != nil {
			return err
		}
		columns = elements(m).Schema
	}
	_, err := checkpoint.DecodeColumns(columns)
	return err
}

// ColumnsOf are the columns of a manifest that ManifestAt gave.
func ColumnsOf(m *load.Manifest) ([]schemas.Column, error) { return checkpoint.DecodeColumns(m.Schema) }
