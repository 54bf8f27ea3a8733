package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// mostTries is how often a transaction is tried whose connection was lost.
const mostTries = 4

// Transact implements load.Transactor. If the connection is lost, also while the server
// commits, the same is done again: the table's lock waits until the first transaction has
// ended, and then its effects tell whether it was committed.
func (d *Destination) Transact(ctx context.Context, do func(ctx context.Context, d load.Objects) error) error {
	for try := 1; ; try++ {
		cut := false
		err := d.with(ctx, "commit to", "", func(s *session) error {
			err := d.transact(ctx, s, do)
			// What failed by itself may have cancelled what was done beside it.
			cut = err != nil && !tables.Explained(err) && s.conn.IsClosed()
			return err
		})
		_, away := errors.AsType[*load.TemporaryError](err)
		again := cut || away && try > 1
		if !again || try == mostTries || ctx.Err() != nil {
			return err
		}
		_ = load.Pause(ctx, time.Duration(try*try)*200*time.Millisecond) // the next try fails where ctx has ended
	}
}

// transact does Transact once.
func (d *Destination) transact(ctx context.Context, s *session, do func(ctx context.Context, d load.Objects) error) error {
	if err := d.prepareTables(ctx, s); err != nil {
		return err
	}
	return s.atomically(ctx, func() error {
		if err := s.locks(ctx, committing); err != nil {
			return err
		}
		t := &tables.Transaction{Staging: staging{s}, Session: &s.Session}
		if err := do(ctx, t); err != nil {
			return err
		}
		return t.Finish(ctx)
	})
}

// staging is what runs staged at the server, as a session sees it.
type staging struct{ s *session }

// CheckName implements tables.Staging.
func (staging) CheckName(p load.Prepared) error { return checkStaged(p) }

// Check implements tables.Staging.
func (g staging) Check(ctx context.Context, _ *tables.Session, p load.Prepared) error {
	return g.s.check(ctx, p)
}

// Find implements tables.Staging.
func (g staging) Find(ctx context.Context, s *tables.Session, p load.Prepared) (found tables.Staged, err error) {
	rows, err := s.QueryBytes(ctx, "SELECT staging, columns, part::text, rows::text, data FROM "+s.Table.Own("staged")+" WHERE id = $1 AND table_name = $2 AND bytes = $3 AND sha256 = $4 FOR UPDATE",
		p.Staged, s.Table.Name, p.Bytes, p.SHA256)
	if err == nil && len(rows) == 0 {
		err = tables.Gone(p)
	}
	if err != nil {
		return found, err
	}
	row := rows[0]
	if row[0] == nil {
		return tables.Staged{Data: row[4]}, nil
	}
	found = tables.Staged{Table: s.Table.Own(string(row[0])), Line: row[1], Part: string(row[2])}
	found.Rows, err = strconv.ParseInt(string(row[3]), 10, 64)
	return found, err
}

// Drop implements tables.Staging.
func (g staging) Drop(ctx context.Context, _ *tables.Session, all ...load.Prepared) error {
	ids := make([]string, len(all))
	for i, p := range all {
		ids[i] = p.Staged
	}
	return g.s.unstage(ctx, ids...)
}
