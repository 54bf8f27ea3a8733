package infer

import (
	"context"
	"errors"
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
	// Base is a schema whose columns stay, with their names and all that they
	// declare; nil is none. Only labels follow the form.
	Base *schemas.Schema
	// Personal marks columns that most likely hold personal data.
	Personal bool
}

// InferredSchema is a schema for people to edit.
type InferredSchema struct {
	Schema  *schemas.Schema
	Notes   definition.Notes // why each type was chosen, for FormatNotedSchema
	Sampled Sampled
	Added   int // columns that the base lacks; all without one
	Gone    int // columns of the base that the form no longer has
	Misfits int // columns of the base that values of the sample do not fit
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
	fitting, err := newFitting(how.Base, def.Source.Zone)
	if err != nil {
		return nil, err
	}
	if fitting != nil {
		defer fitting.Release()
	}
	var failed error
	sampled, err := readSample(ctx, def, o, form, how.Sample, func(p *page.Page) {
		learner.Add(p)
		if fitting != nil {
			failed = errors.Join(failed, fitting.Append(p))
		}
		p.Release()
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	found, guesses := learner.Schema(form, def.Labels)
	in := &InferredSchema{Sampled: sampled}
	in.Notes.Head = headNotes(form, sampled, how)
	in.Schema = &schemas.Schema{}
	*in.Schema = *found
	if how.Base != nil {
		*in.Schema = *how.Base
	}
	var stats transform.Stats
	if fitting != nil {
		stats = fitting.Stats()
	}
	in.merge(found, guesses, how, stats)
	if err := in.Schema.Validate(); err != nil {
		return nil, fmt.Errorf("inferred schema of form %s: %w", form, err)
	}
	return in, nil
}

// merge lists the base's columns, with the labels that the form has now, and
// behind them those that it lacks, in the form's order.
func (in *InferredSchema) merge(found *schemas.Schema, guesses []transform.Guess, how Options, stats transform.Stats) {
	in.Schema.Columns = nil
	at := make(map[schemas.Source]int, len(found.Columns))
	for i, c := range found.Columns {
		at[c.From] = i
	}
	var names schemas.Uniquer
	add := func(c schemas.Column, notes []string) {
		in.Schema.Columns, in.Notes.Columns = append(in.Schema.Columns, c), append(in.Notes.Columns, notes)
	}
	if how.Base != nil {
		for _, c := range how.Base.Columns {
			names.Name(c.Name)
			i, there := at[c.From]
			if !there {
				in.Gone++
				add(c, goneNotes(c))
				continue
			}
			delete(at, c.From)
			if found.Columns[i].Label != "" {
				c.Label = found.Columns[i].Label
			}
			unfit := misfits(stats, c, guesses[i])
			if unfit != "" {
				in.Misfits++
			}
			add(c, declaredNotes(c, guesses[i], unfit, how.Personal))
		}
	}
	for i, c := range found.Columns {
		if _, fresh := at[c.From]; fresh {
			in.Added++
			c.Name = names.Name(c.Name)
			add(c, inferredNotes(c, guesses[i], how.Personal))
		}
	}
}
