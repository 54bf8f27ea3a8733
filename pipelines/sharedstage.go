package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// mostShares bounds the shares of a run's parts. Each process reads the records of all
// pieces, to know the columns.
const mostShares = 8

// kept is what ReconcileForm tells the processes that stage, and CommitForm.
type kept struct {
	Shares   int             `json:"shares"`
	Snapshot json.RawMessage `json:"snapshot"`
}

// leaveParts ends the run of ReconcileForm if other processes can stage for it. Shares of
// parts are about as large as groups of windows. A run of one share goes on.
func (f sharedSteps) leaveParts(ctx context.Context) error {
	if !f.shareable(stepReconcile) {
		return nil
	}
	windows := f.snapshot.Windows
	shares := min(mostShares, f.outputs.Parts(f.snapshot), len(f.groups(windows)))
	if shares < 2 {
		return nil
	}
	data, err := json.Marshal(f.snapshot)
	if err != nil {
		return err
	}
	s := f.o.Shared
	if err := f.reader.Checkpoint.PutNote(ctx, checkpoint.NoteSnapshot, s.name, kept{shares, data}); err != nil {
		return err
	}
	f.shares = &SharedPlan{Of: s.name, Shares: shares, Windows: len(windows), Results: reading.Results(windows)}
	return errOver
}

// StageShare stages a share of the parts of the snapshot that ReconcileForm left. An earlier
// try may have done so already. The error wraps checkpoint.ErrNoPlan if another run came
// between. It sends no request.
func StageShare(ctx context.Context, def *definition.Definition, o Options, form string, share int) (err error) {
	o, client, err := o.shared(ctx, def, stepStage, fmt.Sprint(o.Shared.Of, ".s", share))
	if err != nil {
		return err
	}
	defer client.Close()
	f := newFormRun(def, o, client.Fork(), form)
	defer func() { err = f.closed(ctx, err, f.outputs.Close(ctx)) }()
	shares, err := sharedSteps{f}.takeSnapshot(ctx)
	if err != nil {
		return stopped(ctx, err)
	}
	c, name := f.reader.Checkpoint, stagedName(f.o.Shared.Of, share)
	if c.GetNote(ctx, checkpoint.NoteStaged, name, &[]output.StagedPart{}) == nil {
		return nil
	}
	staged, err := f.outputs.StageShare(ctx, f.snapshot, share, shares)
	if err == nil {
		err = f.outputs.LeasesHeld(ctx)
	}
	if err == nil {
		err = c.PutNote(ctx, checkpoint.NoteStaged, name, staged)
	}
	if err != nil {
		return stopped(ctx, unstageable(err))
	}
	f.outputs.LeaveStaged()
	return nil
}

// unstageable gives an error of rows that are damaged as one that wraps checkpoint.ErrNoPlan.
// A run that begins again leaves them out, and reads them anew.
func unstageable(err error) error {
	if errors.Is(err, checkpoint.ErrDamaged) {
		return fmt.Errorf("%w: %w", checkpoint.ErrNoPlan, err)
	}
	return err
}

// stagedName is whose note tells what is staged of a share.
func stagedName(of string, share int) string { return fmt.Sprint(of, "-", share) }

// takeSnapshot joins the run, and takes the snapshot that ReconcileForm left. It returns
// into how many shares the parts are divided.
func (f sharedSteps) takeSnapshot(ctx context.Context) (shares int, err error) {
	var k kept
	found, err := f.join(ctx, checkpoint.NoteSnapshot, &k)
	if err != nil {
		return 0, err
	}
	r := f.reader
	if err := r.SettleSchema(ctx, reading.Start{Kept: f.outputs.Kept, Left: found, Joined: true}); err != nil {
		return 0, err
	}
	f.snapshot, err = reconcile.Restore(ctx, r, k.Snapshot)
	return k.Shares, unstageable(err)
}

// adopt takes the snapshot that ReconcileForm left, and what others have staged of it. The
// commit stages what is missing.
func (f sharedSteps) adopt(ctx context.Context) error {
	shares, err := f.takeSnapshot(ctx)
	if err != nil {
		return err
	}
	verified := f.snapshot.Verified(f.snapshot.Windows, false)
	f.iv, f.reconciler.Windows, f.reconciler.Verified = f.snapshot.Interval, f.snapshot.Windows, &verified
	f.report.Range = load.Span(f.iv.Read.From, f.iv.Read.To)
	var all []output.StagedPart
	for share := range shares {
		var staged []output.StagedPart
		err := f.reader.Checkpoint.GetNote(ctx, checkpoint.NoteStaged, stagedName(f.o.Shared.Of, share), &staged)
		switch {
		case err == nil:
			all = append(all, staged...)
		case !errors.Is(err, load.ErrNotExist) && !errors.Is(err, checkpoint.ErrDamaged):
			return err
		}
	}
	f.outputs.Adopt(all)
	return nil
}
