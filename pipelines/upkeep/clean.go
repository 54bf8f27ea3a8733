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

// CleanReport is what Clean found and removed, or in a dry run would remove.
type CleanReport struct {
	// Outputs are the outputs where dead runs had left something, and those that could not be
	// cleaned completely.
	Outputs []CleanedOutput
	// Checkpoints is how many checkpoints of dead runs were removed from the state folder, or in
	// a dry run would be.
	Checkpoints int
}

// CleanedOutput is what Clean found at one output, or at the place of its codebook.
type CleanedOutput struct {
	Path string // full path, with placeholders such as {form} replaced
	load.Cleaned
}

// Clean removes what dead runs of any pipeline left at the definition's outputs and in its state
// folder, and nothing else (see load.Clean). how says whether it only looks (DryRun), and whether
// it also removes parts that no manifest lists (Unlisted). An output that fails does not stop the
// others: the error is a *pipelines.FormsError of *output.OutputsError then. The service is asked
// for its list of forms only if the definition has globs. A form of Options.Forms need not exist
// any more.
func Clean(ctx context.Context, def *definition.Definition, o pipelines.Options, how load.CleanOptions) (*CleanReport, error) {
	o = o.WithDefaults()
	c := &cleaner{def: def, o: o, how: how, visited: map[string]bool{}}
	forms, failed, err := eachForm(ctx, def, o, func(def *definition.Definition, form string) error {
		all := *def
		all.Outputs = def.WithFiles() // what was staged of files lies in their folder
		return eachOutput(ctx, &all, o, form, func(out definition.Output, at output.Location) error { return c.output(ctx, out, at) })
	})
	if err != nil {
		return &c.report, err
	}
	c.tellOnce()
	c.report.Checkpoints, err = cleanCheckpoints(ctx, def, o, forms, how.DryRun)
	failed.Add(err)
	return &c.report, failed.OrNil()
}

// cleaner removes what dead runs left at a definition's outputs.
type cleaner struct {
	def     *definition.Definition
	o       pipelines.Options
	how     load.CleanOptions
	report  CleanReport
	visited map[string]bool // paths of outputs that were cleaned: forms may share a path
}

// output cleans an output, and the place of a dataset's codebook, which lies outside the dataset:
// on disk, a run that was killed while it wrote the codebook left a file there.
func (c *cleaner) output(ctx context.Context, out definition.Output, at output.Location) error {
	if !out.Lasting() {
		if c.visited[out.Path] {
			return nil
		}
		c.visited[out.Path] = true
		return definition.Unsupported(out.Path+": cleaning a path with {run_id}", "what interrupted runs left is in folders named .formetl beside their outputs: remove these by hand once no run is going")
	}
	if c.visited[at.Path] || out.Database != nil {
		// A load of a table leaves nothing but what it committed.
		return nil
	}
	c.visited[at.Path] = true
	err := c.place(ctx, out, at.Root, at.Scope, at.Path)
	book, ok := definition.CodebookPlaceOf(out, at.Path, c.o.BuiltIn.Formats)
	if err == nil && ok && out.Dataset() && !strings.Contains(at.Path, "://") {
		err = c.place(ctx, out, book.Root, book.Schema(), book.Paths()[0])
	}
	return err
}

// place cleans one scope of the destination at root: a file's name, or "" for a dataset. path is
// the full path, for the report.
func (c *cleaner) place(ctx context.Context, out definition.Output, root, scope, path string) error {
	dest, err := c.o.BuiltIn.Open(ctx, root, out)
	if err != nil {
		return err
	}
	cleaned, err := load.Clean(ctx, dest, scope, c.o.Job(c.def, "").Holder(), c.how)
	c.report.Outputs = append(c.report.Outputs, CleanedOutput{path, cleaned})
	if _, held := errors.AsType[*load.HeldError](err); err == nil || held {
		// A *load.HeldError names the path itself.
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// tellOnce leaves each leftover in the report of one output only: outputs that are files in one
// folder all find what lies in the folder. What was removed for one of them is not reported as kept
// for another. Outputs without leftovers are dropped.
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

// once removes from a list the leftovers whose paths told has, and adds the paths of the others to
// told.
func once[L any](told map[string]bool, list []L, path func(L) string) []L {
	return slices.DeleteFunc(list, func(l L) bool {
		again := told[path(l)]
		told[path(l)] = true
		return again
	})
}

// cleanCheckpoints removes the checkpoints that dead runs of the definition left in the state
// folder, and those of any pipeline that no run can resume from. It returns how many these are; in
// a dry run it only counts them.
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
