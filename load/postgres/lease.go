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
)

// Times of a lease. Its connection is asked whether it lives. If not, the lease is taken
// again within the time that the server may need to notice the same.
const (
	askEvery  = 5 * time.Second
	askFor    = 15 * time.Second
	regainFor = 70 * time.Second
	regain    = time.Second
	lingering = time.Minute // how long a lease that was left is kept for others of its owner
)

// Acquire takes the lease: an advisory lock of a connection of its own. The server releases
// it when the connection ends, so the lease of a dead process is free. Processes of one
// owner share the lock.
func (d *Destination) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if scope != "" {
		if err := load.CheckObjectName(scope); err != nil {
			return nil, err
		}
		below, err := d.List(ctx, scope+"/")
		if err != nil {
			return nil, err
		}
		if len(below) > 0 {
			return nil, &load.CreateError{Op: "create", Path: d.path(scope), Hint: "choose another name", Err: errors.New("it is a folder")}
		}
	}
	holder, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	l := &lease{d: d, scope: scope, Holder: h, holder: string(holder), lost: make(chan struct{}), ended: make(chan struct{})}
	if err := l.take(ctx, false); err != nil {
		return nil, err
	}
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.keep(keep)
	return l, nil
}

// lease is a lease that is held.
type lease struct {
	load.Holder
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
func (l *lease) take(ctx context.Context, again bool) error {
	conn, err := l.d.conns.connect(ctx)
	if err != nil {
		return l.d.failed(ctx, "take the lease of", l.scope, err)
	}
	s := &session{conn: conn, table: l.d.table}
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

// lock takes the lock of the connection, and writes down who holds it.
func (l *lease) lock(ctx context.Context, s *session, again bool) error {
	return s.atomically(ctx, func() error {
		if err := s.locks(ctx, "leases of "+l.scope); err != nil {
			return err
		}
		key := s.table.lock("lease " + l.scope)
		got, err := s.answers(ctx, "SELECT pg_try_advisory_lock($1)", key)
		if err != nil {
			return err
		}
		held, now, err := l.read(ctx, s)
		switch {
		case err != nil:
			return err
		case got && l.Owner != "":
			got, err = s.answers(ctx, "SELECT pg_try_advisory_lock_shared($1) AND pg_advisory_unlock($1)", key)
		case !got && l.Owner != "" && held.Owner == l.Owner:
			got, err = s.answers(ctx, "SELECT pg_try_advisory_lock_shared($1)", key)
		}
		if err != nil {
			return err
		}
		if !got || again && !l.shares(held, now) {
			return &load.HeldError{Path: l.d.path(l.scope), Holder: held}
		}
		_, err = s.exec(ctx, "INSERT INTO "+s.table.own("leases")+" (table_name, scope, holder) VALUES ($1, $2, $3) ON CONFLICT (table_name, scope) DO UPDATE SET holder = excluded.holder",
			s.table.name, l.scope, l.holder)
		return err
	})
}

// answers does a statement whose one value is true or false.
func (s *session) answers(ctx context.Context, sql string, args ...any) (bool, error) {
	rows, err := s.query(ctx, sql, args...)
	return err == nil && string(rows[0][0]) == "t", err
}

// read returns who held the lease last, also as it is written down. It is zero for nobody.
func (l *lease) read(ctx context.Context, s *session) (h load.Holder, text string, err error) {
	rows, err := s.query(ctx, "SELECT holder FROM "+s.table.own("leases")+" WHERE table_name = $1 AND scope = $2", s.table.name, l.scope)
	if err != nil || len(rows) == 0 {
		return h, "", err
	}
	_ = json.Unmarshal(rows[0][0], &h) // what is damaged is nobody's
	return h, string(rows[0][0]), nil
}

// shares tells whether a lease is still that of this run, or of its owner's run.
func (l *lease) shares(h load.Holder, text string) bool {
	if l.Owner == "" {
		return text == l.holder
	}
	return h.Owner == l.Owner && h.RunID == l.RunID
}

// keep asks from time to time whether the connection lives.
func (l *lease) keep(ctx context.Context) {
	defer close(l.ended)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(askEvery):
		}
		asking, cancel := context.WithTimeout(ctx, askFor)
		h, text, err := l.read(asking, &session{conn: l.conn, table: l.d.table})
		cancel()
		switch {
		case ctx.Err() != nil, err == nil && (l.Owner == "" || l.shares(h, text)):
			continue
		case err == nil: // a later run of the owner has it, or another process gave it back
			close(l.lost)
			return
		}
		_ = l.conn.Close(ctx) // the lock is gone, or will be
		if !l.regained(ctx) {
			close(l.lost)
			return
		}
	}
}

// regained takes the lease again after the connection was lost.
func (l *lease) regained(ctx context.Context) bool {
	for until := time.Now().Add(regainFor); time.Now().Before(until); {
		err := l.take(ctx, true)
		if err == nil {
			return true
		}
		if held, ok := errors.AsType[*load.HeldError](err); ok {
			// The server may not have noticed yet that the first connection ended.
			if text, _ := json.Marshal(held.Holder); !l.shares(held.Holder, string(text)) {
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
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease back.
func (l *lease) Release(ctx context.Context) error {
	l.once.Do(func() { l.end(ctx, true) })
	return nil
}

// Leave implements load.Leaver. The lease is kept for a minute, so that others of the owner
// can join meanwhile.
func (l *lease) Leave(context.Context) error {
	l.once.Do(func() { time.AfterFunc(lingering, func() { l.end(context.Background(), false) }) })
	return nil
}

// end gives up the lock, and with whole also takes the lease from others of the owner.
func (l *lease) end(ctx context.Context, whole bool) {
	l.stop()
	<-l.ended
	ctx, cancel := load.Lingering(ctx, cleanupTime)
	defer cancel()
	s := &session{conn: l.conn, table: l.d.table}
	// What stays of a lease says nothing once its connection has ended. So errors do not matter.
	if h, text, err := l.read(ctx, s); err == nil && whole && l.shares(h, text) {
		_, _ = s.exec(ctx, "DELETE FROM "+s.table.own("leases")+" WHERE table_name = $1 AND scope = $2 AND holder = $3", s.table.name, l.scope, text)
	}
	_, _ = s.query(ctx, "SELECT pg_advisory_unlock_all()")
	_ = l.conn.Close(ctx) // the server releases the lock with it
}

// Holders returns the leases whose locks are held.
func (d *Destination) Holders(ctx context.Context) (held []load.ScopedHolder, err error) {
	err = d.with(ctx, "list", load.ControlFolder, func(s *session) error {
		rows, err := s.query(ctx, "SELECT scope, holder FROM "+s.table.own("leases")+" WHERE table_name = $1 ORDER BY scope", s.table.name)
		if noTable(err) {
			return nil
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		locks, err := s.query(ctx, `SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
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
			h := load.ScopedHolder{Scope: string(row[0])}
			if taken[s.table.lock("lease "+h.Scope)] {
				_ = json.Unmarshal(row[1], &h.Holder) // it is only for people
				held = append(held, h)
			}
		}
		return nil
	})
	return held, err
}
