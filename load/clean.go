package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Kept is a leftover that Clean does not remove, with the reason.
type Kept struct {
	Leftover
	Why string // such as "run X is alive"
}

// Clean removes what dead runs left at d, and nothing else. The scope is "" for a dataset
// and the file's name for a single file. Clean takes the lease in the name of h.
//
// The steps have this order, so that Clean removes nothing that a live run
// needs:
//
//  1. Clean takes the lease of the scope. If a live run holds it, the error is
//     a *HeldError and nothing is touched.
//  2. Recover finishes a commit that is recorded there, because its staged
//     objects are needed, or takes it back.
//  3. What lies there is listed first: leftovers, and a dataset's parts, id sets and
//     dead letters. The holders of leases are read after that. A live run holds its lease
//     from before its first staged object until after its last one. So a listed leftover
//     whose run holds no lease was left by a dead run. A run that begins later has staged
//     nothing that was listed.
//  4. The records of commits are read after the holders, so that no record of a
//     dead run is missed, and the manifest is read last. What a recorded commit of
//     another file needs stays.
//  5. Leftovers of dead runs are removed, and temporary files if nobody else holds a lease.
//  6. Id sets and dead letters are removed if neither the manifest nor a recorded commit
//     needs them. With CleanOptions.Unlisted, so are parts. Only the holder of the lease
//     writes them. After parts were removed, _SUCCESS is written anew, so that readers that
//     find parts by a glob notice.
//
// Clean stops when it loses the lease, because another run holds it then. If
// one leftover cannot be removed, the others still are, and Clean can be called
// again.
func Clean(ctx context.Context, d Destination, scope string, h Holder, o CleanOptions) (Cleaned, error) {
	c := &cleaning{d: d, scope: scope, self: h.RunID, unlisted: o.Unlisted}
	if o.DryRun {
		return c.preview(ctx)
	}
	if nothing, err := c.nothing(ctx); nothing || err != nil {
		return Cleaned{}, err
	}
	lease, err := d.Acquire(ctx, scope, h)
	if err != nil {
		return Cleaned{}, err
	}
	held, end := c.whileHeld(ctx, lease)
	cleaned, err := c.clean(held)
	if lost, is := errors.AsType[*HeldError](context.Cause(held)); is {
		err = lost // the lost lease is the cause of any other error
	}
	end()
	return cleaned, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
}

// cleaning is one call of Clean.
type cleaning struct {
	d     Destination
	scope string
	self  string // id of the run that called Clean

	unlisted bool // unlisted parts are removed
}

// nothing tells whether the destination holds nothing to clean. Clean then
// takes no lease, because a lease would create the folder of a destination that
// was never written to.
func (c *cleaning) nothing(ctx context.Context) (bool, error) {
	control, err := c.d.List(ctx, ControlFolder+"/")
	if err != nil || len(control) > 0 {
		return false, err
	}
	f, err := c.find(ctx)
	return err == nil && len(f.dead)+len(f.kept)+len(f.holders) == 0, err
}

// whileHeld returns a context that is cancelled when the lease is lost, with a
// *HeldError as its cause. The caller must call end.
func (c *cleaning) whileHeld(ctx context.Context, lease Lease) (held context.Context, end func()) {
	held, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lease.Lost():
			cancel(&HeldError{Path: where(c.d, c.scope)})
		case <-held.Done():
		}
	}()
	return held, func() { cancel(nil) }
}

// clean does the steps of Clean that follow the first.
func (c *cleaning) clean(ctx context.Context) (Cleaned, error) {
	recovery, err := Recover(ctx, c.d, c.scope, nil, true)
	if err != nil {
		return Cleaned{}, err
	}
	done := Cleaned{Recovery: recovery}
	f, err := c.find(ctx)
	if err != nil {
		return done, err
	}
	done.Kept = f.kept
	unlisted := slices.ContainsFunc(f.dead, func(l Leftover) bool { return l.Kind == UnlistedPart })
	if unlisted { // readers that glob may be reading these parts
		if err := c.d.Delete(ctx, SuccessName); err != nil {
			return done, err
		}
	}
	if done.Removed, err = c.remove(ctx, f.dead); err != nil {
		return done, err
	}
	if unlisted {
		if err := c.mark(ctx); err != nil {
			return done, err
		}
	}
	return done, nil
}

// preview does a dry run: it reports what clean would do.
func (c *cleaning) preview(ctx context.Context) (Cleaned, error) {
	f, err := c.find(ctx)
	if err != nil {
		return Cleaned{}, err
	}
	if held := f.holder(c.scope); held != nil {
		return Cleaned{}, &HeldError{Path: where(c.d, c.scope), Holder: *held}
	}
	return Cleaned{Removed: f.dead, Kept: f.kept, Recovery: Recovery{RunID: f.records[recordName(c.scope)].run()}}, nil
}

// remove removes leftovers side by side and returns those that it removed.
func (c *cleaning) remove(ctx context.Context, dead []Leftover) ([]Leftover, error) {
	failures := sideBySide(ctx, dead, c.removeOne)
	var removed []Leftover
	for i, l := range dead {
		if failures[i] == nil {
			removed = append(removed, l)
		}
	}
	if ctx.Err() != nil {
		return removed, context.Cause(ctx) // one cause instead of an error for each leftover
	}
	return removed, errors.Join(failures...)
}

func (c *cleaning) removeOne(ctx context.Context, l Leftover) error {
	remove := c.d.Remove
	if strayKind(l.Ref) != "" { // it is an ordinary object, which no Sweeper lists
		remove = func(ctx context.Context, l Leftover) error { return c.d.Delete(ctx, l.Ref) }
	}
	if err := remove(ctx, l); err != nil {
		return fmt.Errorf("cannot remove the %s %s: %w", l.Kind, l.Path, err)
	}
	return nil
}

// mark writes _SUCCESS again after unlisted parts were removed. Its bytes differ from
// before, so that readers notice. A dataset without a manifest gets no _SUCCESS.
func (c *cleaning) mark(ctx context.Context) error {
	m, _, err := ReadManifest(ctx, c.d, ManifestName)
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.d.Put(ctx, SuccessName, []byte(m.RunID+"\ncleaned by "+c.self+"\n"), AnyVersion)
}

// where returns the address of a scope or an object at s, for messages.
func where(s Store, scope string) string {
	root := "the destination"
	if named, ok := s.(fmt.Stringer); ok {
		root = named.String()
	}
	if scope == "" {
		return root
	}
	return strings.TrimSuffix(root, "/") + "/" + scope
}
