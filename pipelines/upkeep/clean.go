package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// CleanReport is what Clean found and removed.
type CleanReport struct {
	Pipeline   string
	Definition string
	Outputs    []CleanedOutput
	// Checkpoints counts those of dead runs in the state folder that were removed,
	// or in a dry run would be.
	Checkpoints int
}

// CleanedOutput is what lay at one output.
type CleanedOutput struct {
	Path string // as the run expands it
	load.Cleaned
	Err error // why it was not cleaned to the end

	beside bool // it is the place of an output's codebook, not an output
}

// Clean removes what dead runs of any pipeline left at the definition's
// outputs and in its state folder, and nothing else (see load.Clean); how says
// whether it only looks. An output that fails does not stop the others: the
// error is an *account.FormsError of *output.OutputsError then. The service is
// asked for the forms of globs alone. A form that was chosen need not exist any more.
func Clean(ctx context.Context, def *definition.Definition, o account.Options, how load.CleanOptions) (*CleanReport, error) {
	o = o.WithDefaults()
	report := &CleanReport{Pipeline: def.Name, Definition: def.File}
	forms, err := account.ListForms(ctx, def, o)
	if err != nil {
		return report, err
	}
	c := &cleaner{def: def, o: o, how: how, report: report, seen: map[string]bool{}}
	var failed account.FormsError
	if err := failed.Each(ctx, forms, func(form string) error { return c.form(ctx, form) }); err != nil {
		return report, err
	}
	report.tellOnce()
	report.Checkpoints, err = cleanCheckpoints(ctx, def, o, forms, how.DryRun)
	failed.Add(err)
	return report, failed.OrNil()
}

// cleaner cleans a definition's outputs.
type cleaner struct {
	def    *definition.Definition
	o      account.Options
	how    load.CleanOptions
	report *CleanReport
	seen   map[string]bool // paths that were cleaned: forms may share them
}

// form cleans the outputs of a form. The error is that of those that failed.
func (c *cleaner) form(ctx context.Context, form string) error {
	var failures []error
	for _, out := range c.def.Outputs {
		if out.Path == definition.StdoutPath || ctx.Err() != nil {
			continue
		}
		at, err := c.locate(out, form)
		if c.seen[at.Path] {
			continue
		}
		c.seen[at.Path] = true
		cleaned := CleanedOutput{Path: at.Path, Err: err}
		if err == nil {
			cleaned.Cleaned, cleaned.Err = c.cleanAt(ctx, out, at.Root, at.Scope, at.Path)
		}
		all := []CleanedOutput{cleaned}
		if cleaned.Err == nil {
			all = append(all, c.beside(ctx, out, at.Path)...)
		}
		for _, cleaned := range all {
			if cleaned.Err != nil {
				failures = append(failures, cleaned.Err)
			}
		}
		c.report.Outputs = append(c.report.Outputs, all...)
	}
	return output.Failed(failures)
}

// beside cleans the place of a dataset's codebook, which lies outside the dataset.
// On disk, a run that was killed while it wrote one left a file there. tellOnce
// drops places without such a file from the report.
func (c *cleaner) beside(ctx context.Context, out definition.Output, expanded string) []CleanedOutput {
	place, ok := definition.CodebookPlaceOf(out, expanded, c.o.Tables.Formats)
	if !ok || !out.Dataset() || strings.Contains(expanded, "://") {
		return nil
	}
	found := CleanedOutput{Path: place.Paths()[0], beside: true}
	found.Cleaned, found.Err = c.cleanAt(ctx, out, place.Root, place.Schema(), found.Path)
	return []CleanedOutput{found}
}

// locate tells where a run writes the output; with an error its path is as the
// definition has it.
func (c *cleaner) locate(out definition.Output, form string) (at output.Location, err error) {
	if !out.Lasting() {
		err = &definition.UnsupportedError{
			What: out.Path + ": cleaning a path that is another one for each run", Remedy: "write a path without {run_id}, or remove the folders of old runs by hand",
		}
	} else {
		at, err = output.Locate(c.def, out, form, c.o.RunID)
	}
	if err != nil {
		at.Path = out.Path
	}
	return at, err
}

// cleanAt cleans a scope of a destination; path is for people.
func (c *cleaner) cleanAt(ctx context.Context, out definition.Output, root, scope, path string) (load.Cleaned, error) {
	if out.Database != nil { // nothing outlives a load but what it committed
		return load.Cleaned{}, nil
	}
	dest, err := c.o.Tables.Open(ctx, root, out)
	if err != nil {
		return load.Cleaned{}, err
	}
	cleaned, err := load.Clean(ctx, dest, scope, c.o.Job(c.def, "").Holder(), c.how)
	if _, held := errors.AsType[*load.HeldError](err); err == nil || held { // the error names the path
		return cleaned, err
	}
	return cleaned, fmt.Errorf("%s: %w", path, err)
}

// tellOnce reports each leftover at one output only, because files in one folder
// share what lies there. A leftover that one of them removed was not kept.
func (r *CleanReport) tellOnce() {
	told := map[string]bool{}
	for i := range r.Outputs {
		r.Outputs[i].Removed = once(told, r.Outputs[i].Removed, func(l load.Leftover) string { return l.Path })
	}
	for i := range r.Outputs {
		r.Outputs[i].Kept = once(told, r.Outputs[i].Kept, func(k load.Kept) string { return k.Path })
	}
	r.Outputs = slices.DeleteFunc(r.Outputs, func(out CleanedOutput) bool {
		return out.beside && out.Err == nil && len(out.Removed)+len(out.Kept) == 0
	})
}

// once removes from a list the leftovers whose path was told before, and notes the
// paths of the others in told.
func once[L any](told map[string]bool, list []L, path func(L) string) []L {
	return slices.DeleteFunc(list, func(l L) bool {
		again := told[path(l)]
		told[path(l)] = true
		return again
	})
}

// cleanCheckpoints removes what dead runs of the definition left in the state
// folder, and what no run can resume from. It gives how many checkpoints that are;
// in a dry run it only counts them.
func cleanCheckpoints(ctx context.Context, def *definition.Definition, o account.Options, forms []string, dryRun bool) (swept int, err error) {
	look := account.DiscardCheckpoints
	if dryRun {
		look = account.Checkpoints
	}
	left, err := look(ctx, def, o, forms)
	if err != nil {
		return len(left), err
	}
	state, err := account.OpenState(ctx, def, o)
	if err != nil {
		return len(left), err
	}
	swept, err = checkpoint.Sweep(ctx, state, o.Job(def, "").Holder(), dryRun)
	return len(left) + swept, err
}
