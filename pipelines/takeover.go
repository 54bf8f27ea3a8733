package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/schemas"
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

// openCheckpoint opens the checkpoint of the form, and decides what of it this
// run takes over.
func (f *formRun) openCheckpoint(ctx context.Context) (err error) {
	if n := checkpoint.DiscardSpools(f.def.State, false); n > 0 {
		f.log.LogAttrs(ctx, slog.LevelWarn, "what runs of an older version had read is discarded, and read again", slog.Int("runs", n))
	}
	if dest, place, ok := f.checkpointPlace(); ok {
		f.checkpoint = checkpoint.OpenAt(dest, place, checkpointKey(f.def, f.form))
	} else {
		slots := 1
		if !slices.ContainsFunc(f.def.Outputs, lastingPlace) {
			slots = ownSlots
		}
		if f.checkpoint, err = checkpoint.Open(ctx, f.def.State, checkpointKey(f.def, f.form), slots); err != nil {
			return err
		}
		if slots == 1 {
			f.discardOthers(ctx)
		}
	}
	found, err := f.checkpoint.Found(ctx)
	if found == nil && err == nil {
		return nil
	}
	if err == nil {
		err = f.fitting(found)
	}
	if err != nil {
		f.tellDiscarded(ctx, found, err)
		return f.checkpoint.Clear(ctx)
	}
	for _, fault := range found.Faults {
		f.log.LogAttrs(ctx, slog.LevelWarn, "a part of the checkpoint is read again", slog.String("error", fault.Error()))
	}
	found.Usable(f.o.Now(), f.o.Resume.Within, func(at time.Time) time.Time { return interval.Settled(f.def, at) })
	f.counts.take(found.Counts)
	f.left = found
	return nil
}

