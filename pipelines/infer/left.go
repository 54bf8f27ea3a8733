package infer

import (
	"context"
	"fmt"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/schemas"
)

// Left is an output as the last run left it.
type Left struct {
	definition.Output
	Path     string         // with its placeholders replaced
	Manifest *load.Manifest // nil where no run has committed
	// List is the name of the list whose elements a child output holds
	// (explode: true), "" for others.
	List string
}

// Columns gives the output's columns for a form with the given ones. A child output
// has the result's id, the position and the element.
func (l Left) Columns(columns []schemas.Column) ([]schemas.Column, error) {
	if l.List == "" {
		return columns, nil
	}
	return output.ChildColumns(columns, l.Explode)
}

// At gives where the output lies if its main output lies at a location.
func (l Left) At(location string) string {
	if l.List == "" {
		return location
	}
	return definition.ChildPath(location, l.List)
}

// LookAtOutputs tells what lies at the outputs of a definition for one form.
// It reads their manifests and nothing else. Where a path holds {run_id}, each
// run has a place of its own and none is looked at.
func LookAtOutputs(ctx context.Context, def *definition.Definition, o account.Options, form string) ([]Left, error) {
	job := o.WithDefaults().Job(def, form)
	var left []Left
	for _, out := range def.Outputs {
		path, err := definition.ExpandPath(out.Path, def.PathValues(form, "{run_id}"))
		if err != nil {
			return nil, err
		}
		l := Left{Output: out, Path: path}
		if out.Exploded() {
			l.List = def.Schema.Columns[def.Schema.Find(out.Explode)].Name
		}
		if !strings.Contains(path, "{run_id}") {
			if l.Manifest, err = job.Manifest(ctx, out); err != nil {
				return nil, err
			}
		}
		left = append(left, l)
	}
	return left, nil
}

// LaterColumns adds to columns those that runs added to the outputs, also to single
// files (unknown: add).
func LaterColumns(def *definition.Definition, columns []schemas.Column, left []Left) ([]schemas.Column, error) {
	if s := def.Schema; s != nil && s.Unknown != "" && s.Unknown != schemas.UnknownAdd {
		return columns, nil
	}
	for _, l := range left {
		if l.Manifest == nil || l.List != "" {
			continue
		}
		written, err := output.ColumnsOf(l.Manifest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Path, err)
		}
		columns = schemas.Merge(columns, written)
	}
	return columns, nil
}
