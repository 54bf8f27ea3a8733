package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// AbortAll aborts prepared objects, several at once. A failure does not stop
// the others, and the first failure is returned. After ctx ends AbortAll begins
// no further object.
func AbortAll(ctx context.Context, d Stager, prepared ...Prepared) error {
	failures := slices.DeleteFunc(sideBySide(ctx, prepared, d.Abort), func(err error) bool {
		return err == nil || NotThere(err) // a damaged record may list what is not there
	})
	switch {
	case len(failures) == 0:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(failures) > 1:
		return fmt.Errorf("%w (and %d more)", failures[0], len(failures)-1)
	}
	return failures[0]
}

// sideBySide calls do for each item, SideBySide at once, and returns their
// errors in the same order. After ctx ends it begins no further item.
func sideBySide[T any](ctx context.Context, items []T, do func(context.Context, T) error) []error {
	failures := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(SideBySide)
	for i, item := range items {
		group.Go(func() error {
			if failures[i] = context.Cause(ctx); failures[i] == nil {
				failures[i] = do(ctx, item)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are kept apart
	return failures
}

// DropStaged removes what dead runs had staged for a scope: "" for the parts
// of a dataset, a file's name for that file. The caller holds the scope's lease
// and has finished its commit, so nothing of these runs is needed there. If one of
// them still holds another lease, all of it stays.
func DropStaged(ctx context.Context, d Destination, scope string, runs ...string) error {
	runs = slices.DeleteFunc(slices.Clone(runs), func(run string) bool { return run == "" })
	if len(runs) == 0 {
		return nil
	}
	left, err := d.Leftovers(ctx)
	if err != nil {
		return err
	}
	holders, err := d.Holders(ctx)
	if err != nil {
		return err
	}
	for _, h := range holders {
		if h.RunID == "" || slices.Contains(runs, h.RunID) {
			return nil
		}
	}
	for _, l := range left {
		if !slices.Contains(runs, l.Run) || !ofScope(l.Name, scope) {
			continue
		}
		if err := d.Remove(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// ofScope tells whether an object's final name belongs to the scope: it is the
// file itself, or a part of the dataset.
func ofScope(name, scope string) bool {
	if scope != "" {
		return name == scope
	}
	return strayKind(name) == UnlistedPart
}

// each calls do for each item, SideBySide at once, until one fails. It returns that error.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(SideBySide)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}

// Lingering returns a context that is cancelled only when the time grace has
// passed since ctx ended, so that a request can finish. The caller must call
// the function that it returns, as with context.WithCancel.
func Lingering(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() {
		unwatch()
		cancel(nil)
	}
}

// Grace is how long a run that ends still works at a place that may not answer. Its process may
// end earlier, but the one of a worker may live on.
const Grace = 3 * time.Second

// Pause waits for a time. If ctx ends first, it returns the cause.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
