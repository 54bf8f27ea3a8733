package load

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
)

// ErrNoSweep is a destination that cannot tell what dead runs left there.
var ErrNoSweep = errors.New("the destination cannot tell what dead runs left there")

// CleanOptions says how Clean goes about it.
type CleanOptions struct {
	// DryRun looks and changes nothing: it takes no lease either, so a run that
	// starts meanwhile is not turned away.
	DryRun bool
	// Unlisted removes the parts of the dataset, too, that its manifest does not
	// list: all of them where it has none. Without it they are kept and told.
	Unlisted bool
}

// Cleaned is what Clean found at one scope of a destination.
type Cleaned struct {
	Removed []Leftover // of dead runs; in a dry run those that would be removed
	Kept    []Kept     // may still be needed
	// Others counts what has neither a run's name nor one of the scope: whose it
	// is cannot be told, so it is left alone.
	Others int
	// Recovery is the commit that was recorded and was finished or taken back;
	// in a dry run it is still to be. RunID is "" if there was none.
	Recovery Recovery
	// Journal is the dead run's that was closed, or would be; nil if none was.
	Journal *ClosedJournal
}

// Kept is a leftover that stays.
type Kept struct {
	Leftover
	Why string // such as "run X is alive"
}

// ClosedJournal is a journal that a dead run left.
type ClosedJournal struct {
	RunID string // "" where the journal cannot be read
	Parts int    // prepared parts that it lists
}

// Clean removes what dead runs left at d, and nothing else. scope is "" for a
// dataset, a file's name for that file. h says who cleans.
//
// What it removes is dead, and the order is the proof:
//
//  1. The lease of the scope is taken. A run that is alive there is a
//     *HeldError, and nothing is touched.
//  2. A commit that is recorded there is finished by Recover: what it staged is
//     needed, and a reader may be waiting for it.
//  3. The leftovers are listed, and only then the holders of leases are read. A
//     run takes its lease before it stages anything and keeps it until nothing
//     of it is staged, unless it dies. So whatever was listed and is of no run
//     that holds a lease was left by a dead one; a run that begins later has
//     staged nothing that was listed.
//  4. The records of commits and the journal are read, after the holders: what
//     a run wrote there before it died is there by now. What a recorded commit
//     of another file needs stays, and so does what a dataset's journal lists
//     unless it is the dataset that is cleaned: its next run goes on with it,
//     and may be at it now under the id of the run that died.
//  5. What is left over then and names its run is removed. What names none is
//     removed where it can only be of the scope whose lease is held: an upload
//     by its name, a temporary file where nobody else holds any lease here.
//  6. So are id sets of the dataset that is cleaned which neither its manifest
//     nor a recorded commit needs. They are written by who holds its lease, and
//     only then is a commit recorded that needs them: listed with the leftovers,
//     they were all left by runs that are dead by now or have committed.
//  7. A dataset's journal is closed, and the parts that it lists are aborted
//     also where they were in no listing.
//  8. Where it is asked for, parts that the dataset's manifest does not list are
//     removed. A reader that globs sees by _SUCCESS that something changed.
//
// A lease that is lost meanwhile stops it: the run that has it may go on with
// what a dead one left. One leftover that cannot be removed does not stop the
// others; the journal stays then, and cleaning again is harmless.
func Clean(ctx context.Context, d Destination, scope string, h Holder, o CleanOptions) (Cleaned, error) {
	sweeper, sweeps := d.(Sweeper)
	leaser, leases := d.(Leaser)
	if !sweeps || !leases {
		return Cleaned{}, fmt.Errorf("cannot clean %s: %w", where(d, scope), ErrNoSweep)
	}
	c := &cleaning{d: d, sweeper: sweeper, scope: scope, self: h, unlisted: o.Unlisted}
	if o.DryRun {
		return c.tell(ctx)
	}
	if nothing, err := c.nothing(ctx); nothing || err != nil {
		return Cleaned{}, err
	}
	lease, err := leaser.Acquire(ctx, scope, h)
	if err != nil {
		return Cleaned{}, err
	}
	held, end := c.whileHeld(ctx, lease)
	cleaned, err := c.clean(held)
	if lost, is := errors.AsType[*HeldError](context.Cause(held)); is {
		err = lost // whatever failed, failed for that
	}
	end()
	return cleaned, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
}

// cleaning is one call of Clean.
type cleaning struct {
	d       Destination
	sweeper Sweeper
	scope   string
	self    Holder

	unlisted bool // unlisted parts are removed
}

