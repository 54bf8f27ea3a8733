package pipelines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// A single file holds exactly its run's range, and is encoded when all windows
// are there. So the run that follows on one that ended early has a range and
// an id of its own, and takes over the windows that lie in the other's spool.
// The same holds for datasets whose parts were not yet prepared. Where their
// journal is gone on with, the spool adds the windows of parts that were not
// complete.

// findLeft looks for the spool of a run that ended early, or opens a new one.
func (f *formRun) findLeft(ctx context.Context) (err error) {
	f.left, err = findSpool(f.def.State, f.def.Name, f.form, f.def.File)
	if err != nil {
		f.log.LogAttrs(ctx, slog.LevelWarn, "the spool of an earlier run is of no use", slog.String("error", err.Error()))
	}
	if f.left != nil {
		f.spool = f.left.spool
		return nil
	}
	f.spool, err = openSpool(f.def.State, f.o.RunID)
	return err
}

// settleSpool decides whether this run takes over what an earlier one spooled,
// and makes it this run's, or begins with an empty spool.
func (f *formRun) settleSpool(ctx context.Context) error {
	if f.left == nil {
		return nil
	}
	left := f.left
	z, err := f.thawSpool(left)
	if err == nil {
		f.tellTakenOver(left)
		for _, fault := range left.faults {
			f.log.LogAttrs(ctx, slog.LevelWarn, "a window of the spool is read again", slog.String("error", fault.Error()))
		}
		for _, w := range left.records {
			f.indices = max(f.indices, w.index)
		}
		f.spool, err = left.adopt()
		if err != nil {
			return err
		}
		f.noted.Store(len(left.records) > 0)
		f.takeDecisions(ctx, z)
		return nil
	}
	level := slog.LevelWarn
	if f.def.File == "" { // nobody expects an export to go on with another
		level = slog.LevelInfo
	}
	f.log.LogAttrs(ctx, level, "what an earlier run had spooled is discarded",
		slog.String("earlier_run", left.header.RunID), slog.Int("windows", len(left.records)), slog.String("reason", err.Error()))
	f.left = nil
	if err := left.discard(); err != nil {
		return err
	}
	f.spool, err = openSpool(f.def.State, f.o.RunID)
	return err
}

// thawSpool gives what the spool's run decided, or an error that says why its
// windows are of no use.
func (f *formRun) thawSpool(left *leftSpool) (*frozen, error) {
	own, err := f.extraction()
	switch {
	case err != nil:
		return nil, err
	case f.o.Full:
		return nil, errors.New("everything is to be read anew")
	case left.header.Fingerprint != own:
		return nil, errors.New("the definition, or one of its outputs, has changed since")
	case f.frozen != nil && left.header.RunID != f.runID:
		return nil, fmt.Errorf("the destinations hold what another run left, %s", f.runID)
	}
	if left.dropOlder(f.o.Now(), f.o.Resume.Within); len(left.records) == 0 && f.tooOld(left.header.OpenedAt) {
		return nil, fmt.Errorf("it was read more than %s ago", f.o.Resume.Within)
	}
	for path, base := range f.bases() {
		if base.version != left.header.Bases[path] && base.attempt != left.header.Attempt {
			return nil, fmt.Errorf("%s has changed since", path)
		}
	}
	z := &frozen{}
	if err := json.Unmarshal(left.header.Body, z); err != nil {
		return nil, err
	}
	if z.Full && f.frozen == nil && len(f.datasets()) > 0 {
		return nil, errors.New("it was to replace whole datasets")
	}
	if f.dateless || z.Dateless {
		return nil, errLeftDatesOut
	}
	return z, z.check()
}

// takeDecisions takes over what the spool's run had decided of the schema and
// how it read; its windows are those that the plan takes in.
func (f *formRun) takeDecisions(ctx context.Context, z *frozen) {
	if f.frozen != nil {
		return // the journal says the same
	}
	f.spooled, f.labels = z, z.Labels
	f.report.Continued = f.left.header.RunID
	f.settled = earlier(f.settled, z.Settled.Time)
	f.log.LogAttrs(ctx, slog.LevelInfo, "going on with what an earlier run had spooled",
		slog.String("earlier_run", f.left.header.RunID), slog.Int("windows", len(f.left.records)),
		slog.Duration("opened_ago", age(f.o.Now(), f.left.header.OpenedAt)))
}

