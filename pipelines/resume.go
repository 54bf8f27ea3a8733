package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/output"
)

// Resume bounds what a run takes over of one that ended early, and tells of it.
// The zero value takes over all that a checkpoint gives.
type Resume struct {
	// Within is how old a piece of the checkpoint may be; 0 is no bound, and less
	// than that takes nothing over.
	Within time.Duration
	// Told is called before the first request for results where some are taken
	// over: how many, and when the first of them was asked for. nil: nobody is.
	Told func(results int64, oldest time.Time)
}

// ownSlots is how many runs may write one definition's results to standard
// output, or to a place of their own, at the same time.
const ownSlots = 64

// openCheckpoint opens the checkpoint of the form, beside the first output where
// the definition says so.
func openCheckpoint(ctx context.Context, def *definition.Definition, o Options, form string, outputs *output.Set) (*checkpoint.Checkpoint, error) {
	key := checkpointKey(def, form)
	if def.CheckpointAtDestination {
		if store, at, held, ok := outputs.First(); ok {
			return checkpoint.OpenAt(store, at, key, held), nil
		}
	}
	slots := 1
	if !slices.ContainsFunc(def.Outputs, output.LastingPlace) {
		slots = ownSlots
	}
	c, err := checkpoint.Open(ctx, def.State, key, slots)
	if err == nil && slots == 1 {
		discardOthers(ctx, def, o, form)
	}
	return c, err
}

// discardOthers removes what was read for outputs that the definition no longer
// has: nobody resumes from it. The run's own checkpoint is held, and stays.
func discardOthers(ctx context.Context, def *definition.Definition, o Options, form string) {
	if def.File == "" || def.CheckpointAtDestination { // an export knows nothing of the others
		return
	}
	log := o.Logger.With(slog.String("form", form))
	others, err := discardCheckpoints(ctx, def, o, []string{form})
	for _, l := range others {
		tellDiscarded(ctx, log, slog.LevelWarn, l.RunID, errors.New("the outputs have changed since"))
	}
	if err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "a checkpoint that nobody resumes from could not be removed", slog.String("error", err.Error()))
	}
}

// tellDiscarded tells the log that what an earlier run read is of no use.
func tellDiscarded(ctx context.Context, log *slog.Logger, level slog.Level, run string, why error) {
	log.LogAttrs(ctx, level, "the checkpoint of an earlier run is discarded", slog.String("earlier_run", run), slog.String("reason", why.Error()))
}

// checkpointKey names the checkpoint of a form.
func checkpointKey(def *definition.Definition, form string) string {
	paths := make([]string, len(def.Outputs))
	for i, out := range def.Outputs {
		if paths[i] = out.Path; def.CheckpointAtDestination { // another host may have it elsewhere
			paths[i] = path.Base(filepath.ToSlash(out.Path))
		}
	}
	return checkpoint.Key(def.Name, form, paths)
}

// inherit finds what this run takes over of an earlier one; nil where there is
// nothing of use.
func (f *formRun) inherit(ctx context.Context) (*checkpoint.Inherited, error) {
	c := f.reader.Checkpoint
	found, err := c.Found(ctx)
	if found == nil {
		return nil, err
	}
	f.outputs.DropStaged(ctx, found.RunID)
	if err == nil {
		err = f.fits(found)
	}
	if err != nil {
		if found.RunID != "" { // else it ended before anything was of use
			level := slog.LevelWarn
			if f.reader.Def.File == "" { // nobody expects an export to resume another
				level = slog.LevelInfo
			}
			tellDiscarded(ctx, f.reader.Log, level, found.RunID, err)
		}
		return nil, c.Clear(ctx)
	}
	if err := c.Verify(ctx, found); err != nil {
		return nil, err
	}
	for _, fault := range found.Faults {
		f.reader.Log.LogAttrs(ctx, slog.LevelWarn, "a part of the checkpoint is read again", slog.String("error", fault.Error()))
	}
	found.Usable(f.o.Now(), f.o.Resume.Within, func(at time.Time) time.Time { return interval.Settled(f.reader.Def, at) })
	f.counts.Inherit(found.Counts)
	return found, nil
}

// fits tells why nothing of a checkpoint can be taken over; nil where it can.
func (f *formRun) fits(found *checkpoint.Inherited) error {
	own, err := f.reader.Def.Fingerprint()
	switch {
	case err != nil:
		return err
	case found.Fingerprint != own:
		return errors.New("the definition has changed since")
	case f.o.Now().Sub(found.Newest()).Abs() > checkpoint.KeepFor:
		return errors.New("it is too old")
	case f.o.Full && !found.Full, f.o.Resume.Within < 0:
		return errors.New("everything is to be read anew")
	case f.reader.Dateless:
		return errors.New("the service ignored dates, so that all results are read again")
	}
	for _, base := range f.outputs.Bases() {
		byThat := base.RunID != "" && base.RunID == found.RunID // it committed some outputs, not all
		if base.Version != found.Bases[base.Path] && !byThat {
			return fmt.Errorf("%s has changed since", base.Path)
		}
	}
	_, err = checkpoint.DecodeColumns(found.Inferred)
	return err
}

