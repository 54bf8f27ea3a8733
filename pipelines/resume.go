package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// settleJournals decides whether this run goes on with one that ended early:
// then everything is as that one decided it, its range above all, and windows
// that its journals list are not read again. Otherwise what it left is
// removed.
func (f *formRun) settleJournals(ctx context.Context) error {
	var left []*datasetOutput
	for _, d := range f.datasets() {
		if d.left != nil {
			left = append(left, d)
		}
	}
	if len(left) == 0 {
		return nil
	}
	z, err := f.thaw(left)
	if err == nil {
		f.goOn(ctx, left, z)
		return nil
	}
	for _, t := range f.live() {
		d, ok := t.out.(*datasetOutput)
		if !ok {
			continue
		}
		// What is of another definition is not this one's to discard.
		failed := d.fits()
		if failed == nil {
			failed = d.discard(ctx, err.Error())
		}
		if failed == nil {
			continue
		}
		if err := f.setAside(ctx, t, failed); err != nil {
			return err
		}
	}
	return nil
}

// thaw gives what the journals' run decided, or an error that says why this
// run cannot go on with it.
func (f *formRun) thaw(left []*datasetOutput) (*frozen, error) {
	if f.full {
		return nil, errors.New("--full begins anew")
	}
	if f.hasFiles() {
		return nil, errors.New("the definition has single files too, which are made of what lies in the spool")
	}
	j := left[0].left
	for _, d := range left {
		own, err := d.fingerprint()
		switch {
		case err != nil:
			return nil, err
		case d.left.RunID != j.RunID:
			return nil, fmt.Errorf("the outputs are at different runs, %s and %s", j.RunID, d.left.RunID)
		case d.left.Fingerprint != own:
			return nil, errors.New("the definition has changed since")
		case !d.finished && d.left.Base != d.base:
			return nil, errors.New("the dataset has changed since")
		}
	}
	for _, d := range f.datasets() {
		if d.left == nil && (d.manifest == nil || d.manifest.RunID != j.RunID) {
			return nil, fmt.Errorf("%s has no part in it", d.path)
		}
	}
	z := &frozen{}
	if err := json.Unmarshal(j.Body, z); err != nil {
		return nil, err
	}
	if f.dateless || z.Dateless {
		return nil, errLeftDatesOut
	}
	return z, z.check()
}

// goOn takes over what the run that left the journals had decided.
func (f *formRun) goOn(ctx context.Context, left []*datasetOutput, z *frozen) {
	j := left[0].left
	f.frozen, f.runID, f.full = z, j.RunID, z.Full
	f.report.Continued = j.RunID
	f.asked, f.own, f.rng, f.settled = spanOf(z.Asked), spanOf(z.Own), spanOf(z.Range), z.Settled.Time
	f.labels = z.Labels
	if z.Covered != nil {
		covered := spanOf(*z.Covered)
		f.covered = &covered
	}
	for _, t := range f.live() {
		d, ok := t.out.(*datasetOutput)
		switch {
		case !ok:
		case d.left == nil || d.finished: // committed by that run
			f.reportCommitted(t, d.manifest)
			f.ahead = true
		default:
			d.journal = d.left
		}
	}
	f.log.LogAttrs(ctx, slog.LevelInfo, "going on with a run that ended early",
		slog.String("earlier_run", j.RunID), slog.String("range", f.rng.String()),
		slog.Duration("opened_ago", age(f.o.Now(), j.OpenedAt)), slog.Int("parts", len(left[0].records)))
}

// reportCommitted reports an output that the run which is gone on with had
// committed.
func (f *formRun) reportCommitted(t *target, m *load.Manifest) {
	t.committed = true
	t.report.Rows, t.report.Parts = m.Rows, len(m.Parts)
	for _, p := range m.Parts {
		t.report.Bytes += p.Bytes
	}
	verified := m.Verified
	f.report.Verified, f.report.Rejected, f.report.Rows = &verified, m.Rejected, verified.Extracted-m.Rejected
}

