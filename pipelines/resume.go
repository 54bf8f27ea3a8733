package pipelines

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
)

// Resume bounds what a run takes over of one that ended early, and tells of it.
// The zero value takes over all that a checkpoint gives.
type Resume struct {
	// Within is how old a piece of the checkpoint may be. 0 is no bound, and a
	// negative age takes nothing over.
	Within time.Duration
	// Told is called before the first request for results if some are taken over.
	// It gets their number and the time when the oldest were read. It may be nil.
	Told func(results int64, oldest time.Time)
}

// ownSlots is how many runs may write one definition's results to standard
// output, or to a place of their own, at the same time.
const ownSlots = 64

// inherit finds what this run takes over from an earlier one. It is nil where
// there is nothing.
func (f *formRun) inherit(ctx context.Context) (*checkpoint.Inherited, error) {
	c := f.reader.Checkpoint
	found, err := c.Found(ctx)
	if found == nil {
		return nil, err
	}
	f.outputs.DropStaged(ctx, append(found.Runs, found.RunID)...)
	if err == nil && f.o.Resume.Within < 0 {
		err = errors.New("the command asks for fresh results")
	}
	if err == nil {
		err = found.Unfit(f.reader.Header)
	}
	if err != nil {
		if !errors.Is(err, checkpoint.ErrNoHeader) { // else that run ended before it read anything
			level := slog.LevelWarn
			if f.reader.Def.File == "" || f.o.Resume.Within < 0 || f.reader.Header.Full && !found.Full { // nobody expects the command to resume
				level = slog.LevelInfo
			}
			f.reader.Log.LogAttrs(ctx, level, "this run reads again what an unfinished earlier run had read, as its checkpoint is not used",
				slog.String("earlier_run", cmp.Or(found.RunID, "unknown")), slog.String("reason", err.Error()))
		}
		return nil, c.Clear(ctx)
	}
	if err := c.Verify(ctx, found); err != nil {
		return nil, err
	}
	for _, fault := range found.Faults {
		f.reader.Log.LogAttrs(ctx, slog.LevelWarn, "some of what an earlier run had read (its checkpoint) is damaged, and is read again", slog.String("error", fault.Error()))
	}
	found.Usable(f.o.Now(), f.o.Resume.Within, func(at time.Time) time.Time { return reading.Settled(f.reader.Def, at) })
	f.counts.Inherit(found.Counts)
	return found, nil
}

// header returns the header of the checkpoint of this run, as far as it is known before the run
// has a plan.
func (f *formRun) header() (checkpoint.Header, error) {
	r := f.reader
	fingerprint, err := r.Def.Fingerprint()
	return checkpoint.Header{
		RunID: r.RunID, Runs: []string{r.RunID}, OpenedAt: r.Now().UTC(), Pipeline: r.Def.Name, Form: r.Name, Definition: r.Def.File,
		Fingerprint: fingerprint, Full: f.o.Full, Bases: f.outputs.Bases(),
	}, err
}

// headerOf completes the header of the checkpoint with what the run decided to read.
func (f *formRun) headerOf(d *decision, verifies bool) {
	h := &f.reader.Header
	h.Trusted, h.Counts = verifies, f.counts.All()
	if d.inherited != nil {
		h.OpenedAt = d.inherited.OpenedAt
		h.Runs = append(slices.DeleteFunc(slices.Clone(d.inherited.Runs), func(run string) bool { return run == h.RunID }), h.RunID)
	}
	if d.changes != nil {
		h.Changes = d.changes.State()
	}
}

// costlyPlan is how many requests make a plan worth keeping before anything is read.
const costlyPlan = 4