// decided is what an earlier run decided that this one goes on with, nil where
// it begins anew.
func (f *formRun) decided() *frozen {
	if f.frozen != nil {
		return f.frozen
	}
	return f.spooled
}

// base is what an output held when a run began: its manifest's version, and the
// process's own run that wrote it.
type base struct{ version, attempt string }

// bases are those of the live outputs by their paths.
func (f *formRun) bases() map[string]base {
	bases := map[string]base{}
	for _, t := range f.live() {
		var b base
		m, version := manifestOf(t.out)
		if b.version = version; m != nil {
			b.attempt = cmp.Or(m.Attempt, m.RunID)
		}
		bases[t.report.Path] = b
	}
	return bases
}

// extraction is equal for definitions that read equal windows of equal
// results and write the same outputs.
func (f *formRun) extraction() (string, error) {
	e := f.def.Extract
	outputs := make([]spooledOutput, len(f.def.Outputs))
	for i, out := range f.def.Outputs {
		outputs[i] = spooledOutput{Path: out.Path, Format: out.Format, Compression: out.Compression, Partition: out.Partition, Profile: out.Profile, Explode: out.Explode.String()}
		if out.S3 != nil {
			outputs[i].Endpoint = out.S3.Endpoint
		}
	}
	data, err := json.Marshal(struct {
		Version                  int
		BaseURL, Account, Zone   string
		View, Search, Names      string
		CustomLabels, Partitions string
		Schema                   *schemas.Schema
		Outputs                  []spooledOutput
	}{
		journalVersion, f.def.Source.BaseURL, f.def.Source.Account, f.def.Source.Zone.String(),
		e.View, e.Search.String(), f.naming(), e.CustomLabels, fmt.Sprint(f.def.FinestUnit()), f.def.Schema, outputs,
	})
	if err != nil {
		return "", err
	}
	return digest(data), nil
}

// spooledOutput is what of an output must be as it was where another run goes
// on from a spool. The path is the definition's, with its placeholders.
type spooledOutput struct {
	Path, Endpoint, Format, Compression, Profile, Explode string
	Partition                                             definition.Partition
}

// keepPlan makes the spool one that can be gone on with before any window is
// read, where the plan has cost more than to count once.
func (f *formRun) keepPlan(ctx context.Context) error {
	if f.decided() != nil || f.plan.Requests < costlyPlan {
		return nil
	}
	f.noted.Store(true)
	return f.beginSpool(ctx)
}

// costlyPlan is how many requests a plan must have cost to be kept by itself.
const costlyPlan = 4

