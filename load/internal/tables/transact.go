package tables

import (
	"context"
	"errors"
	"sync"

	"github.com/formetl/formetl/load"
)

// Transaction is what lies at the destination within a transaction. Removals and commits are kept until
// something else is done. Then one statement removes the rows of all superseded parts, and
// one moves those of all new ones.
type Transaction struct {
	Session *Session // in which the transaction was begun
	Staging Staging

	mu      sync.Mutex
	failure error // what failed once fails the whole transaction
	removed []string
	commits []load.Prepared
}

var _ load.Objects = (*Transaction)(nil)

// Finish does what is left to do before the transaction is committed.
func (t *Transaction) Finish(ctx context.Context) error {
	return t.do(ctx, func(*Session) error { return nil })
}

// do calls what needs the database, after what came before.
func (t *Transaction) do(ctx context.Context, what func(s *Session) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure != nil {
		return t.failure
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t.failure = t.flush(ctx)
	if t.failure != nil {
		return t.failure
	}
	return what(t.Session)
}

// flush does the removals and commits that were kept.
func (t *Transaction) flush(ctx context.Context) error {
	if len(t.removed)+len(t.commits) == 0 {
		return nil
	}
	err := t.Session.replace(ctx, t.Staging, t.removed, t.commits)
	t.removed, t.commits = nil, nil
	return err
}

// Stage is refused: what a transaction commits was staged before it.
func (t *Transaction) Stage(context.Context, string, string) (load.Upload, error) {
	return nil, errors.New("nothing is staged within a transaction: this is a bug in formetl")
}

// Commit notes that a prepared object becomes visible with the transaction.
func (t *Transaction) Commit(_ context.Context, p load.Prepared) error {
	if err := t.Staging.CheckName(p); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commits = append(t.commits, p)
	return t.failure
}

// Abort removes a prepared object with the transaction.
func (t *Transaction) Abort(ctx context.Context, p load.Prepared) error {
	if err := t.Staging.CheckName(p); err != nil {
		return err
	}
	return t.do(ctx, func(s *Session) error { return t.Staging.Drop(ctx, s, p) })
}

// Check tells whether a prepared object is staged or committed.
func (t *Transaction) Check(ctx context.Context, p load.Prepared) error {
	if err := t.Staging.CheckName(p); err != nil {
		return err
	}
	return t.do(ctx, func(s *Session) error { return t.Staging.Check(ctx, s, p) })
}

// Get reads an object as the transaction sees it.
func (t *Transaction) Get(ctx context.Context, name string) (data []byte, version string, err error) {
	if err := load.CheckName(name); err != nil {
		return nil, "", err
	}
	err = t.do(ctx, func(s *Session) error {
		data, version, err = s.Get(ctx, name)
		return err
	})
	return data, version, err
}

// Put writes an object with the transaction.
func (t *Transaction) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	return t.do(ctx, func(s *Session) error { return s.Put(ctx, name, data, version) })
}

// Delete removes an object with the transaction.
func (t *Transaction) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	t.mu.Lock()
	kept := len(t.commits) == 0
	if kept {
		t.removed = append(t.removed, name)
	}
	failure := t.failure
	t.mu.Unlock()
	if kept {
		return failure
	}
	return t.do(ctx, func(s *Session) error { return s.Remove(ctx, name) })
}

// List lists the objects as the transaction sees them.
func (t *Transaction) List(ctx context.Context, prefix string) (objects []load.Object, err error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	err = t.do(ctx, func(s *Session) error {
		objects, err = s.List(ctx, prefix)
		return err
	})
	return objects, err
}
