package load

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// CleanOptions changes what Clean does.
type CleanOptions struct {
	// DryRun only reports what Clean would do. It takes no lease, so a run that
	// starts meanwhile is not refused.
	DryRun bool
	// Unlisted also removes the parts that the dataset's manifest does not
	// list. A dataset without a manifest loses all its parts. If Unlisted is
	// false, such parts stay and are reported in Kept.
	Unlisted bool
}

// Cleaned is what Clean found at one scope of a destination.
type Cleaned struct {
	Removed []Leftover // leftovers of dead runs; in a dry run, those to be removed
	Kept    []Kept     // leftovers that may still be needed
	// Recovery is the recorded commit that Clean finished or rolled back. A dry
	// run only names it. RunID is "" if no commit was recorded.
	Recovery Recovery
}

// Clean removes what dead runs left at d, and nothing else. The scope is "" for a dataset
// and the file's name for a single file.
//
// Clean takes the lease of the scope in the name of h. If a live run holds it, the error is a
// *HeldError and nothing is touched. Recover then finishes a commit that is recorded at the
// scope, because its staged objects are needed, or takes it back. Last, Clean lists the
// objects of the scope and removes those that neither a live run, nor the manifest, nor a
// recorded commit needs: see find. Where there is nothing to do it takes no lease, because a
// lease would create the folder of a destination that was never written to.
//
// Before parts are removed, _SUCCESS is removed, and afterwards it is written anew with other
// bytes, so that readers that find parts by a glob notice.
//
// Clean stops when it loses the lease, because another run holds it then. If one leftover
// cannot be removed, the other leftovers still are, and Clean can be called again.
func Clean(ctx context.Context, d Destination, scope string, h Holder, o CleanOptions) (done Cleaned, err error) {
	f, err := find(ctx, d, scope, h.RunID, o.Unlisted)
	switch {
	case err != nil:
		return Cleaned{}, err
	case f.Holder != nil:
		return Cleaned{}, &HeldError{Path: where(d, scope), Holder: *f.Holder}
	case o.DryRun, f.Nothing():
		return Cleaned{Removed: f.Leftovers, Kept: f.Kept, Recovery: Recovery{RunID: f.Pending}}, nil
	}
	lease, err := d.Acquire(ctx, scope, h)
	if err != nil {
		return Cleaned{}, err
	}
	defer func() { err = errors.Join(err, lease.Release(context.WithoutCancel(ctx))) }()
	held := func() error { return StillHeld(lease, where(d, scope)) }
	if done.Recovery, err = Recover(ctx, d, scope, func(Step) error { return held() }, true); err != nil {
		return done, err
	}
	if f, err = find(ctx, d, scope, h.RunID, o.Unlisted); err != nil {
		return done, err
	}
	done.Kept = f.Kept
	parts := slices.ContainsFunc(f.Leftovers, func(l Leftover) bool { return l.Kind == UnlistedPart })
	if parts {
		if err := held(); err != nil {
			return done, err
		}
		if err := d.Delete(ctx, SuccessName); err != nil {
			return done, err
		}
	}
	failures := sideBySide(ctx, f.Leftovers, func(ctx context.Context, l Leftover) error {
		if err := held(); err != nil {
			return err
		}
		return remove(ctx, d, l)
	})
	for i, l := range f.Leftovers {
		if failures[i] == nil {
			done.Removed = append(done.Removed, l)
		}
	}
	switch {
	case ctx.Err() != nil:
		return done, context.Cause(ctx) // one cause in place of an error for each leftover
	case held() != nil:
		return done, held()
	}
	if err := errors.Join(failures...); err != nil || !parts {
		return done, err
	}
	m, _, err := ReadManifest(ctx, d, ManifestName)
	if errors.Is(err, ErrNotExist) {
		return done, nil // a dataset without a manifest gets no _SUCCESS
	}
	if err != nil {
		return done, err
	}
	return done, d.Put(ctx, SuccessName, []byte(m.RunID+"\ncleaned by "+h.RunID+"\n"), AnyVersion)
}

// DropStaged removes the objects that dead runs had staged for a scope. self is the run that
// holds the scope's lease and has finished the scope's recorded commit.
func DropStaged(ctx context.Context, d Destination, scope, self string, runs ...string) error {
	f, err := find(ctx, d, scope, self, false)
	if err != nil {
		return err
	}
	staged := slices.DeleteFunc(f.Leftovers, func(l Leftover) bool {
		return l.Staged == "" || l.Run == "" || !slices.Contains(runs, l.Run) || !ofScope(l.Name, scope)
	})
	return first(ctx, sideBySide(ctx, staged, func(ctx context.Context, l Leftover) error { return remove(ctx, d, l) }))
}

func remove(ctx context.Context, d Destination, l Leftover) (err error) {
	if l.Staged != "" {
		err = d.Abort(ctx, Prepared{Name: l.Name, Staged: l.Staged})
	} else {
		err = d.Delete(ctx, l.Name)
	}
	if err != nil {
		return fmt.Errorf("cannot remove the %s %s: %w", l.Kind, l.Path, err)
	}
	return nil
}

// AbortAll aborts prepared objects, several at once. If one fails, the others are aborted all
// the same, and the first failure is returned. After ctx ends AbortAll begins no further
// object.
func AbortAll(ctx context.Context, d Stager, prepared ...Prepared) error {
	failures := slices.DeleteFunc(sideBySide(ctx, prepared, d.Abort), NotThere) // a damaged record lists any name
	return first(ctx, failures)
}

// first returns one error for all failures, nil for none.
func first(ctx context.Context, failures []error) error {
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
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

// SideBySide is how many objects of a destination are handled at once. There
// may be thousands of objects, and each request to a store takes time.
const SideBySide = 8

// sideBySide calls do for each item, SideBySide items at once, and returns the errors of all
// calls in the items' order. After ctx ends it begins no further item.
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
	_ = group.Wait() // always nil: each item's error is kept in failures
	return failures
}
