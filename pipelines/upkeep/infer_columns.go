package upkeep

import (
	"context"
	"fmt"
	"slices"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// The values of FormColumns.Origin: where the columns of a form were found.
const (
	OriginSchema   = "schema"   // the definition's schema, with what earlier runs added
	OriginManifest = "manifest" // the manifests that earlier runs left at the outputs
	OriginSample   = "sample"   // headings and a sample of results that the service gave now
)

// FormColumns are the columns of one form for a definition, and where they were found.
type FormColumns struct {
	Origin  string
	Sampled int // with OriginSample: how many results the columns were inferred from
	Schema  *schemas.Schema
	// Edits are changes of the schema that runs refuse, because the outputs have other names, types or
	// pii rules, or columns that it lacks.
	Edits []schemas.Change
}

// KnownColumns returns the columns of a form without asking the service: those of the definition's
// schema with what earlier runs added, or without a schema those of the manifests that earlier
// runs left. It returns nil if there is neither, so that only the service can tell.
func KnownColumns(ctx context.Context, def *definition.Definition, o pipelines.Options, form string) (*FormColumns, error) {
	written, rules, err := outputColumns(ctx, def, o.WithDefaults(), form)
	if err != nil {
		return nil, err
	}
	switch {
	case def.Schema != nil:
		s := *def.Schema
		if s.Adds() {
			s.Columns = schemas.Merge(s.Columns, written)
		}
		edits := slices.DeleteFunc(schemas.Diff(&schemas.Schema{Columns: written}, &s), func(x schemas.Change) bool {
			return x.Kind != schemas.ColumnRenamed && x.Kind != schemas.ColumnRemoved && x.Key != "type"
		})
		return &FormColumns{Origin: OriginSchema, Schema: &s, Edits: append(edits, rules...)}, nil
	case len(written) > 0:
		return &FormColumns{Origin: OriginManifest, Schema: &schemas.Schema{Name: form, Columns: written}}, nil
	}
	return nil, nil
}

// outputColumns returns the columns that the manifests of all outputs list, merged, and those of
// datasets for which the definition's schema has another pii rule. As in a run,
// columns of single files count only if no dataset has any, because a run writes a file anew, and
// leaves the older parts of a dataset.
func outputColumns(ctx context.Context, def *definition.Definition, o pipelines.Options, form string) (columns []schemas.Column, rules []schemas.Change, err error) {
	job := o.Job(def, form)
	var sets, files []schemas.Column
	for _, out := range def.Outputs {
		if out.Path == definition.StdoutPath || out.Exploded() {
			continue
		}
		m, err := job.Manifest(ctx, out)
		switch {
		case err != nil:
			return nil, nil, err
		case m == nil:
			continue
		}
		columns, err := output.ColumnsOf(m)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s: %w", out.Path, err)
		case out.Dataset():
			sets = schemas.Merge(sets, columns)
			if def.Schema != nil && len(rules) == 0 { // the outputs mostly agree
				rules = output.RuleChanges(m.Schema, def.Schema)
			}
		case def.Schema == nil:
			files = schemas.Merge(files, columns)
		}
	}
	if len(sets) > 0 {
		return sets, rules, nil
	}
	return files, nil, nil
}

// InferColumns returns the columns that a run without a schema would write, from the form's
// headings and a sample of results that is spread over the definition's range. It costs a handful
// of requests to the service.
func InferColumns(ctx context.Context, def *definition.Definition, o pipelines.Options, form string) (*FormColumns, error) {
	learner, sampled, err := learn(ctx, def, o, form, reading.SampleResults)
	if err != nil {
		return nil, err
	}
	return &FormColumns{Origin: OriginSample, Sampled: sampled.Results, Schema: learner.Inferred(form, def.Names)}, nil
}

// NoColumns returns the *definition.Fault, of exit code 66, that a form's columns are not known:
// the definition in file names no schema, and no run has left columns of the form.
func NoColumns(file, form string) error {
	return &definition.Fault{
		Code: 66, Text: fmt.Sprintf("%s has no schema, and no run has stored columns of form %s, so there is nothing to compare with", file, form),
		Cure: fmt.Sprintf("`formetl run %s` stores them; or give the definition a schema: `formetl schema infer %[1]s --form %s -o %[2]s.schema.yaml` writes one", definition.ShellWord(file), definition.ShellWord(form)),
	}
}
