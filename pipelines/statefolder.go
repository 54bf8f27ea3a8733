package pipelines

import (
	"context"
	"errors"
	"time"

	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// OpenState returns the state of a definition, which is o.State if that is open already. It
// sends no request to a bucket yet.
func OpenState(ctx context.Context, def *definition.Definition, o Options) (checkpoint.State, error) {
	if o.State.Destination != nil {
		return o.State, nil
	}
	dest, err := o.BuiltIn.State(ctx, def.State, def.StateS3)
	s := checkpoint.NewState(dest, def.State)
	s.Log = o.Logger
	return s, s.Fail(err)
}

// BudgetUse returns how much of the budget of a definition's account is booked.
func BudgetUse(ctx context.Context, def *definition.Definition, o Options, now time.Time) (Booked, error) {
	state, err := OpenState(ctx, def, o)
	if err != nil {
		return Booked{}, err
	}
	return readBudget(ctx, def, state, now)
}

// CheckpointKey returns the key of a form's checkpoint. It depends on the pipeline,
// the form and the paths of the outputs.
func CheckpointKey(def *definition.Definition, form string) string {
	paths := make([]string, len(def.Outputs))
	for i, out := range def.Outputs {
		paths[i] = out.Path
	}
	return checkpoint.Key(def.Name, form, paths)
}

// Checkpoints returns the checkpoints of forms that earlier runs of the definition left and
// that no run holds, oldest first.
func Checkpoints(ctx context.Context, def *definition.Definition, o Options, forms []string) ([]checkpoint.Unfinished, error) {
	state, err := OpenState(ctx, def, o)
	if err != nil {
		return nil, err
	}
	return checkpoint.FindUnfinished(ctx, state, def.Name, forms...)
}

// DiscardCheckpoints removes the checkpoints of forms that earlier runs left, and
// returns the checkpoints that it removed. A checkpoint that a run has taken meanwhile stays.
func DiscardCheckpoints(ctx context.Context, def *definition.Definition, o Options, forms []string) (discarded []checkpoint.Unfinished, err error) {
	left, err := Checkpoints(ctx, def, o, forms)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		gone, failed := l.Discard(ctx, o.Job(def, l.Form).Holder())
		if err = errors.Join(err, failed); gone {
			discarded = append(discarded, l)
		}
	}
	return discarded, err
}
