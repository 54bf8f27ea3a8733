package upkeep

import (
	"cmp"
	"context"
	"fmt"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
	"github.com/formetl/formetl/transform"
)

// InferOptions say how many results InferSchema samples, and what its notes point out.
type InferOptions struct {
	// Sample is about how many results to sample, from 1 to MaxSample; 0 is DefaultSample.
	Sample int
	// Personal asks for a note "pii?" at each column that most likely holds personal data.
	Personal bool
}

// InferredSchema is a schema that InferSchema proposes, for people to edit.
type InferredSchema struct {
	Schema  *schemas.Schema
	Notes   definition.Notes // why each type was chosen, for definition.FormatSchema
	Sampled Sampled
}

// InferSchema makes a schema from a form's headings and a sample of its results that is
// spread over the definition's range, with types that every sampled value fits
// without loss (transform.Learner).
func InferSchema(ctx context.Context, def *definition.Definition, o pipelines.Options, form string, how InferOptions) (*InferredSchema, error) {
	how.Sample = cmp.Or(how.Sample, DefaultSample)
	learner, sampled, err := learn(ctx, def, o, form, how.Sample)
	if err != nil {
		return nil, err
	}
	in := &InferredSchema{Sampled: sampled}
	in.Notes.Head = headNotes(form, sampled, how)
	var guesses []transform.Guess
	in.Schema, guesses = learner.Schema(form, def.Names)
	for i, c := range in.Schema.Columns {
		in.Notes.Columns = append(in.Notes.Columns, columnNotes(c, guesses[i], how.Personal))
	}
	if err := in.Schema.Validate(); err != nil {
		return nil, fmt.Errorf("inferred schema of form %s: %w", form, err)
	}
	return in, nil
}

// learn returns a learner of columns that has seen a sample of about want results of the form, and
// what that sample is of. The sample is spread over the definition's range.
func learn(ctx context.Context, def *definition.Definition, o pipelines.Options, form string, want int) (*transform.Learner, Sampled, error) {
	learner := transform.NewLearner(def.Source.Zone)
	sampled, err := readSample(ctx, def, o, form, want, func(p *page.Page) {
		learner.Add(p)
		p.Release()
	})
	return learner, sampled, err
}

// headNotes returns the comments at the top of an inferred schema: what it was made from, and how
// to go on with it.
func headNotes(form string, s Sampled, how InferOptions) []string {
	made := fmt.Sprintf("The columns of form %s, from its headings and %s (%s).", form, sampledText(s), plain.Plural(s.Requests, "request"))
	lines := []string{made, "Edit names, types and rules as you like. If the schema is inferred again, your edits are not kept."}
	if how.Personal {
		lines = append(lines, "\"pii?\" marks columns that look like personal data: check each of them, and the other columns too.")
	}
	return lines
}

// sampledText says how many results the sample has, and of which range.
func sampledText(s Sampled) string {
	text := plain.Plural(s.Results, "result")
	switch {
	case s.Whole && s.Results > 1:
		text = "all " + text
	case s.Whole:
	case s.Total == extract.Unknown:
		text += " spread over the range"
	default:
		text += fmt.Sprintf(" of the %s, spread over the range", plain.Thousands(s.Total))
	}
	if s.Range != (extract.Window{}) {
		text += " dated " + s.Range.Dates()
	}
	return text
}

// columnNotes returns the comments above a column of an inferred schema: its label, and why it has
// its type. With personal, a column that looks like personal data gets a note that asks a human to
// confirm that.
func columnNotes(c schemas.Column, g transform.Guess, personal bool) []string {
	why := g.Why + presence(c, g)
	if c.Label != "" {
		why = `"` + plain.Cut(plain.Line(c.Label), longestLabel) + `": ` + why
	}
	notes := []string{why}
	if personal && g.Personal != "" {
		notes = append(notes, fmt.Sprintf("pii? likely %s: to protect it, add pii: hmac (or drop, redact, truncate(n))", g.Personal))
	}
	return notes
}

// presence says for a comment in how many results of the sample a column has a value.
func presence(c schemas.Column, g transform.Guess) string {
	empty := ""
	if t := cmp.Or(c.Type.Elem, &c.Type); g.Empty > 0 && t.Kind != schemas.String {
		empty = fmt.Sprintf(" (%s read as null)", plain.Plural(g.Empty, "empty answer"))
	}
	switch {
	case c.From.Kind == schemas.FromResultID || g.Results == 0:
		return ""
	case g.Filled == g.Results && g.Results == 1:
		return "; a value in the only sampled result"
	case g.Filled == g.Results:
		return "; a value in all " + plain.Plural(g.Results, "sampled result") + empty
	}
	return fmt.Sprintf("; no value in %s of %s", plain.Thousands(g.Results-g.Filled), plain.Plural(g.Results, "sampled result")) + empty
}

// longestLabel is how many characters of a label a comment of an inferred schema shows.
const longestLabel = 80
