package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
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
		return nil, errors.New("the definition has single files too, which hold one range whole")
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
	if len(z.Earlier) > 0 {
		ids, err := readIDs(z.Earlier)
		if err != nil {
			return nil, err
		}
		f.earlier = ids
	}
	_, err := z.plan()
	return z, err
}

// goOn takes over what the run that left the journals had decided.
func (f *formRun) goOn(ctx context.Context, left []*datasetOutput, z *frozen) {
	j := left[0].left
	f.frozen, f.runID, f.full = z, j.RunID, z.Full
	f.report.Continued = j.RunID
	f.asked, f.own, f.rng, f.settled = spanOf(z.Asked), spanOf(z.Own), spanOf(z.Range), z.Settled.Time
	f.labels = z.Labels
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
	columns, err := inferredColumns(f.frozen.Inferred)
	if err != nil {
		return err
	}
	f.schema, f.headings = &schemas.Schema{Name: f.form, Columns: columns}, f.frozen.Headings
	return nil
}

// takeOver takes the windows over that the journals list. A window counts as
// read where every output holds it, from the same reading, in a part all of
// whose windows are so.
func (f *formRun) takeOver(ctx context.Context) error {
	if f.frozen == nil {
		return nil
	}
	var targets []*target
	var sets []*datasetOutput
	var taken []map[*datasetPart][]reading
	for _, t := range f.live() {
		d, ok := t.out.(*datasetOutput)
		if !ok {
			continue
		}
		readings, err := d.takeOver(ctx)
		if err == nil {
			targets, sets, taken = append(targets, t), append(sets, d), append(taken, readings)
			continue
		}
		if err := f.setAside(ctx, t, fmt.Errorf("%s: %w", d.path, err)); err != nil {
			return err
		}
	}
	common := commonReadings(sets, taken)
	for i, d := range sets {
		for p := range taken[i] {
			if allIn(p.windows, common) {
				continue
			}
			if err := d.giveUp(ctx, p); err != nil {
				if err := f.setAside(ctx, targets[i], fmt.Errorf("%s: %w", d.path, err)); err != nil {
					return err
				}
				break
			}
		}
		d.sweep(ctx, f.runID)
	}
	rows := int64(0)
	for w, r := range common {
		w.take(r)
		f.reads, f.rejects, rows = max(f.reads, r.number), f.rejects+r.stats.Rejected, rows+w.extracted()
	}
	for _, d := range sets {
		for _, p := range d.list {
			if p.recorded {
				p.reading, _ = f.latest(p.windows)
			}
		}
	}
	f.report.Kept = len(common)
	f.progress(rows, false)
	return nil
}

// commonReadings are the windows that can be taken over, with their readings.
func commonReadings(sets []*datasetOutput, taken []map[*datasetPart][]reading) map[*windowRun]reading {
	common := map[*windowRun]reading{}
	votes := map[*windowRun]int{}
	for i := range sets {
		for p, list := range taken[i] {
			for k, w := range p.windows {
				if r, ok := common[w]; !ok || r.number == list[k].number && r.attempt == list[k].attempt {
					common[w] = list[k]
					votes[w]++
				}
			}
		}
	}
	for w := range common {
		if votes[w] < len(sets) {
			delete(common, w)
		}
	}
	dropDoubles(common)
	for removed := true; removed; { // a part is taken over whole, in every output
		removed = false
		for _, d := range sets {
			for _, p := range d.list {
				if allIn(p.windows, common) {
					continue
				}
				for _, w := range p.windows {
					_, there := common[w]
					removed = removed || there
					delete(common, w)
				}
			}
		}
	}
	return common
}

// dropDoubles leaves out readings that share ids with others: which of two
// windows holds a result now, only another reading can tell.
func dropDoubles(common map[*windowRun]reading) {
	seen, twice := roaring64.New(), roaring64.New()
	for _, r := range common {
		twice.Or(roaring64.And(seen, r.ids))
		seen.Or(r.ids)
	}
	if twice.IsEmpty() {
		return
	}
	for w, r := range common {
		if r.ids.Intersects(twice) {
			delete(common, w)
		}
	}
}

func allIn(windows []*windowRun, common map[*windowRun]reading) bool {
	for _, w := range windows {
		if _, ok := common[w]; !ok {
			return false
		}
	}
	return true
}

