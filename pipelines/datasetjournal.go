package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
)

// readJournal reads what a run left that ended early. A journal that cannot
// be read is removed: its run is read again.
func (o *datasetOutput) readJournal(ctx context.Context) error {
	var err error
	o.left, o.records, err = load.ReadJournal(ctx, o.dest)
	if errors.Is(err, load.ErrNotExist) {
		o.left = nil
		return nil
	}
	if broken, ok := errors.AsType[*load.JournalError](err); ok {
		o.f.log.LogAttrs(ctx, slog.LevelWarn, "the journal of an earlier run cannot be read and is removed; `formetl clean` removes what its run staged",
			slog.String("path", o.path), slog.String("error", broken.Error()))
		o.left, o.records = nil, nil
		err = load.RemoveJournal(ctx, o.dest)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	return nil
}

// discard removes what a run left that is not gone on with.
func (o *datasetOutput) discard(ctx context.Context, why string) error {
	if o.left == nil || o.finished {
		return nil
	}
	o.f.log.LogAttrs(ctx, slog.LevelWarn, "what an earlier run had prepared is discarded",
		slog.String("path", o.path), slog.String("earlier_run", o.left.RunID), slog.Int("parts", len(o.records)), slog.String("reason", why))
	err := o.drop(ctx, load.PreparedOf(o.records...)...)
	if err == nil {
		o.sweep(ctx, o.left.RunID)
		err = o.left.Close(ctx)
	}
	o.left, o.records = nil, nil
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	return nil
}

// token names the run's journal, "" where it has none.
func (o *datasetOutput) token() string {
	if o.journal == nil {
		return ""
	}
	return o.journal.Token
}

// openJournal opens the run's journal before the first part is recorded.
func (o *datasetOutput) openJournal(ctx context.Context) (*load.Journal, error) {
	o.journaling.Lock()
	defer o.journaling.Unlock()
	if o.journal != nil {
		return o.journal, nil
	}
	body, err := o.f.freeze()
	if err != nil {
		return nil, err
	}
	own, err := o.fingerprint()
	if err != nil {
		return nil, err
	}
	o.f.at(pointJournal)
	o.journal, err = load.OpenJournal(ctx, o.dest, load.JournalHeader{
		RunID: o.f.runID, OpenedAt: o.f.o.Now().UTC(), Base: o.base, Fingerprint: own, Body: body,
	})
	return o.journal, err
}

// record notes a part in the journal once it is prepared.
func (o *datasetOutput) record(ctx context.Context, p *datasetPart) error {
	j, err := o.openJournal(ctx)
	if err != nil {
		return err
	}
	body := partRecord{Columns: p.columns, Undated: p.undated, Results: p.results}
	for _, w := range p.windows {
		r, err := recordWindow(w)
		if err != nil {
			return err
		}
		body.Windows = append(body.Windows, r)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	o.f.at(pointPrepared)
	if err := j.Record(ctx, load.JournalRecord{Number: p.number, Parts: p.prepared, Body: data}); err != nil {
		return err
	}
	p.recorded = true
	o.f.at(pointRecorded)
	return nil
}

// takeOver matches the records of the journal that is gone on with to the
// parts of the frozen plan, and asks the destination whether what they list is
// still there. What is of no use is dropped. It gives the readings of the
// windows by part.
func (o *datasetOutput) takeOver(ctx context.Context) (map[*datasetPart][]reading, error) {
	readings := make(map[*datasetPart][]reading, len(o.records))
	useless := make([]bool, len(o.records))
	var seen seenDictionary
	for i, r := range o.records {
		if r.Number < 0 || r.Number >= len(o.list) {
			useless[i] = true // of a part that the plan does not have: of undated results, for instance
			continue
		}
		p := o.list[r.Number]
		of, body, err := readingsOf(r, p, o.out.Exploded())
		if err != nil {
			o.f.log.LogAttrs(ctx, slog.LevelWarn, "a record of the journal is of no use", slog.String("path", o.path), slog.String("error", err.Error()))
			useless[i] = true
			continue
		}
		for k := range of {
			of[k].pack(&seen)
		}
		readings[p], p.prepared, p.results, p.columns, p.recorded = of, r.Parts, body.Results, body.Columns, true
	}
	if err := o.checkStaged(ctx, useless); err != nil {
		return nil, err
	}
	for i, r := range o.records {
		if !useless[i] {
			continue
		}
		if r.Number >= 0 && r.Number < len(o.list) {
			delete(readings, o.list[r.Number])
			o.list[r.Number].prepared, o.list[r.Number].recorded = nil, false
		}
		if err := o.forget(ctx, r); err != nil {
			return nil, err
		}
	}
	o.records = nil // they hold the ids of all windows
	return readings, nil
}

// checkStaged marks the records of which an object is no longer staged: a
// rule of the bucket removes old uploads, for instance.
func (o *datasetOutput) checkStaged(ctx context.Context, useless []bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i, r := range o.records {
		if useless[i] {
			continue
		}
		group.Go(func() error {
			for _, p := range r.Parts {
				err := o.dest.Check(ctx, p.Prepared)
				if load.NotThere(err) {
					useless[i] = true
					o.f.log.LogAttrs(ctx, slog.LevelWarn, "a prepared part is gone and is read again", slog.String("path", o.path), slog.String("part", p.Part.Path))
					return nil
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// sideBySide is how many objects of a destination are asked for at once.
const sideBySide = 8

// forget drops what a record lists, and then the record.
func (o *datasetOutput) forget(ctx context.Context, r load.JournalRecord) error {
	if err := o.drop(ctx, load.PreparedOf(r)...); err != nil {
		return err
	}
	return o.left.Forget(ctx, r.Number)
}

// giveUp drops a part that was taken over and is not used after all.
func (o *datasetOutput) giveUp(ctx context.Context, p *datasetPart) error {
	r := load.JournalRecord{Number: p.number, Parts: p.prepared}
	p.prepared, p.columns, p.recorded = nil, "", false
	return o.forget(ctx, r)
}

// sweep removes what the run that ended early was staging when it did, besides
// the parts that are kept. It is tidiness and fails nothing: what stays is left
// to `formetl clean`. Leftovers are listed before the holders of leases, as
// load.Sweeper asks for: a run of several forms may still be at others here.
func (o *datasetOutput) sweep(ctx context.Context, run string) {
	sweeper, ok := o.dest.(load.Sweeper)
	if !ok {
		return
	}
	left, err := sweeper.Leftovers(ctx)
	if err == nil && len(left) > 0 {
		var holders []load.ScopedHolder
		holders, err = sweeper.Holders(ctx)
		if slices.ContainsFunc(holders, func(h load.ScopedHolder) bool { return h.RunID == run }) {
			return
		}
	}
	kept := map[string]bool{}
	for _, p := range stagedOf(o.list...) {
		kept[p.Name] = true
	}
	for _, l := range left {
		if _, other := load.ParsePartName(l.Name); other != nil || l.Run != run || kept[l.Name] {
			continue
		}
		if err == nil {
			err = sweeper.Remove(ctx, l)
		}
	}
	if err != nil {
		o.f.log.LogAttrs(ctx, slog.LevelWarn, "what an earlier run was staging could not be removed; `formetl clean` does it",
			slog.String("path", o.path), slog.String("earlier_run", run), slog.String("error", err.Error()))
	}
}

// readingsOf reads what a record knows of its part's windows. exploded tells
// that the part's rows are not one for each result.
func readingsOf(r load.JournalRecord, p *datasetPart, exploded bool) (list []reading, body partRecord, err error) {
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return nil, body, err
	}
	if body.Undated || len(body.Windows) != len(p.windows) {
		return nil, body, fmt.Errorf("record %d is of another part", r.Number)
	}
	var rows int64
	for i, w := range body.Windows {
		if w.Range != wallRange(p.windows[i].planned.Window) {
			return nil, body, fmt.Errorf("record %d is of another part", r.Number)
		}
		one, err := w.reading()
		if err != nil {
			return nil, body, err
		}
		rows += one.stats.Rows
		list = append(list, one)
	}
	if !body.listsAll(r.Parts, rows, exploded) {
		return nil, body, fmt.Errorf("record %d lists other rows than its windows hold", r.Number)
	}
	return list, body, nil
}

// listsAll tells whether objects can be all of a part whose windows gave so
// many results. Of a child output the last results may have no row.
func (r partRecord) listsAll(objects []load.PreparedPart, results int64, exploded bool) bool {
	if exploded && len(r.Results) != len(objects) {
		return false
	}
	for i, object := range objects {
		n := object.Part.Rows
		if exploded {
			n = r.Results[i]
		}
		if n < 0 || n > results {
			return false
		}
		results -= n
	}
	return exploded || results == 0
}

// close ends the output after its commit, or without one. What is prepared
// and recorded stays where another run can go on with it; everything else is
// dropped. A destination that someone else has taken over is left alone.
func (o *datasetOutput) close(ctx context.Context, keep bool) error {
	if o.held() != nil {
		return o.release(ctx)
	}
	keep = keep && o.journal != nil
	dropped := slices.Clone(o.list)
	if keep {
		dropped = slices.DeleteFunc(dropped, func(p *datasetPart) bool { return p.recorded })
		o.f.log.LogAttrs(ctx, slog.LevelInfo, "what is prepared is kept; the next run goes on from there",
			slog.String("path", o.path), slog.Int("parts", len(o.list)-len(dropped)), slog.Int("parts_total", len(o.list)))
	}
	err := load.AbortAll(ctx, o.dest, stagedOf(dropped...)...)
	if o.journal != nil && !keep && err == nil {
		err = o.journal.Close(ctx)
	}
	return errors.Join(err, o.release(ctx))
}
