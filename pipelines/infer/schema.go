package infer

import (
	"context"
	"fmt"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Options say how Schema infers.
type Options struct {
	// Sample is about how many results are sampled, 1 to MaxSample; 0 is
	// DefaultSample.
	Sample int
	// Personal marks columns that most likely hold personal data.
	Personal bool
}

// InferredSchema is a schema for people to edit.
type InferredSchema struct {
	Schema  *schemas.Schema
	Notes   definition.Notes // why each type was chosen, for FormatNotedSchema
	Sampled Sampled
}

// Schema makes a schema from a form's headings and a sample that is
// spread over the definition's range, with types that every sampled value fits
// without loss (transform.Learner).
func Schema(ctx context.Context, def *definition.Definition, o account.Options, form string, how Options) (*InferredSchema, error) {
	if how.Sample == 0 {
		how.Sample = DefaultSample
	}
	if how.Sample < 1 || how.Sample > MaxSample {
		return nil, fmt.Errorf("a sample is 1 to %d results, not %d", MaxSample, how.Sample)
	}
	learner := transform.NewLearner(def.Source.Zone)
	sampled, err := readSample(ctx, def, o, form, how.Sample, func(p *page.Page) {
		learner.Add(p)
		p.Release()
	})
	if err != nil {
		return nil, err
	}
	in := &InferredSchema{Sampled: sampled}
	in.Notes.Head = headNotes(form, sampled, how)
	var guesses []transform.Guess
	in.Schema, guesses = learner.Schema(form, def.Labels)
	for i, c := range in.Schema.Columns {
		in.Notes.Columns = append(in.Notes.Columns, columnNotes(c, guesses[i], how.Personal))
	}
	if err := in.Schema.Validate(); err != nil {
		return nil, fmt.Errorf("inferred schema of form %s: %w", form, err)
	}
	return in, nil
}