// beginSpool makes the spool one that can be gone on with.
func (f *formRun) beginSpool(ctx context.Context) error {
	body, err := f.freeze()
	if err != nil {
		return err
	}
	fingerprint, err := f.extraction()
	if err != nil {
		return err
	}
	h := spoolHeader{
		RunID: f.runID, Attempt: f.o.RunID, OpenedAt: f.o.Now().UTC(), Pipeline: f.def.Name, Form: f.form, Definition: f.def.File,
		Fingerprint: fingerprint, Bases: map[string]string{}, Body: body,
	}
	if f.left != nil {
		h.OpenedAt = f.left.header.OpenedAt
	}
	for path, b := range f.bases() {
		h.Bases[path] = b.version
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return f.spool.begin(h)
}

// note records in the spool what was read of a window. Those that no other
// run's plan has are not worth it.
func (f *formRun) note(w *windowRun) error {
	if w.undated || w.older != nil {
		return nil
	}
	r, err := recordWindow(w)
	if err != nil {
		return err
	}
	if err := f.spool.record(indexRecord{Index: w.index, BegunAt: w.begunAt.UTC(), Window: r}, w.segment); err != nil {
		return err
	}
	f.noted.Store(true)
	f.at(pointRead)
	return nil
}

// keepsSpool tells whether the spool of a run that failed is of use to the
// next one.
func (f *formRun) keepsSpool(err error) bool {
	return f.noted.Load() && f.spool.begun && f.keeps(err) && !errors.Is(err, syscall.EPIPE)
}

// closeSpool ends the run's use of its spool.
func (f *formRun) closeSpool(ctx context.Context, err error) error {
	if err != nil && f.left != nil && f.plan == nil && keepsPrepared(err) {
		return f.left.release() // it came to nothing
	}
	keep := f.keepsSpool(err)
	f.tellKept(ctx, err, keep)
	return f.spool.close(keep)
}

// planOnwards divides the range so that the windows that an earlier run
// planned stay as far as they lie in it, and plans what they leave.
func (f *formRun) planOnwards(ctx context.Context, z *frozen) (*extract.Plan, error) {
	old, err := z.plan()
	if err != nil {
		return nil, err
	}
	// What was counted too long ago is counted again, but for windows that were read since.
	stale, read := f.tooOld(f.left.header.OpenedAt), map[extract.Window]bool{}
	for _, r := range f.left.records {
		read[spanOf(r.Range)] = true
	}
	plan := &extract.Plan{Range: f.planRange(f.rng), Groups: slices.Clone(old.Groups), Total: old.Total}
	for _, p := range old.Windows {
		if f.takes(p.Window) && (!stale || read[p.Window]) {
			plan.Windows = append(plan.Windows, p)
		} else {
			plan.Total = extract.Unknown
		}
	}
	for _, gap := range gaps(f.rng, plan.Windows) {
		more, err := f.newPlan(ctx, gap)
		if err != nil {
			return nil, err
		}
		for _, p := range more.Windows {
			p.Group += len(plan.Groups)
			plan.Windows = append(plan.Windows, p)
		}
		plan.Groups = append(plan.Groups, more.Groups...)
		plan.Requests += more.Requests
		if plan.Total == extract.Unknown || more.Total == extract.Unknown {
			plan.Total = extract.Unknown
		} else {
			plan.Total += more.Total
		}
	}
	slices.SortFunc(plan.Windows, func(a, b extract.Planned) int { return a.Window.From.Compare(b.Window.From) })
	return plan, nil
}

// takes tells whether a window lies in the range and on one side of the ends
// of the range that was asked for.
func (f *formRun) takes(w extract.Window) bool {
	inside := func(r extract.Window) bool {
		return (r.From.IsZero() || !w.From.IsZero() && !w.From.Before(r.From)) && !w.To.After(r.To)
	}
	outside := !f.own.From.IsZero() && !w.To.After(f.own.From) || !w.From.IsZero() && !w.From.Before(f.own.To)
	return inside(f.rng) && (outside || inside(f.own))
}

// gaps are the spans of a range that windows, in order of time, leave free.
func gaps(rng extract.Window, windows []extract.Planned) []extract.Window {
	var free []extract.Window
	at, begun := rng.From, false
	for _, p := range windows {
		w := p.Window
		if w.From.After(at) {
			free = append(free, extract.Window{From: at, To: w.From})
		}
		at, begun = w.To, true
	}
	if !begun || at.Before(rng.To) {
		free = append(free, extract.Window{From: at, To: rng.To})
	}
	return free
}

// spooledWindows are the windows of the plan that the spool holds. Records of
// others are removed.
func (f *formRun) spooledWindows() (map[*windowRun]spooledWindow, error) {
	if f.left == nil {
		return nil, nil
	}
	byRange := make(map[extract.Window]*windowRun, len(f.windows))
	for _, w := range f.windows {
		byRange[w.planned.Window] = w
	}
	taken := make(map[*windowRun]spooledWindow, len(f.left.records))
	for _, r := range f.left.records {
		w := byRange[spanOf(r.Range)]
		if _, twice := taken[w]; w == nil || twice || w.planned.Count == 0 {
			if err := f.dropSpooled(r); err != nil {
				return nil, err
			}
			continue
		}
		taken[w] = r
	}
	f.left.records = nil // they hold the ids of all windows
	return taken, nil
}

func (f *formRun) dropSpooled(r spooledWindow) error {
	if r.segment != nil {
		defer r.segment.remove()
	}
	return f.spool.forget(r.index)
}

// newer tells which of two readings of a window was made later: by the time of
// the run, then by its number in it.
func newer(a, b reading) bool {
	return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.number, b.number)) > 0
}
