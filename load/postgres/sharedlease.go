package postgres

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lease"
)

// A connection's lock belongs to one process. The lease of a workflow, whose activities run
// in several processes, is a row instead: they renew it, and it expires by the server's
// clock. A process alone takes its lock first and then looks at the row. The others look at
// the lock while they write the row. So one of two sees the other.

// leaseRow is a lease.Store: the row of a scope.
type leaseRow struct {
	d     *Destination
	scope string
}

// sharedLease is a lease that processes share. Its end closes the connections of the
// destination, because a worker lives on and opens a destination for each activity.
type sharedLease struct {
	*lease.Lease
	d *Destination
}

// Release implements load.Lease.
func (l sharedLease) Release(ctx context.Context) error {
	defer l.d.conns.close(context.WithoutCancel(ctx))
	return l.Lease.Release(ctx)
}

// Leave implements load.Leaver.
func (l sharedLease) Leave(ctx context.Context) error {
	defer l.d.conns.close(context.WithoutCancel(ctx))
	return l.Lease.Leave(ctx)
}

// sharedRecord is the text of a row of a shared lease. At is when it was written, in seconds
// since 1970 by the server's clock. It is 0 where a process alone has written the row.
type sharedRecord struct {
	lease.Record
	At float64 `json:"at"`
}

// age is how long ago the row was written, by the server's clock. The row of a process alone
// is without meaning once its lock is free.
func (r sharedRecord) age(now float64) time.Duration {
	if r.At == 0 {
		return math.MaxInt64
	}
	return time.Duration((now - r.At) * float64(time.Second))
}

const (
	// unlocked tells whether no process alone holds the lease, for as long as the
	// transaction lasts.
	unlocked = "pg_try_advisory_xact_lock_shared($1)"
	// serverTime is the server's clock, in seconds since 1970.
	serverTime = "extract(epoch FROM clock_timestamp())"
)

// leaseRow reads the row of a scope. found is false if there is none, and text is as it lies there.
func (s *session) leaseRow(ctx context.Context, scope string) (r sharedRecord, text string, now float64, found bool, err error) {
	rows, err := s.Query(ctx, "SELECT "+serverTime+", (SELECT holder FROM "+s.Table.Own("leases")+" WHERE table_name = $1 AND scope = $2)", s.Table.Name, scope)
	if err != nil {
		return r, "", 0, false, err
	}
	now, _ = strconv.ParseFloat(string(rows[0][0]), 64) // the server wrote it
	if found = rows[0][1] != nil; !found {
		return r, "", now, false, nil
	}
	text = string(rows[0][1])
	if json.Unmarshal(rows[0][1], &r) != nil { // somebody changed it
		r = sharedRecord{}
	}
	return r, text, now, true, nil
}

// Read implements lease.Store. The lease of a process alone has no age while its lock is held.
func (o leaseRow) Read(ctx context.Context) (is lease.Record, version string, age time.Duration, err error) {
	err = o.d.change(ctx, "take the lease of", o.scope, func(s *session) error {
		free, err := s.Query(ctx, "SELECT "+unlocked, lockNumber(s.Table, "lease "+o.scope))
		if err != nil {
			return err
		}
		r, text, now, found, err := s.leaseRow(ctx, o.scope)
		locked := string(free[0][0]) != "t"
		switch {
		case err != nil:
			return err
		case !found && !locked:
			return load.ErrNotExist
		}
		is, version = r.Record, text
		if !locked {
			age = r.age(now)
		}
		return nil
	})
	return is, version, age, err
}

// Write implements lease.Store. The version is the text of the row.
func (o leaseRow) Write(ctx context.Context, r lease.Record, version string) (text string, err error) {
	err = o.d.change(ctx, "take the lease of", o.scope, func(s *session) error {
		asked, err := s.Query(ctx, "SELECT "+unlocked+", "+serverTime, lockNumber(s.Table, "lease "+o.scope))
		if err != nil {
			return err
		}
		if string(asked[0][0]) != "t" {
			return load.ErrConflict
		}
		at, _ := strconv.ParseFloat(string(asked[0][1]), 64) // the server wrote it
		data, _ := json.Marshal(sharedRecord{r, at})         // encoding strings, numbers and times cannot fail
		text = string(data)
		sql, args := "INSERT INTO "+s.Table.Own("leases")+" (table_name, scope, holder) VALUES ($1, $2, $3) ON CONFLICT (table_name, scope) DO NOTHING", []any{s.Table.Name, o.scope, text}
		if version != load.NoVersion {
			sql, args = "UPDATE "+s.Table.Own("leases")+" SET holder = $3 WHERE table_name = $1 AND scope = $2 AND holder = $4", append(args, version)
		}
		n, err := s.Exec(ctx, sql, args...)
		if err == nil && n == 0 {
			err = load.ErrConflict
		}
		return err
	})
	return text, err
}

// Remove implements lease.Store.
func (o leaseRow) Remove(ctx context.Context) error {
	return o.d.change(ctx, "give back the lease of", o.scope, func(s *session) error {
		_, err := s.Exec(ctx, "DELETE FROM "+s.Table.Own("leases")+" WHERE table_name = $1 AND scope = $2", s.Table.Name, o.scope)
		return err
	})
}
