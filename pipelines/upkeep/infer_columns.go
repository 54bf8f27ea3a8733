package upkeep

import (
	"context"
	"fmt"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// Where the columns of a definition come from.
const (
	OriginSchema   = "schema"   // the definition's schema
	OriginManifest = "manifest" // what an earlier run left
	OriginSample   = "sample"   // headings and a sample of the live form
)

// FormColumns are the columns that a definition gives for one form.
type FormColumns struct {
	Origin  string
	Sampled int // results that they were inferred from
	Schema  *schemas.Schema
}

// KnownColumns tells the columns of a form without asking the service: those
// of the definition's schema with what earlier runs added, else those of the
// manifest that an earlier run left. It is nil where only the live form tells.
func KnownColumns(ctx context.Context, def *definition.Definition, o pipelines.Options, form string) (*FormColumns, error) {
	written, err := outputColumns(ctx, def, o.WithDefaults(), form)
	if err != nil {
		return nil, err
	}
	switch {
	case def.Schema != nil:
		s := *def.Schema
		if s.Unknown == "" || s.Unknown == schemas.UnknownAdd {
			s.Columns = schemas.Merge(s.Columns, written)
		}
		return &FormColumns{Origin: OriginSchema, Schema: &s}, nil
	case len(written) > 0:
		return &FormColumns{Origin: OriginManifest, Schema: &schemas.Schema{Name: form, Columns: written}}, nil
	}
	return nil, nil
}

// outputColumns gives the columns of the manifests of all outputs. As in a run,
// those of a single file count only where there is no dataset, because a file is
// written anew and the older parts of a dataset stay.
func outputColumns(ctx context.Context, def *definition.Definition, o pipelines.Options, form string) ([]schemas.Column, error) {
	job := o.Job(def, form)
	var sets, files []schemas.Column
	for _, out := range def.Outputs {
		if out.Path == definition.StdoutPath || out.Exploded() {
			continue
		}
		m, err := job.Manifest(ctx, out)
		switch {
		case err != nil:
			return nil, err
		case m == nil:
			continue
		}
		columns, err := output.ColumnsOf(m)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", out.Path, err)
		case out.Dataset():
			sets = schemas.Merge(sets, columns)
		case def.Schema == nil:
			files = schemas.Merge(files, columns)
		}
	}
	if len(sets) > 0 {
		return sets, nil
	}
	return files, nil
}

// InferColumns makes the columns that a run without a schema would write, from
// the form's headings and a sample that is spread over the range. It costs a
// handful of requests.
func InferColumns(ctx context.Context, def *definition.Definition, o pipelines.Options, form string) (*FormColumns, error) {
	learner, sampled, err := learn(ctx, def, o, form, reading.SampleResults)
	if err != nil {
		return nil, err
	}
	return &FormColumns{Origin: OriginSample, Sampled: sampled.Results, Schema: learner.Inferred(form, def.Labels)}, nil
}

// NoColumns says that a definition names no schema, for a form of which no run has left
// columns.
func NoColumns(file, form string) error {
	return &definition.Fault{Code: codeNoInput, Text: fmt.Sprintf("%s has no schema, and no run has left columns of form %s: there is nothing to compare the form with; run it, or write a schema by `formetl schema infer`", file, form)}
}