// discardOthers removes what was read for outputs that the definition no longer
// has: nobody resumes from it. The run's own checkpoint is held, and stays.
func (f *formRun) discardOthers(ctx context.Context) {
	if f.def.File == "" || f.def.CheckpointAtDestination { // an export knows nothing of the others
		return
	}
	others, err := discardCheckpoints(ctx, f.def, f.o, []string{f.form})
	for _, l := range others {
		f.tellDiscarded(ctx, &checkpoint.Inherited{Header: l.Header}, errors.New("the outputs have changed since"))
	}
	if err != nil {
		f.log.LogAttrs(ctx, slog.LevelWarn, "a checkpoint that nobody resumes from could not be removed", slog.String("error", err.Error()))
	}
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

// lastingPlace tells whether each run writes an output to the same place. Then
// its lease keeps other runs away.
func lastingPlace(out definition.Output) bool {
	return out.Path != definition.StdoutPath && !strings.Contains(out.Path, "{run_id}")
}

// checkpointPlace is the destination of the first output, where the definition
// says that the checkpoint lies there and the output can be written.
func (f *formRun) checkpointPlace() (store load.Store, at string, ok bool) {
	if !f.def.CheckpointAtDestination || len(f.targets) == 0 || f.targets[0].err != nil || !lastingPlace(f.targets[0].def) {
		return nil, "", false
	}
	switch o := f.targets[0].out.(type) {
	case *datasetOutput:
		return o.dest, o.path, true
	case *fileOutput:
		root, _ := definition.SplitPath(o.path)
		return o.dest, root, true
	}
	return nil, "", false
}

// tellDiscarded tells the log that what an earlier run read is of no use.
func (f *formRun) tellDiscarded(ctx context.Context, found *checkpoint.Inherited, why error) {
	if found.RunID == "" { // it ended before anything was of use
		return
	}
	level := slog.LevelWarn
	if f.def.File == "" { // nobody expects an export to resume another
		level = slog.LevelInfo
	}
	f.log.LogAttrs(ctx, level, "the checkpoint of an earlier run is discarded",
		slog.String("earlier_run", found.RunID), slog.String("reason", why.Error()))
}

// fitting tells why nothing of a checkpoint can be taken over.
func (f *formRun) fitting(found *checkpoint.Inherited) error {
	own, err := f.def.Fingerprint()
	switch {
	case err != nil:
		return err
	case found.Fingerprint != own:
		return errors.New("the definition has changed since")
	case f.o.Now().Sub(found.Newest()).Abs() > checkpoint.KeepFor:
		return errors.New("it is too old")
	case f.full && !found.Full:
		return errors.New("everything is to be read anew")
	case f.o.Resume.Within < 0:
		return errors.New("everything is to be read anew")
	case f.dateless:
		return errors.New("the service ignored dates, so that all results are read again")
	}
	for _, t := range f.live() {
		m, version := manifestOf(t.out)
		byThat := m != nil && m.RunID == found.RunID // it committed some outputs, not all
		if version != found.Bases[t.report.Path] && !byThat {
			return fmt.Errorf("%s has changed since", t.report.Path)
		}
	}
	_, err = checkpoint.DecodeColumns(found.Inferred)
	return err
}

// header is what the checkpoint of this run begins with.
func (f *formRun) header() (checkpoint.Header, error) {
	fingerprint, err := f.def.Fingerprint()
	h := checkpoint.Header{
		RunID: f.o.RunID, OpenedAt: f.o.Now().UTC(), Pipeline: f.def.Name, Form: f.form, Definition: f.def.File,
		Fingerprint: fingerprint, Full: f.full, Trusted: f.verifies(), Bases: map[string]string{}, Counts: f.counts.all(),
	}
	if f.left != nil {
		h.OpenedAt = f.left.OpenedAt
	}
	for _, t := range f.live() {
		_, h.Bases[t.report.Path] = manifestOf(t.out)
	}
	if f.schema != nil {
		h.Headings = f.headings
		if f.def.Schema == nil {
			h.Inferred = manifestColumns(f.schema.Columns, schemas.HMACKey{})
		}
	}
	return h, err
}

// beginCheckpoint lets the next run take over what is read from here on.
func (f *formRun) beginCheckpoint(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h, err := f.header()
	if err != nil {
		return err
	}
	return f.checkpoint.Begin(ctx, h)
}

// keepPlan lets the next run take over what the service counted, before
// anything is read.
func (f *formRun) keepPlan(ctx context.Context) error {
	if f.left != nil || f.plan.Requests < costlyPlan {
		return nil
	}
	return f.beginCheckpoint(ctx)
}

// costlyPlan is how many requests a plan must have cost to be kept by itself.
const costlyPlan = 4

// takeOver makes the pieces of an earlier run those of this run's windows: each
// window takes those that lie wholly within it.
func (f *formRun) takeOver(ctx context.Context) error {
	if f.left == nil {
		return nil
	}
	var all []checkpoint.Chain
	var rows int64
	for _, w := range f.windows {
		chains := f.left.Within(w.planned.Window)
		if len(chains) == 0 || w.planned.Count == 0 {
			continue // what is counted as empty is not divided into parts; the verification reads it where it is not
		}
		all = append(all, chains...)
		for _, c := range chains {
			for _, p := range c.Pieces {
				if err := f.take(w, p); err != nil {
					return err
				}
			}
		}
		w.taken, w.done = true, false
		rows += w.extracted()
	}
	for _, w := range f.inOrderOfReading() {
		if w.done = len(gaps(w.planned.Window, w.chains)) == 0; w.done {
			f.reads++
			w.number = f.reads
			f.report.Kept++
		}
	}
	if err := f.checkpoint.Keep(ctx, all); err != nil {
		return err
	}
	if len(all) == 0 {
		return nil
	}
	f.report.Continued = f.left.RunID
	f.log.LogAttrs(ctx, slog.LevelInfo, "resuming from the checkpoint of an earlier run",
		slog.String("earlier_run", f.left.RunID), slog.Int("windows", f.report.Kept), slog.Int64("results", rows),
		slog.Duration("opened_ago", age(f.o.Now(), f.left.OpenedAt)))
	f.progress(rows, false)
	return nil
}

// inOrderOfReading are the windows of which an earlier run read something, the
// one whose oldest piece is the oldest first.
func (f *formRun) inOrderOfReading() []*windowRun {
	taken := slices.DeleteFunc(slices.Clone(f.windows), func(w *windowRun) bool { return !w.taken })
	slices.SortStableFunc(taken, func(a, b *windowRun) int { return a.readAt.Compare(b.readAt) })
	return taken
}

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

// oldestPiece is when the oldest piece was asked for that this run may take
// over, zero where there is none.
func (f *formRun) oldestPiece() (oldest time.Time) {
	if f.left == nil {
		return oldest
	}
	for _, c := range f.left.Chains {
		for _, p := range c.Pieces {
			if oldest.IsZero() || p.ReadAt.Before(oldest) {
				oldest = p.ReadAt
			}
		}
	}
	return oldest
}

// keeps tells whether what was read is of use to the next run. Where the data
// were at fault it would meet the same again, and where an output was committed
// the others are read again.
func (f *formRun) keeps(err error) bool {
	if err == nil || !keepsRead(err) || isError[*StdoutError](err) {
		return false
	}
	return !slices.ContainsFunc(f.targets, func(t *target) bool { return t.committed })
}

// keepsRead tells whether another run can take over what was read before an
// error: nothing is wrong with that.
func keepsRead(err error) bool { return !errors.Is(err, load.ErrConflict) && !DataAtFault(err) }

// closeCheckpoint ends the run's use of its checkpoint.
func (f *formRun) closeCheckpoint(ctx context.Context, err error) error {
	keep := f.keeps(err) && f.checkpoint.Begun()
	f.tellKept(ctx, err, keep)
	return f.checkpoint.Close(context.WithoutCancel(ctx), keep)
}

// tellKept tells the log and the report what the next run need not ask for.
func (f *formRun) tellKept(ctx context.Context, err error, kept bool) {
	if err == nil {
		return
	}
	var windows int
	var results int64
	for _, w := range f.windows {
		if kept && w.undated == nil && w.older == nil && w.ids != nil {
			if results += w.extracted(); w.done {
				windows++
			}
		}
	}
	if kept {
		f.log.LogAttrs(ctx, slog.LevelInfo, "what was read is kept in the checkpoint; the next run resumes from there",
			slog.Int("windows", windows), slog.Int64("results", results), slog.String("path", f.checkpoint.Place))
	}
	if f.rows > 0 || f.requests().Results > 0 {
		f.report.ResultsKept = &results
	}
}

// counts are what the service counted for the plan, which a resumed run need
// not ask again.
type counts struct {
	known map[extract.Window]checkpoint.Count
	asked []checkpoint.Count
}

// take takes over what an earlier run had counted.
func (c *counts) take(list []checkpoint.Count) {
	c.known = make(map[extract.Window]checkpoint.Count, len(list))
	for _, k := range list {
		c.known[spanOf(k.Window)] = k
	}
}

// all are those that this run asked for and those that it took over.
func (c *counts) all() []checkpoint.Count {
	list := slices.Clone(c.asked)
	for _, k := range c.known {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b checkpoint.Count) int {
		return cmp.Or(a.Window.From.Compare(b.Window.From.Time), a.Window.To.Compare(b.Window.To.Time))
	})
	return list
}

// remembered is a counter that asks only for what no earlier run counted.
func (f *formRun) remembered(count extract.Counter) extract.Counter {
	return func(ctx context.Context, w extract.Window) (int64, error) {
		f.mu.Lock()
		k, ok := f.counts.known[w]
		f.mu.Unlock()
		if ok {
			return k.N, nil
		}
		at := f.o.Now().UTC()
		n, err := count(ctx, w)
		if err == nil {
			f.mu.Lock()
			f.counts.asked = append(f.counts.asked, checkpoint.Count{Window: wallRange(w), N: n, At: at})
			f.mu.Unlock()
		}
		return n, err
	}
}