// nothing tells whether there is nothing at all: then no lease is taken, which
// would make the folder of a destination that was never written to.
func (c *cleaning) nothing(ctx context.Context) (bool, error) {
	left, err := c.sweeper.Leftovers(ctx)
	if err != nil || len(left) > 0 {
		return false, err
	}
	control, err := c.d.List(ctx, ControlFolder+"/")
	if err != nil || len(control) > 0 {
		return false, err
	}
	holders, err := c.sweeper.Holders(ctx)
	if err != nil || len(holders) > 0 {
		return false, err
	}
	sets, err := c.idSets(ctx)
	if err != nil {
		return false, err
	}
	f := &finds{}
	if err := c.findUnlisted(ctx, f); err != nil || len(f.dead)+len(f.kept) > 0 {
		return false, err
	}
	orphans, err := c.orphans(ctx, f, sets)
	return len(orphans) == 0, err
}

// whileHeld is a context that ends when the lease is lost, with a *HeldError
// as its cause. end stops the watch.
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

// clean does the steps that follow the lease.
func (c *cleaning) clean(ctx context.Context) (Cleaned, error) {
	recovery, err := Recover(ctx, c.d, c.scope)
	if err != nil {
		return Cleaned{}, err
	}
	done := Cleaned{Recovery: recovery}
	f, err := c.find(ctx)
	if err == nil {
		err = c.findUnlisted(ctx, f)
	}
	if err != nil {
		return done, err
	}
	done.Kept, done.Others = f.kept, f.others
	if err := c.unmark(ctx, f.dead); err != nil {
		return done, err
	}
	if done.Removed, err = c.remove(ctx, f.dead); err != nil {
		return done, err
	}
	if err := c.mark(ctx, f.dead); err != nil {
		return done, err
	}
	done.Journal = f.closable(c.scope)
	return done, c.closeJournal(ctx, f)
}

// tell is the dry run.
func (c *cleaning) tell(ctx context.Context) (Cleaned, error) {
	f, err := c.find(ctx)
	if err == nil {
		err = c.findUnlisted(ctx, f)
	}
	if err != nil {
		return Cleaned{}, err
	}
	for _, held := range f.holders {
		if held.Scope == c.scope {
			return Cleaned{}, &HeldError{Path: where(c.d, c.scope), Holder: held.Holder}
		}
	}
	told := Cleaned{Removed: f.dead, Kept: f.kept, Others: f.others, Recovery: Recovery{RunID: f.pending}}
	if f.pending == "" { // else the commit closes its journal
		told.Journal = f.closable(c.scope)
	}
	return told, nil
}

// closeJournal ends the journal of the scope, if it is a dead run's, and
// removes what crashes left of others.
func (c *cleaning) closeJournal(ctx context.Context, f *finds) error {
	if c.scope != "" || f.continued {
		return nil
	}
	if f.journal != nil {
		if err := AbortAll(ctx, c.d, PreparedOf(f.records...)...); err != nil {
			return err
		}
		if err := f.journal.Close(ctx); err != nil {
			return err
		}
	}
	return RemoveJournal(ctx, c.d)
}

// remove removes leftovers side by side and gives those that it removed.
func (c *cleaning) remove(ctx context.Context, dead []Leftover) ([]Leftover, error) {
	failures := make([]error, len(dead))
	var group errgroup.Group
	group.SetLimit(SideBySide)
	for i, l := range dead {
		group.Go(func() error {
			failures[i] = c.removeOne(ctx, l)
			return nil
		})
	}
	_ = group.Wait() // the failures are kept apart
	var removed []Leftover
	for i, l := range dead {
		if failures[i] == nil {
			removed = append(removed, l)
		}
	}
	if ctx.Err() != nil {
		return removed, context.Cause(ctx) // one reason, not one for each
	}
	return removed, errors.Join(failures...)
}

func (c *cleaning) removeOne(ctx context.Context, l Leftover) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	remove := c.sweeper.Remove
	if l.Kind == OrphanedIDs || l.Kind == UnlistedPart { // objects like any other: no destination knows of them
		remove = func(ctx context.Context, l Leftover) error { return c.d.Delete(ctx, l.Ref) }
	}
	if err := remove(ctx, l); err != nil {
		return fmt.Errorf("cannot remove the %s %s: %w", l.Kind, l.Path, err)
	}
	return nil
}

// where is a scope's place, for people.
func where(d Destination, scope string) string {
	root := "the destination"
	if s, ok := d.(fmt.Stringer); ok {
		root = s.String()
	}
	if scope == "" {
		return root
	}
	return strings.TrimSuffix(root, "/") + "/" + scope
}