// beginCheckpoint lets the next run take over what is read from here on.
func (f *formRun) beginCheckpoint(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := f.reader
	fingerprint, err := r.Def.Fingerprint()
	if err != nil {
		return err
	}
	h := checkpoint.Header{
		RunID: r.RunID, OpenedAt: r.Now().UTC(), Pipeline: r.Def.Name, Form: r.Name, Definition: r.Def.File,
		Fingerprint: fingerprint, Full: f.o.Full, Trusted: f.reconciler.Verifies(), Bases: map[string]string{}, Counts: f.counts.All(),
	}
	if f.left != nil {
		h.OpenedAt = f.left.OpenedAt
	}
	for _, base := range f.outputs.Bases() {
		h.Bases[base.Path] = base.Version
	}
	if r.Schema != nil {
		h.Headings = r.Headings
		if r.Def.Schema == nil {
			h.Inferred = checkpoint.EncodeColumns(r.Schema.Columns)
		}
	}
	return r.Checkpoint.Begin(ctx, h)
}

// costlyPlan is how many requests a plan must have cost to be kept by itself.
const costlyPlan = 4

// tellTakenOver tells whoever asked for it what is not asked for again, before
// the first request.
func (f *formRun) tellTakenOver() {
	if f.left == nil || f.o.Resume.Told == nil {
		return
	}
	var results int64
	var oldest time.Time
	for _, c := range f.left.Within(f.iv.Read) {
		for _, p := range c.Pieces {
			if results += p.Results(); p.Results() > 0 && (oldest.IsZero() || p.ReadAt.Before(oldest)) {
				oldest = p.ReadAt
			}
		}
	}
	if results > 0 {
		f.o.Resume.Told(results, oldest)
	}
}

// takeOver makes the pieces of an earlier run those of this run's windows.
func (f *formRun) takeOver(ctx context.Context) error {
	if f.left == nil {
		return nil
	}
	whole, results, err := f.reader.TakeOver(ctx, f.reconciler.Windows, f.left)
	if err != nil || whole == 0 && results == 0 {
		return err
	}
	f.report.Continued, f.report.Kept = f.left.RunID, whole
	f.reader.Log.LogAttrs(ctx, slog.LevelInfo, "resuming from the checkpoint of an earlier run",
		slog.String("earlier_run", f.left.RunID), slog.Int("windows", whole), slog.Int64("results", results),
		slog.Duration("opened_ago", f.o.Now().Sub(f.left.OpenedAt).Round(time.Second)))
	f.reader.Progress(results)
	return nil
}

// keeps tells whether what was read is of use to the next run. Where the data
// were at fault it would meet the same again, and where an output was committed
// the others are read again.
func (f *formRun) keeps(err error) bool {
	return err != nil && keepsRead(err) && !isError[*output.StdoutError](err) && !f.outputs.Committed() && f.reader.Checkpoint.Begun()
}

// keepsRead tells whether another run can take over what was read before an
// error: nothing is wrong with that.
func keepsRead(err error) bool { return !errors.Is(err, load.ErrConflict) && !DataAtFault(err) }

// closeCheckpoint ends the run's use of its checkpoint, and tells the log and the
// report what the next run need not ask for.
func (f *formRun) closeCheckpoint(ctx context.Context, err error) error {
	keep := f.keeps(err)
	if err != nil {
		f.tellKept(ctx, keep)
	}
	return f.reader.Checkpoint.Close(context.WithoutCancel(ctx), keep)
}

func (f *formRun) tellKept(ctx context.Context, kept bool) {
	var windows int
	var results int64
	for _, w := range f.reconciler.Windows {
		if kept && w.Undated == nil && w.Older == nil && w.IDs != nil {
			if results += w.Results(); w.Done {
				windows++
			}
		}
	}
	if kept {
		f.reader.Log.LogAttrs(ctx, slog.LevelInfo, "what was read is kept in the checkpoint; the next run resumes from there",
			slog.Int("windows", windows), slog.Int64("results", results), slog.String("path", f.reader.Checkpoint.Place))
	}
	if f.reader.Total() > 0 || f.reader.Client.Requests().Results > 0 {
		f.report.ResultsKept = &results
	}
}