// tellTakenOver tells Resume.Told what is not asked for again, before the first
// request.
func tellTakenOver(inherited *checkpoint.Inherited, iv reading.Interval, resume Resume) {
	if inherited == nil || resume.Told == nil {
		return
	}
	var results int64
	var oldest time.Time
	for _, c := range inherited.Within(iv.Read) {
		for _, p := range c.Pieces {
			if results += p.Results(); p.Results() > 0 && (oldest.IsZero() || p.ReadAt.Before(oldest)) {
				oldest = p.ReadAt
			}
		}
	}
	if results > 0 {
		resume.Told(results, oldest)
	}
}

// takeOver gives the pieces of an earlier run to the windows of this one.
func (f *formRun) takeOver(ctx context.Context, windows []*reading.Window, inherited *checkpoint.Inherited) error {
	if inherited == nil {
		return nil
	}
	whole, results, err := f.reader.TakeOver(ctx, windows, inherited)
	if err != nil || whole == 0 && results == 0 {
		return err
	}
	f.report.WindowsKept = whole
	if inherited.RunID != f.o.RunID { // it is the same where the run began again
		f.report.Continued = inherited.RunID
	}
	f.reader.Log.LogAttrs(ctx, slog.LevelInfo, "resuming from the checkpoint of an earlier run",
		slog.String("earlier_run", inherited.RunID), slog.Int("windows", whole), slog.Int64("results", results),
		slog.Duration("earlier_run_began_ago", f.o.Now().Sub(inherited.OpenedAt).Round(time.Second)))
	f.reader.Progress(results)
	return nil
}

// keepsRead tells whether another run can take over what was read before an error.
func keepsRead(err error) bool { return !errors.Is(err, load.ErrConflict) && !DataAtFault(err) }

// closeCheckpoint closes the checkpoint, and removes it unless the run keeps it. A
// run that failed tells the log and the report what the next one need not ask for. What the
// outputs hold does not depend on whether the checkpoint could be removed.
func (f *formRun) closeCheckpoint(ctx context.Context, err error) {
	// It is kept neither where the data were at fault, which the next run would meet again, nor
	// where an output was committed, since the others are then read again.
	keep := err != nil && keepsRead(err) && !isError[*output.StdoutError](err) && !f.outputs.Committed() && f.reader.Checkpoint.Begun()
	if err != nil {
		f.tellKept(ctx, keep)
	}
	lingering, cancel := load.Lingering(ctx, load.Grace)
	defer cancel()
	f.tellStays(ctx, f.reader.Checkpoint.Close(lingering, keep))
}

// tellStays tells of an error of removing the checkpoint.
func (f *formRun) tellStays(ctx context.Context, err error) {
	if err != nil {
		f.reader.Log.LogAttrs(ctx, slog.LevelWarn, "a checkpoint that is not needed any more could not be removed; later runs try again, once what the error says is mended", slog.String("error", err.Error()))
	}
}

func (f *formRun) tellKept(ctx context.Context, kept bool) {
	var windows int
	var results int64
	for _, w := range f.windows() {
		if kept && w.OfRange() && w.IDs != nil {
			if results += w.Results(); w.Done {
				windows++
			}
		}
	}
	if kept && results > 0 {
		f.reader.Log.LogAttrs(ctx, slog.LevelInfo, "what was read is kept in a checkpoint; the next run resumes from it",
			slog.Int("windows", windows), slog.Int64("results", results), slog.String("path", f.reader.Checkpoint.Place))
	}
	if f.reader.Total() > 0 || f.reader.Client.Requests().Results > 0 {
		f.report.ResultsKept = &results
	}
}

// DataAtFault tells whether one of the errors in a tree ends a command with 65. A run that
// it ends keeps no checkpoint, because the next one would meet the same data. As for the exit
// code, an error with a code of its own decides, whatever it wraps: an outage is temporary,
// whatever the last answer was.
func DataAtFault(err error) bool {
	if c, ok := err.(interface{ ExitCode() int }); ok && c.ExitCode() != 0 { //nolint:errorlint // the tree is walked by hand
		return c.ExitCode() == 65
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return DataAtFault(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), DataAtFault)
	}
	return false
}
