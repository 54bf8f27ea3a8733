package pipelines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
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

	beside bool // it is no output, but where the codebook of one lies
}

// NeedsForms tells whether Clean must ask the service which forms there are:
// the definition has globs, and no form was chosen.
func NeedsForms(def *definition.Definition, o Options) bool {
	return def.ListsForms() && len(o.Forms) == 0
}

// Clean removes what dead runs of any pipeline left at the definition's
// outputs and in its state folder, and nothing else (see load.Clean); how says
// whether it only looks. An output that fails does not stop the others: the
// error is a *FormsError of *OutputsError then, as in Run. Nothing is asked
// of the service unless NeedsForms.
func Clean(ctx context.Context, def *definition.Definition, o Options, how load.CleanOptions) (*CleanReport, error) {
	o = o.withDefaults()
	report := &CleanReport{Pipeline: def.Name, Definition: def.File}
	forms, err := formsToClean(ctx, def, o)
	if err != nil {
		return report, err
	}
	c := &cleaner{def: def, o: o, how: how, report: report, seen: map[string]bool{}}
	failed := &FormsError{Forms: len(forms)}
	for _, form := range forms {
		outputs := c.form(ctx, form)
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		if len(outputs) > 0 {
			failed.Errors = append(failed.Errors, fmt.Errorf("form %s: %w", form, &output.OutputsError{Errors: outputs}))
		}
	}
	report.tellOnce()
	if report.Checkpoints, err = cleanCheckpoints(ctx, def, o, forms, how.DryRun); err != nil {
		failed.Errors = append(failed.Errors, err)
	}
	if len(failed.Errors) > 0 {
		return report, failed
	}
	return report, nil
}

// formsToClean are the forms whose paths are cleaned. A form that was chosen
// need not exist any more.
func formsToClean(ctx context.Context, def *definition.Definition, o Options) ([]string, error) {
	if NeedsForms(def, o) {
		client, err := newClient(def, o)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		return formsOf(ctx, client, def, o)
	}
	forms, _ := namedForms(def, o)
	if len(forms) == 0 {
		return nil, &NoFormsError{Patterns: def.Forms, Chosen: o.Forms}
	}
	return forms, nil
}

// cleaner cleans a definition's outputs.
type cleaner struct {
	def    *definition.Definition
	o      Options
	how    load.CleanOptions
	report *CleanReport
	seen   map[string]bool // paths that were cleaned: forms may share them
}

// form cleans the outputs of a form and gives the errors of those that failed.
func (c *cleaner) form(ctx context.Context, form string) []error {
	var failures []error
	for _, out := range c.def.Outputs {
		if out.Path == definition.StdoutPath || ctx.Err() != nil {
			continue
		}
		cleaned := CleanedOutput{Path: out.Path}
		cleaned.Path, cleaned.Err = c.expand(out, form)
		if c.seen[cleaned.Path] {
			continue
		}
		c.seen[cleaned.Path] = true
		if cleaned.Err == nil {
			cleaned.Cleaned, cleaned.Err = c.clean(ctx, out, cleaned.Path)
		}
		all := []CleanedOutput{cleaned}
		if cleaned.Err == nil {
			all = append(all, c.beside(ctx, out, cleaned.Path)...)
		}
		for _, cleaned := range all {
			if cleaned.Err != nil {
				failures = append(failures, cleaned.Err)
			}
		}
		c.report.Outputs = append(c.report.Outputs, all...)
	}
	return failures
}

// beside cleans where the codebook of a dataset lies, which is not in it: on
// disk a run that was killed while it wrote one left a file there. tellOnce
// leaves out where there was none.
func (c *cleaner) beside(ctx context.Context, out definition.Output, expanded string) []CleanedOutput {
	place, ok := definition.CodebookPlaceOf(out, expanded, c.o.Tables.Formats)
	if !ok || !out.Dataset() || strings.Contains(expanded, "://") {
		return nil
	}
	found := CleanedOutput{Path: place.Paths()[0], beside: true}
	found.Cleaned, found.Err = c.cleanAt(ctx, out, place.Root, place.Schema(), found.Path)
	return []CleanedOutput{found}
}

// expand gives the path that a run writes to; with an error the template.
func (c *cleaner) expand(out definition.Output, form string) (string, error) {
	if strings.Contains(out.Path, "{run_id}") {
		return out.Path, &definition.UnsupportedError{
			What: out.Path + ": cleaning a path that is another one for each run", Remedy: "write a path without {run_id}, or remove the folders of old runs by hand",
		}
	}
	expanded, err := definition.ExpandPath(out.Path, c.def.PathValues(form, c.o.RunID))
	if err != nil {
		return out.Path, err
	}
	return expanded, nil
}

func (c *cleaner) clean(ctx context.Context, out definition.Output, expanded string) (load.Cleaned, error) {
	root, scope := expanded, ""
	if !out.Dataset() {
		root, scope = definition.SplitPath(expanded)
	}
	return c.cleanAt(ctx, out, root, scope, expanded)
}

// cleanAt cleans a scope of a destination; path is for people.
func (c *cleaner) cleanAt(ctx context.Context, out definition.Output, root, scope, path string) (load.Cleaned, error) {
	dest, err := c.o.Tables.Open(ctx, root, out)
	if err != nil {
		return load.Cleaned{}, err
	}
	cleaned, err := load.Clean(ctx, dest, scope, c.o.job(c.def, "").Holder(), c.how)
	switch _, held := errors.AsType[*load.HeldError](err); {
	case err == nil, held: // it names the path
		return cleaned, err
	case errors.Is(err, load.ErrNoSweep):
		err = &definition.UnsupportedError{What: "cleaning this destination", Remedy: "see its own tools"}
	}
	return cleaned, fmt.Errorf("%s: %w", path, err)
}

// tellOnce leaves each leftover at one output only: files in one folder share
// what lies there. What one of them removed was not kept.
func (r *CleanReport) tellOnce() {
	told := map[string]bool{}
	for i := range r.Outputs {
		out := &r.Outputs[i]
		out.Removed = slices.DeleteFunc(out.Removed, func(l load.Leftover) bool {
			again := told[l.Path]
			told[l.Path] = true
			return again
		})
	}
	for i := range r.Outputs {
		out := &r.Outputs[i]
		out.Kept = slices.DeleteFunc(out.Kept, func(k load.Kept) bool {
			again := told[k.Path]
			told[k.Path] = true
			return again
		})
	}
	r.Outputs = slices.DeleteFunc(r.Outputs, func(out CleanedOutput) bool {
		return out.beside && out.Err == nil && len(out.Removed)+len(out.Kept) == 0
	})
}

// cleanCheckpoints removes what dead runs of the definition left in the state
// folder, and what any dead run left there that is of use to nobody. It tells how
// many checkpoints it were, in a dry run how many it would be.
func cleanCheckpoints(ctx context.Context, def *definition.Definition, o Options, forms []string, dryRun bool) (swept int, err error) {
	look := discardCheckpoints
	if dryRun {
		look = checkpointsOf
	}
	left, err := look(ctx, def, o, forms)
	return len(left) + checkpoint.Sweep(def.State, dryRun) + checkpoint.DiscardSpools(def.State, dryRun), err
}
