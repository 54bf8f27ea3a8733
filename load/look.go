package load

import (
	"context"
	"fmt"
)

// Found is what lies at one scope of a destination besides what is committed.
type Found struct {
	Holder    *Holder    // of the scope's lease, nil if nobody holds it
	Pending   string     // run whose commit is recorded and not finished, "" if there is none
	Leftovers []Leftover // what Clean would remove
}

// Nothing tells whether no run left anything there, and none is at it.
func (f Found) Nothing() bool {
	return f.Holder == nil && f.Pending == "" && len(f.Leftovers) == 0
}

// Look tells what lies at d besides what is committed, and changes nothing: it
// takes no lease, so that a run that starts meanwhile is not turned away. scope
// is "" for a dataset, a file's name for that file. A destination that cannot
// tell is ErrNoSweep.
func Look(ctx context.Context, d Destination, scope string) (Found, error) {
	sweeper, sweeps := d.(Sweeper)
	if !sweeps {
		return Found{}, fmt.Errorf("cannot look at %s: %w", where(d, scope), ErrNoSweep)
	}
	c := &cleaning{d: d, sweeper: sweeper, scope: scope, self: Holder{RunID: nobody}}
	f, err := c.find(ctx)
	if err != nil {
		return Found{}, err
	}
	found := Found{Pending: f.pending, Leftovers: f.dead}
	for _, h := range f.holders {
		if h.Scope == scope {
			found.Holder = &h.Holder
		}
	}
	return found, nil
}

// nobody is no run's id: whoever looks holds no lease. A lease that cannot be
// read has none, "".
const nobody = "-"