// frozenSchema is the schema that the run which is gone on with had inferred.
func (f *formRun) frozenSchema() error {
	z := f.decided()
	columns, err := inferredColumns(z.Inferred)
	if err != nil {
		return err
	}
	f.schema, f.headings = &schemas.Schema{Name: f.form, Columns: columns}, z.Headings
	return nil
}

// takeOver takes the windows over that the spool holds or the journals list. A
// window that is not in the spool counts as read where every output holds it,
// from the same reading, in a part all of whose windows are so.
func (f *formRun) takeOver(ctx context.Context) error {
	if f.decided() == nil {
		return nil
	}
	spooled, err := f.spooledWindows()
	if err != nil {
		return err
	}
	c := &common{}
	if err := f.readRecords(ctx, c); err != nil {
		return err
	}
	if err := f.choose(c, spooled); err != nil {
		return err
	}
	if err := f.giveUpParts(ctx, c); err != nil {
		return err
	}
	f.takeChosen(c)
	return nil
}

// readRecords reads the journals that this run goes on with.
func (f *formRun) readRecords(ctx context.Context, c *common) error {
	for _, t := range f.live() {
		d, ok := t.out.(*datasetOutput)
		if !ok || f.frozen == nil {
			continue
		}
		readings, err := d.takeOver(ctx)
		if err == nil {
			c.targets, c.sets, c.taken = append(c.targets, t), append(c.sets, d), append(c.taken, readings)
			continue
		}
		if err := f.setAside(ctx, t, fmt.Errorf("%s: %w", d.path, err)); err != nil {
			return err
		}
	}
	return nil
}

// giveUpParts drops the parts of the journals that do not stay as they were
// prepared.
func (f *formRun) giveUpParts(ctx context.Context, c *common) error {
	for i, d := range c.sets {
		for p := range c.taken[i] {
			if c.prepared(i, p) {
				continue
			}
			if err := d.giveUp(ctx, p); err != nil {
				if err := f.setAside(ctx, c.targets[i], fmt.Errorf("%s: %w", d.path, err)); err != nil {
					return err
				}
				break
			}
		}
		d.sweep(ctx, f.runID)
	}
	return nil
}

// takeChosen makes the chosen readings those of their windows.
func (f *formRun) takeChosen(c *common) {
	rows := int64(0)
	for w, r := range c.chosen {
		w.take(r, &f.seen)
		if s, ok := c.spooled[w]; ok {
			w.segment, w.index, w.begunAt = s.segment, s.index, s.begunAt
		}
		f.reads, f.rejects, rows = max(f.reads, r.number), f.rejects+r.stats.Rejected, rows+w.extracted()
	}
	for _, d := range c.sets {
		for _, p := range d.list {
			if p.recorded {
				p.reading, _ = f.latest(p.windows)
			}
		}
	}
	f.report.Kept = len(c.chosen)
	f.progress(rows, false)
}

// take notes what an earlier run read of the window. Its results are in
// prepared parts and not in the spool. seen is the run's dictionary: the
// reading is in another, with what belongs to windows that were not chosen.
func (w *windowRun) take(r reading, seen *seenDictionary) {
	w.seen = seen.pack(r.seen.unpack())
	w.ids, w.stats, w.rejects, w.replaced = r.ids, r.stats, r.rejects, r.replaced
	w.done, w.readAt, w.attempt = true, r.number, r.attempt
}

// spooled tells whether the window's rows are in the spool, or it has none.
func (w *windowRun) spooled() bool { return w.segment != nil || w.stats.Rows == 0 }

// outdated are the windows that must be read again because a part that was
// taken over lacks a column that turned up since.
func (f *formRun) outdated() ([]*windowRun, error) {
	var windows []*windowRun
	for _, d := range f.datasets() {
		columns, err := d.shown(f.windows, d.manifest)
		if err != nil {
			continue // it cannot be committed, and says so then
		}
		want, err := columnsDigest(columns, f.schema.HMACKey)
		if err != nil {
			return nil, err
		}
		for _, p := range d.list {
			if len(p.prepared) > 0 && p.columns != want {
				windows = append(windows, unspooled(p.windows)...)
			}
		}
	}
	return unique(windows), nil
}

