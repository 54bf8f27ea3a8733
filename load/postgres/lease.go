package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// Times of a lease. Its connection is asked whether it lives. If not, the lease is taken
// again within the time that the server may need to notice the same.
const (
	askEvery  = 5 * time.Second
	askFor    = 15 * time.Second
	regainFor = 70 * time.Second
	regain    = time.Second
)

// Acquire takes the lease: an advisory lock of a connection of its own. The server releases
// it when the connection ends, so the lease of a dead process is free. A row says who has it.
func (d *Destination) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if err := tables.CheckScope(ctx, d, scope, d.path(scope)); err != nil {
		return nil, err
	}
	holder, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	l := &connLease{d: d, scope: scope, holder: string(holder), lost: make(chan struct{}), ended: make(chan struct{})}
	if err := l.take(ctx, false); err != nil {
		return nil, err
	}
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.keep(keep)
	return l, nil
}

// heldRow is a row of the leases. It says nothing once its lock is free.
type heldRow struct {
	load.ScopedHolder
	text string // the holder as it lies there; "" if there is none
}

// leases reads rows of the leases. rows narrows them by a condition on args, from $2 on.
func (s *session) leases(ctx context.Context, rows string, args ...any) ([]heldRow, error) {
	found, err := s.Query(ctx, "SELECT scope, holder FROM "+s.Table.Own("leases")+" WHERE table_name = $1"+rows+" ORDER BY scope", append([]any{s.Table.Name}, args...)...)
	held := make([]heldRow, len(found))
	for i, row := range found {
		held[i].Scope, held[i].text = string(row[0]), string(row[1])
		if json.Unmarshal(row[1], &held[i].Holder) != nil { // somebody changed it
			held[i].Holder = load.Holder{}
		}
	}
	return held, err
}

// leaseOf reads the row of a scope.
func (s *session) leaseOf(ctx context.Context, scope string) (heldRow, error) {
	found, err := s.leases(ctx, " AND scope = $2", scope)
	if err != nil || len(found) == 0 {
		return heldRow{}, err
	}
	return found[0], nil
}

// connLease is a lease that a connection holds.
type connLease struct {
	d      *Destination
	scope  string
	holder string // in JSON
	conn   *pgconn.PgConn

	stop  context.CancelFunc
	lost  chan struct{}
	ended chan struct{} // closed when nothing asks any more
	once  sync.Once
}

// take connects and takes the lock. With again, nobody else may have had it meanwhile.
func (l *connLease) take(ctx context.Context, again bool) error {
	conn, err := l.d.conns.connect(ctx)
	if err != nil {
		return l.d.failed(ctx, "take the lease of", l.scope, err)
	}
	s := newSession(conn, l.d.table)
	err = l.d.prepareTables(ctx, s)
	if err == nil {
		err = l.lock(ctx, s, again)
	}
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx)) // it holds nothing
		return l.d.failed(ctx, "take the lease of", l.scope, err)
	}
	l.conn = conn
	return nil
}

func (l *connLease) lock(ctx context.Context, s *session, again bool) error {
	got, err := s.Query(ctx, "SELECT pg_try_advisory_lock($1)", lockNumber(s.Table, "lease "+l.scope))
	if err != nil {
		return err
	}
	held, err := s.leaseOf(ctx, l.scope)
	if err != nil {
		return err
	}
	if string(got[0][0]) != "t" || again && held.text != l.holder {
		return &load.HeldError{Path: l.d.path(l.scope), Holder: held.Holder}
	}
	_, err = s.Exec(ctx, "INSERT INTO "+s.Table.Own("leases")+" (table_name, scope, holder) VALUES ($1, $2, $3) ON CONFLICT (table_name, scope) DO UPDATE SET holder = excluded.holder",
		s.Table.Name, l.scope, l.holder)
	return err
}

// keep asks from time to time whether the connection lives.
func (l *connLease) keep(ctx context.Context) {
	defer close(l.ended)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(askEvery):
		}
		asking, cancel := context.WithTimeout(ctx, askFor)
		err := l.conn.Ping(asking)
		cancel()
		if ctx.Err() != nil || err == nil {
			continue
		}
		_ = l.conn.Close(ctx) // the lock is gone, or will be
		if !l.regained(ctx) {
			close(l.lost)
			return
		}
	}
}

// regained takes the lease again after the connection was lost.
func (l *connLease) regained(ctx context.Context) bool {
	for until := time.Now().Add(regainFor); time.Now().Before(until); {
		err := l.take(ctx, true)
		if err == nil {
			return true
		}
		if held, ok := errors.AsType[*load.HeldError](err); ok {
			// The server may not have noticed yet that the first connection ended.
			if mine, _ := json.Marshal(held.Holder); string(mine) != l.holder {
				return false
			}
		}
		select {
		case <-ctx.Done():
			return true // it is given back
		case <-time.After(regain):
		}
	}
	return false
}

// Lost returns a channel that is closed when the connection is lost and the lease could not
// be taken again.
func (l *connLease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease back. A process that lives on, as a worker does, keeps no
// connection.
func (l *connLease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.ended
		ctx, cancel := load.Lingering(ctx, cleanupTime)
		defer cancel()
		defer l.d.conns.close(ctx)
		if !l.conn.IsClosed() {
			s := newSession(l.conn, l.d.table)
			// What stays of a lease says nothing once its connection has ended.
			_, _ = s.Exec(ctx, "DELETE FROM "+s.Table.Own("leases")+" WHERE table_name = $1 AND scope = $2 AND holder = $3", s.Table.Name, l.scope, l.holder)
			_, _ = s.Query(ctx, "SELECT pg_advisory_unlock($1)", lockNumber(s.Table, "lease "+l.scope))
		}
		_ = l.conn.Close(ctx) // the server releases the lock with it
	})
	return nil
}

// Holders returns the leases whose locks are held.
func (d *Destination) Holders(ctx context.Context) (held []load.ScopedHolder, err error) {
	err = d.with(ctx, "list", load.ControlFolder, func(s *session) error {
		rows, err := s.leases(ctx, "")
		if noTable(err) {
			return nil
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		locks, err := s.Query(ctx, `SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND mode = 'ExclusiveLock'
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
		if err != nil {
			return err
		}
		taken := make(map[int64]bool, len(locks))
		for _, row := range locks {
			n, _ := strconv.ParseInt(string(row[0]), 10, 64) // the server wrote it
			taken[n] = true
		}
		for _, row := range rows {
			if taken[lockNumber(s.Table, "lease "+row.Scope)] {
				held = append(held, row.ScopedHolder)
			}
		}
		return nil
	})
	return held, err
}
