package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
)

// mostTries is how often a transaction is tried whose connection was lost.
const mostTries = 4

// Transact implements load.Transactor. If the connection is lost, also while the server
// commits, the same is done again: the table's lock waits until the first transaction has
// ended, and then its effects tell whether it was committed.
func (d *Destination) Transact(ctx context.Context, do func(ctx context.Context, d load.Destination) error) error {
	for try := 1; ; try++ {
		cut := false
		err := d.with(ctx, "commit to", "", func(s *session) error {
			err := d.transact(ctx, s, do)
			// What failed by itself may have cancelled what was done beside it.
			final := isOurs(err) || errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrStagedGone)
			cut = err != nil && !final && s.conn.IsClosed()
			return err
		})
		_, away := errors.AsType[*load.TemporaryError](err)
		again := cut || away && try > 1
		if !again || try == mostTries || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(try*try) * 200 * time.Millisecond):
		}
	}
}

// transact does Transact once.
func (d *Destination) transact(ctx context.Context, s *session, do func(ctx context.Context, d load.Destination) error) error {
	if err := d.prepareTables(ctx, s); err != nil {
		return err
	}
	return s.atomically(ctx, func() error {
		if err := s.locks(ctx, committing); err != nil {
			return err
		}
		t := &transaction{d: d, s: s}
		if err := do(ctx, t); err != nil {
			return err
		}
		return t.locked(ctx, true, func() error { return nil })
	})
}

// transaction is the destination within a transaction. Removals and rows to move are kept until
// something else is done, so that one statement removes the rows of all superseded parts, and
// one moves those of all new ones.
type transaction struct {
	d       *Destination
	mu      sync.Mutex
	s       *session
	removed []string
	moved   []stagedRows
}

// locked calls do after the removals that came before and, with all, the moves.
func (t *transaction) locked(ctx context.Context, all bool, do func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(t.removed) > 0 {
		if err := t.s.remove(ctx, t.removed...); err != nil {
			return err
		}
		t.removed = nil
	}
	if all && len(t.moved) > 0 {
		if err := t.s.move(ctx, t.moved); err != nil {
			return err
		}
		t.moved = nil
	}
	return do()
}

// Stage is refused: what a transaction commits was staged before it.
func (t *transaction) Stage(context.Context, string, string) (load.Upload, error) {
	return nil, errors.New("nothing is staged within a transaction: this is a bug in formetl")
}

// Commit notes that a prepared part becomes visible with the transaction.
func (t *transaction) Commit(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	return t.locked(ctx, false, func() error {
		rows, err := t.s.commit(ctx, p)
		if rows != nil {
			t.moved = append(t.moved, *rows)
		}
		return err
	})
}

// Abort removes a prepared object with the transaction.
func (t *transaction) Abort(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	return t.locked(ctx, true, func() error { return t.s.unstage(ctx, p.Staged) })
}

// Check tells whether a prepared object is staged or committed.
func (t *transaction) Check(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	return t.locked(ctx, true, func() error { return t.s.check(ctx, p) })
}

// Get reads an object as the transaction sees it.
func (t *transaction) Get(ctx context.Context, name string) (data []byte, version string, err error) {
	if err := load.CheckName(name); err != nil {
		return nil, "", err
	}
	err = t.locked(ctx, true, func() error {
		data, version, _, err = t.s.get(ctx, name)
		return err
	})
	return data, version, err
}

// Put writes an object with the transaction.
func (t *transaction) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	return t.locked(ctx, true, func() error { return t.s.put(ctx, name, data, version) })
}

// Delete removes an object with the transaction.
func (t *transaction) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	t.mu.Lock()
	moves := len(t.moved) > 0
	if !moves {
		t.removed = append(t.removed, name)
	}
	t.mu.Unlock()
	if !moves {
		return nil
	}
	return t.locked(ctx, true, func() error { return t.s.remove(ctx, name) })
}

// List lists the objects as the transaction sees them.
func (t *transaction) List(ctx context.Context, prefix string) (objects []load.Object, err error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	err = t.locked(ctx, true, func() error {
		objects, err = t.s.list(ctx, prefix)
		return err
	})
	return objects, err
}