func unspooled(windows []*windowRun) []*windowRun {
	var out []*windowRun
	for _, w := range windows {
		if !w.spooled() {
			out = append(out, w)
		}
	}
	return out
}

// withMates adds to windows that are to be read again those that share a part
// with them and are not in the spool: the part is encoded anew as a whole.
func (f *formRun) withMates(windows []*windowRun) []*windowRun {
	all := unique(windows)
	for i := 0; i < len(all); i++ {
		for _, d := range f.datasets() {
			if p := d.parts[all[i]]; p != nil {
				all = unique(append(all, unspooled(p.windows)...))
			}
		}
	}
	return all
}

func unique(windows []*windowRun) []*windowRun {
	seen := make(map[*windowRun]bool, len(windows))
	var out []*windowRun
	for _, w := range windows {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// settle brings what was read to agree with itself, with the service's counts
// and with the columns of all parts.
func (f *formRun) settle(ctx context.Context) error {
	lacking, err := f.outdated()
	if err != nil {
		return err
	}
	for {
		if len(lacking) > 0 {
			if err := f.readAgain(ctx, lacking, "a column turned up that its part does not have"); err != nil {
				return err
			}
		}
		if err := f.settleDuplicates(ctx); err != nil {
			return err
		}
		if err := f.readOlder(ctx); err != nil {
			return err
		}
		if err := f.verify(ctx); err != nil {
			return err
		}
		if lacking, err = f.outdated(); err != nil {
			return err
		}
		if len(lacking) == 0 && f.freshIDs().IsEmpty() {
			return nil
		}
	}
}

// keepsPrepared tells whether another run can go on after an error: nothing is
// wrong with what was read so far. Where the data were at fault it would meet the
// same again, and where another run committed it is out of date.
func keepsPrepared(err error) bool {
	return !errors.Is(err, load.ErrConflict) && !DataAtFault(err)
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// remainder are the runs that are left to do after this one, which went on
// with another's range: what the definition's own range holds beyond that one.
// They look for results that moved on meanwhile as every run does, see older.go.
func (f *formRun) remainder() ([]*formRun, error) {
	own, err := rangeOf(f.def, f.o)
	if err != nil {
		return nil, err
	}
	since := f.watermarkBefore()
	if askedOf(f.def, f.o) == (extract.Window{}) && f.asked != (extract.Window{}) && since.IsZero() {
		return []*formRun{f.follow(nil)}, nil // results without a date belong to it too
	}
	if !since.IsZero() && f.o.From.IsZero() {
		own.From = sinceOf(f.def.Extract, since, own.To)
	}
	if f.ahead && slices.ContainsFunc(f.windows, func(w *windowRun) bool { return !w.undated && w.attempt == f.o.RunID }) {
		return []*formRun{f.follow(&own)}, nil // an output that was committed before lacks what was read since
	}
	var rest []*formRun
	for _, w := range beyond(own, f.done()) {
		rest = append(rest, f.follow(&w))
	}
	return rest, nil
}

// done is what this run committed, and those that it follows on.
func (f *formRun) done() extract.Window {
	c := f.covered
	if c == nil || !c.From.IsZero() && f.own.To.Before(c.From) || !f.own.From.IsZero() && c.To.Before(f.own.From) {
		return f.own
	}
	return joined(*c, f.own)
}

// watermarkBefore is the least watermark of the datasets when this run began,
// zero where runs do not go on from it.
func (f *formRun) watermarkBefore() time.Time {
	if !f.def.Extract.Incremental {
		return time.Time{}
	}
	var manifests []*load.Manifest
	for _, t := range f.targets {
		if d, ok := t.out.(*datasetOutput); ok {
			manifests = append(manifests, d.manifest)
		}
	}
	return leastWatermark(manifests)
}

// follow is a run that follows on this one, of a given range or of the whole
// one. It has an id of its own: this run's names what was just committed.
func (f *formRun) follow(given *extract.Window) *formRun {
	o := f.o
	o.RunID = NewRunID(o.Now())
	next := newFormRun(f.def, o, f.client, f.form)
	done := f.done()
	next.given, next.covered, next.hold = given, &done, f.settled
	return next
}
