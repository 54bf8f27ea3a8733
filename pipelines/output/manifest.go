package output

import (
	"context"
	"errors"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// ManifestAt reads the manifest that an earlier run left of an output, and its
// version. It checks the columns. For a dataset it also checks part names,
// because a run may remove parts. The error is a *load.ManifestError if the
// manifest is damaged. If there is none, it returns nil and no error.
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
	if out.Exploded() && len(columns) > positionAt { // position and element have the same source
		if _, err := checkpoint.DecodeColumns(columns[positionAt : positionAt+1]); err != nil {
			return err
		}
		columns = elements(m).Schema
	}
	_, err := checkpoint.DecodeColumns(columns)
	return err
}

// ColumnsOf returns the columns of a manifest from ManifestAt.
func ColumnsOf(m *load.Manifest) ([]schemas.Column, error) { return checkpoint.DecodeColumns(m.Schema) }
