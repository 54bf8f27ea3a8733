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

// heldRow is a row of the leases.
type heldRow struct {
	sharedRecord
	text string // as it lies there; "" if there is none
	// age is how long ago it was written, by the server's clock. It is endless where there is
	// none, and for the row of a process alone, which says nothing once its lock is free.
	age time.Duration
}

const (
	// unlocked tells whether no process alone holds the lease, for as long as the
	// transaction lasts.
	unlocked = "pg_try_advisory_xact_lock_shared($1)"
	// serverTime is the server's clock, in seconds since 1970.
	serverTime = "extract(epoch FROM clock_timestamp())"
)

// leases reads rows of the leases. rows narrows them by a condition on args, from $2 on.
func (s *session) leases(ctx context.Context, rows string, args ...any) ([]heldRow, error) {
	found, err := s.Query(ctx, "SELECT scope, holder, "+serverTime+" FROM "+s.Table.Own("leases")+" WHERE table_name = $1"+rows+" ORDER BY scope", append([]any{s.Table.Name}, args...)...)
	held := make([]heldRow, len(found))
	for i, row := range found {
		h := heldRow{text: string(row[1]), age: math.MaxInt64}
		if json.Unmarshal(row[1], &h.sharedRecord) != nil { // somebody changed it
			h.sharedRecord = sharedRecord{}
		}
		h.Scope = string(row[0])
		if h.At != 0 {
			now, _ := strconv.ParseFloat(string(row[2]), 64) // the server wrote it
			h.age = time.Duration((now - h.At) * float64(time.Second))
		}
		held[i] = h
	}
	return held, err
}

// leaseOf reads the row of a scope.
func (s *session) leaseOf(ctx context.Context, scope string) (heldRow, error) {
	found, err := s.leases(ctx, " AND scope = $2", scope)
	if err != nil || len(found) == 0 {
		return heldRow{age: math.MaxInt64}, err
	}
	return found[0], nil
}

// Read implements lease.Store. The lease of a process alone has no age while its lock is held.
func (o leaseRow) Read(ctx context.Context) (is lease.Record, version string, age time.Duration, err error) {
	err = o.d.change(ctx, "take the lease of", o.scope, func(s *session) error {
		free, err := s.Query(ctx, "SELECT "+unlocked, lockNumber(s.Table, "lease "+o.scope))
		if err != nil {
			return err
		}
		held, err := s.leaseOf(ctx, o.scope)
		locked := string(free[0][0]) != "t"
		switch {
		case err != nil:
			return err
		case held.text == "" && !locked:
			return load.ErrNotExist
		}
		is, version = held.Record, held.text
		if !locked {
			age = held.age
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
