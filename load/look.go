package load

import "context"

// Found is what lies at one scope of a destination besides committed data.
type Found struct {
	Holder    *Holder    // of the scope's lease, nil if nobody holds it
	Pending   string     // run whose commit is recorded and not finished, "" for none
	Leftovers []Leftover // what Clean would remove
}

// Nothing tells whether Look found neither a holder, nor a recorded commit, nor leftovers.
func (f Found) Nothing() bool {
	return f.Holder == nil && f.Pending == "" && len(f.Leftovers) == 0
}

// Look returns what lies at d besides committed data, and changes nothing. It
// takes no lease, so a run that starts meanwhile is not refused. The scope is
// "" for a dataset and the file's name for a file.
func Look(ctx context.Context, d Destination, scope string) (Found, error) {
	c := &cleaning{d: d, scope: scope, self: nobody}
	f, err := c.find(ctx)
	if err != nil {
		return Found{}, err
	}
	found := Found{Pending: f.pending(scope), Leftovers: f.dead}
	for _, h := range f.holders {
		if h.Scope == scope {
			found.Holder = &h.Holder
		}
	}
	return found, nil
}

// nobody stands for the caller of Look, who holds no lease. It is no run's id.
// It differs from "", which stands for the run of a lease that cannot be read.
const nobody = "-"