// take notes what an earlier run read of the window. Its results are in
// prepared parts and not in the spool.
func (w *windowRun) take(r reading) {
	w.ids, w.stats, w.rejects, w.replaced = r.ids, r.stats, r.rejects, r.replaced
	w.done, w.readAt, w.attempt = true, r.number, r.attempt
}

// spooled tells whether the window's rows are in the spool, or it has none.
func (w *windowRun) spooled() bool { return w.segment != nil || w.stats.Rows == 0 }

// outdated are the windows that must be read again because a part that was
// taken over lacks a column that turned up since.
func (f *formRun) outdated() ([]*windowRun, error) {
	want, err := columnsDigest(f.columns(f.windows))
	if err != nil {
		return nil, err
	}
	var windows []*windowRun
	for _, d := range f.datasets() {
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
		if err := f.verify(ctx); err != nil {
			return err
		}
		if lacking, err = f.outdated(); err != nil {
			return err
		}
		if len(lacking) == 0 {
			return f.checkEarlier()
		}
	}
}

// errMovedOn tells that a result of the run that this one follows on was found
// again: it got a later date meanwhile, and its old part holds it still.
var errMovedOn = errors.New("results moved on from the range of the run before")

// checkEarlier fails with errMovedOn where the dataset would hold a result
// twice.
func (f *formRun) checkEarlier() error {
	if f.earlier == nil {
		return nil
	}
	for _, w := range readWindows(f.windows) {
		if f.earlier.Intersects(w.ids) {
			return errMovedOn
		}
	}
	return nil
}

// keepsPrepared tells whether another run can go on after an error: nothing is
// wrong with what was read so far. Where the data were at fault it would meet the
// same again.
func keepsPrepared(err error) bool {
	return !errors.Is(err, errMovedOn) && !isError[*RejectsError](err) && !isError[*VerifyError](err) && !isError[*DuplicateError](err) &&
		!isError[*transform.ValueError](err) && !isError[*transform.UnknownFieldError](err)
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// remainder are the runs that are left to do after this one, which went on
// with another's range: its own range less that one. Their windows may hold
// results that were read in that range and have a later date by now; so what
// this run committed is told to them, and where that is not known, because
// counts cannot vouch for it either, they read the whole range.
func (f *formRun) remainder() ([]*formRun, error) {
	own, err := rangeOf(f.def, f.o)
	if err != nil {
		return nil, err
	}
	ids := f.committedIDs()
	if askedOf(f.def, f.o) == (extract.Window{}) && f.asked != (extract.Window{}) {
		ids = nil // results without a date belong to it too
	}
	if f.ahead && slices.ContainsFunc(f.windows, func(w *windowRun) bool { return w.attempt == f.o.RunID }) {
		ids = nil // an output that was committed before lacks what was read since
	}
	if ids == nil || !f.verifies() {
		return []*formRun{f.whole()}, nil
	}
	var rest []*formRun
	for _, w := range beyond(own, f.own) {
		next := f.whole()
		next.o.From, next.o.To, next.earlier = w.From, w.To, ids
		rest = append(rest, next)
	}
	return rest, nil
}

// follow tells a run what the one before it committed, besides what that one
// was told; false where that is not known.
func (f *formRun) follow(before *formRun) bool {
	ids := before.committedIDs()
	if ids == nil {
		return false
	}
	ids.Or(before.earlier)
	f.earlier = ids
	return true
}

// whole is a run of the form's own range from the beginning. It has an id of
// its own: this run's names what was just committed.
func (f *formRun) whole() *formRun {
	o := f.o
	o.RunID = NewRunID(o.Now())
	return newFormRun(f.def, o, f.client, f.form)
}

// committedIDs are the ids of all results of the range that this run
// committed, or finished to commit; nil where they are not known.
func (f *formRun) committedIDs() *roaring64.Bitmap {
	ids := roaring64.New()
	for _, w := range readWindows(f.windows) {
		ids.Or(w.ids)
	}
	if len(f.windows) > 0 {
		return ids
	}
	for _, t := range f.targets { // every output was committed by the earlier run
		if d, ok := t.out.(*datasetOutput); ok && d.finished && d.ids != nil {
			return d.ids
		}
	}
	return nil
}
