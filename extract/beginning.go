package extract

import (
	"context"
	"time"
)

// NeedsBeginning tells whether the range can be divided only if somebody knows where its
// results begin.
func (r Range) NeedsBeginning() bool {
	return r.Uncounted && r.Window.From.IsZero() && (r.Partition != UnitNone || !r.Step.Auto())
}

// Beginning finds a time before which a window without a beginning holds no result, at
// most a month before the first one. It halves the time since Epoch: holds tells whether
// a window holds a result, at one request. It returns the window's end if there is none.
func Beginning(ctx context.Context, w Window, holds func(context.Context, Window) (bool, error)) (time.Time, error) {
	const month = 31 * 24 * time.Hour
	lower, upper := Epoch, w.To
	if some, err := holds(ctx, Window{From: lower, To: upper}); err != nil || !some {
		return upper, err
	}
	for upper.Sub(lower) > month {
		middle, ok := halve(lower, upper)
		if !ok {
			break
		}
		early, err := holds(ctx, Window{From: lower, To: middle})
		if err != nil {
			return time.Time{}, err
		}
		if early {
			upper = middle
		} else {
			lower = middle
		}
	}
	return lower, nil
}
