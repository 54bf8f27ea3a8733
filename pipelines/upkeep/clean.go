package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// CleanReport is what Clean found and removed.
type CleanReport struct {
	// Outputs are the places where something lay, and those that were not cleaned to the end.
	Outputs []CleanedOutput
	// Checkpoints counts those of dead runs in the state folder that were removed,
	// or in a dry run would be.
	Checkpoints int
}

// CleanedOutput is what lay at one output, or at the place of its codebook.
type CleanedOutput struct {
	Path string // as the run expands it
	load.Cleaned
}

// Clean removes what dead runs of any pipeline left at the definition's
// outputs and in its state folder, and nothing else (see load.Clean); how says
// whether it only looks. An output that fails does not stop the others: the
// error is an *pipelines.FormsError of *output.OutputsError then. The service is
// asked for the forms of globs alone. A form that was chosen need not exist any more.
func Clean(ctx context.Context, def *definition.Definition, o pipelines.Options, how load.CleanOptions) (*CleanReport, error) {
	o = o.WithDefaults()
	c := &cleaner{def: def, o: o, how: how, visited: map[string]bool{}}
	forms, failed, err := eachForm(ctx, def, o, func(form string) error {
		return eachOutput(ctx, def, o, form, func(out definition.Output, at output.Location) error { return c.output(ctx, out, at) })
	})
	if err != nil {
		return &c.report, err
	}
	c.tellOnce()
	c.report.Checkpoints, err = cleanCheckpoints(ctx, def, o, forms, how.DryRun)
	failed.Add(err)
	return &c.report, failed.OrNil()
}

// cleaner cleans a definition's outputs.
type cleaner struct {
	def     *definition.Definition
	o       pipelines.Options
	how     load.CleanOptions
	report  CleanReport
	visited map[string]bool // paths: forms may share them
}

// output cleans an output. A dataset's codebook lies outside the dataset: on disk, a
// run that was killed while it wrote one left a file there.
func (c *cleaner) output(ctx context.Context, out definition.Output, at output.Location) error {
	if !out.Lasting() {
		if c.visited[out.Path] {
			return nil
		}
		c.visited[out.Path] = true
		return definition.Unsupported(out.Path+": cleaning a path that is another one for each run", "write a path without {run_id}, or remove the folders of old runs by hand")
	}
	if c.visited[at.Path] || out.Database != nil { // nothing outlives a load of a table but what it committed
		return nil
	}
	c.visited[at.Path] = true
	err := c.place(ctx, out, at.Root, at.Scope, at.Path)
	book, ok := definition.CodebookPlaceOf(out, at.Path, c.o.Tables.Formats)
	if err == nil && ok && out.Dataset() && !strings.Contains(at.Path, "://") {
		err = c.place(ctx, out, book.Root, book.Schema(), book.Paths()[0])
	}
	return err
}

// place cleans a scope of a destination; path is for people.
func (c *cleaner) place(ctx context.Context, out definition.Output, root, scope, path string) error {
	dest, err := c.o.Tables.Open(ctx, root, out)
	if err != nil {
		return err
	}
	cleaned, err := load.Clean(ctx, dest, scope, c.o.Job(c.def, "").Holder(), c.how)
	c.report.Outputs = append(c.report.Outputs, CleanedOutput{path, cleaned})
	if _, held := errors.AsType[*load.HeldError](err); err == nil || held { // the error names the path
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// tellOnce reports each leftover at one output only, because files in one folder
// share what lies there. A leftover that one of them removed was not kept.
func (c *cleaner) tellOnce() {
	told, outputs := map[string]bool{}, c.report.Outputs
	for i := range outputs {
		outputs[i].Removed = once(told, outputs[i].Removed, func(l load.Leftover) string { return l.Path })
	}
	for i := range outputs {
		outputs[i].Kept = once(told, outputs[i].Kept, func(k load.Kept) string { return k.Path })
	}
	c.report.Outputs = slices.DeleteFunc(outputs, func(out CleanedOutput) bool {
		return len(out.Removed)+len(out.Kept) == 0 && out.Recovery.RunID == ""
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
func cleanCheckpoints(ctx context.Context, def *definition.Definition, o pipelines.Options, forms []string, dryRun bool) (swept int, err error) {
	look := pipelines.DiscardCheckpoints
	if dryRun {
		look = pipelines.Checkpoints
	}
	early, err := look(ctx, def, o, forms)
	if err != nil {
		return len(early), err
	}
	state, err := pipelines.OpenState(ctx, def, o)
	if err != nil {
		return len(early), err
	}
	swept, err = checkpoint.Sweep(ctx, state, o.Job(def, "").Holder(), dryRun)
	return len(early) + swept, err
}
