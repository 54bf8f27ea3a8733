package worker

import (
	"context"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
)

// lingering is how long a worker keeps the lease of a local place between two activities of
// a workflow. It is as long as a lease at a bucket outlives its last renewal.
const lingering = time.Minute

// folders are the leases that this worker holds of local places. A lease there is a file
// lock and so belongs to one process; its activities share it here.
type folders struct {
	mu   sync.Mutex
	held map[string]*folderLease // by root and scope
}

// folder is a local destination whose lease the activities of a workflow share.
type folder struct {
	*local.Destination
	root  string
	lends *folders
}

// folderLease is a lease with the number of its users.
type folderLease struct {
	load.Lease
	holder load.Holder
	users  int
	timer  *time.Timer // gives it back; nil while it is used
}

// Acquire takes the lease, or joins the activities of the same workflow that have it.
func (f folder) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	l, key := f.lends, f.root+"\n"+scope
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held[key]
	switch {
	case held == nil:
		lease, err := f.Destination.Acquire(ctx, scope, h)
		if err != nil {
			return nil, err
		}
		held = &folderLease{Lease: lease, holder: h}
		l.held[key] = held
	case h.Owner == "" || held.holder.Owner != h.Owner:
		return nil, &load.HeldError{Path: key, Holder: held.holder}
	}
	if held.timer != nil {
		held.timer.Stop()
		held.timer = nil
	}
	held.users++
	return &folderUse{lends: l, key: key, lease: held}, nil
}

// folderUse is the use of a lease by one activity.
type folderUse struct {
	lends *folders
	key   string
	lease *folderLease
	once  sync.Once
}

// Lost gives the channel of the lease itself.
func (u *folderUse) Lost() <-chan struct{} { return u.lease.Lost() }

// Release gives the lease back once no other activity uses it.
func (u *folderUse) Release(ctx context.Context) (err error) {
	u.once.Do(func() { err = u.end(ctx, 0) })
	return err
}

// Leave keeps the lease for the next activity of the workflow.
func (u *folderUse) Leave(ctx context.Context) (err error) {
	u.once.Do(func() { err = u.end(ctx, lingering) })
	return err
}

func (u *folderUse) end(ctx context.Context, keep time.Duration) error {
	l := u.lends
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.lease.users--; u.lease.users > 0 {
		return nil
	}
	if keep == 0 {
		delete(l.held, u.key)
		return u.lease.Release(ctx)
	}
	u.lease.timer = time.AfterFunc(keep, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.held[u.key] == u.lease && u.lease.users == 0 {
			delete(l.held, u.key)
			_ = u.lease.Release(context.Background()) // it is a file lock, which ends with the process
		}
	})
	return nil
}
