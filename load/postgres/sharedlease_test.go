package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lease"
)

// soon shortens the times of the leases that processes share.
func soon(d *Destination) *Destination {
	d.times = lease.Times{Expire: 1500 * time.Millisecond, Hold: 1200 * time.Millisecond, Renew: 200 * time.Millisecond, Retry: 50 * time.Millisecond}
	return d
}

// activity is the holder of an activity of a workflow.
func activity(run string, process int) load.Holder {
	return load.Holder{RunID: run, Owner: "flow", Pipeline: "p", PID: process}
}

func isLost(l load.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// TestSharedLease has two processes of a workflow hold the lease side by side. It keeps all
// others away, also a while after the last one has left it.
func TestSharedLease(t *testing.T) {
	t.Parallel()
	database := server.Database(t)
	at := func() *Destination { return soon(open(t, database, "forms.feedback")) }
	take := func(h load.Holder) load.Lease {
		t.Helper()
		l, err := at().Acquire(t.Context(), "", h)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	alone, stranger := load.Holder{RunID: "alone"}, load.Holder{RunID: "other", Owner: "other flow"}
	refused := func(by string, holders ...load.Holder) {
		t.Helper()
		for _, h := range holders {
			if _, err := at().Acquire(t.Context(), "", h); !heldBy(err, by) {
				t.Errorf("%+v: got %v", h, err)
			}
		}
	}
	a, b := take(activity("run1", 1)), take(activity("run1", 2))
	refused("run1", alone, stranger)
	time.Sleep(3 * time.Second)
	refused("run1", alone, stranger)
	if held, err := at().Holders(t.Context()); err != nil || len(held) != 1 || held[0].Owner != "flow" {
		t.Errorf("%v; the holders are %+v", err, held)
	}
	if err := errors.Join(a.(load.Leaver).Leave(t.Context()), b.(load.Leaver).Leave(t.Context())); err != nil || isLost(a) || isLost(b) {
		t.Fatalf("%v; lost %v and %v", err, isLost(a), isLost(b))
	}
	refused("run1", alone, stranger)
	time.Sleep(2 * time.Second) // nobody renews it
	if held, err := at().Holders(t.Context()); err != nil || len(held) != 0 {
		t.Errorf("%v; the holders are %+v", err, held)
	}
	own := take(alone)
	refused("alone", activity("run1", 3), stranger, load.Holder{RunID: "second"})
	if err := own.Release(t.Context()); err != nil {
		t.Error(err)
	}
	c := take(stranger)
	refused("other", alone, activity("run1", 3))
	if err := c.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := take(alone).Release(t.Context()); err != nil { // it was given back
		t.Error(err)
	}
}

// TestSharedLeaseOfLaterRun holds that a process loses the lease to a later one of its
// workflow, and that a cut connection costs nobody a lease.
func TestSharedLeaseOfLaterRun(t *testing.T) {
	t.Parallel()
	database := server.Database(t)
	p := newProxy(t)
	cut := soon(openBy(t, server.DSNAt(p.port, database, "sslmode=disable"), "forms.feedback"))
	old, err := cut.Acquire(t.Context(), "", activity("run1", 1))
	if err != nil {
		t.Fatal(err)
	}
	p.sever()
	time.Sleep(time.Second)
	if isLost(old) {
		t.Error("a cut connection costs the lease")
	}
	late, err := soon(open(t, database, "forms.feedback")).Acquire(t.Context(), "", activity("run2", 2))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-old.Lost():
	case <-time.After(10 * time.Second):
		t.Error("the earlier run keeps the lease")
	}
	if err := errors.Join(old.Release(t.Context()), old.(load.Leaver).Leave(t.Context())); err != nil || isLost(late) {
		t.Errorf("%v; lost %v", err, isLost(late))
	}
	p.refuse(true)
	p.sever()
	cutOff, err := cut.Acquire(t.Context(), "", activity("run2", 3))
	if err == nil {
		t.Errorf("a server that is away gives %+v", cutOff)
	}
	if err := late.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLeaseEndsConnections holds that no connection stays when a lease ends. A worker goes on
// after its activities, and a server takes few connections.
func TestLeaseEndsConnections(t *testing.T) {
	ends := map[string]func(load.Lease) error{
		"left":     func(l load.Lease) error { return l.(load.Leaver).Leave(t.Context()) },
		"released": func(l load.Lease) error { return l.Release(t.Context()) },
		"alone":    func(l load.Lease) error { return l.Release(t.Context()) },
	}
	for name, end := range ends {
		database := server.Database(t)
		d := open(t, database, "forms.feedback")
		h := activity("run1", 1)
		if name == "alone" {
			h.Owner = ""
		}
		l, err := d.Acquire(t.Context(), "", h)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Put(t.Context(), "x", nil, load.AnyVersion); err != nil {
			t.Fatal(err)
		}
		const connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'loader'"
		if n := query(t, database, connections); n == "0" {
			t.Errorf("%s: there are no connections to close", name)
		}
		if err := end(l); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(10 * time.Second); query(t, database, connections) != "0"; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: %s connections stay", name, query(t, database, connections))
			}
		}
	}
}

// TestSharedLeaseOfADeadRun holds that what a run of one process left which was killed keeps
// no workflow away. Neither does a row that somebody changed.
func TestSharedLeaseOfADeadRun(t *testing.T) {
	t.Parallel()
	database := server.Database(t)
	d := soon(open(t, database, "forms.feedback"))
	first, err := d.Acquire(t.Context(), "", load.Holder{RunID: "alone"})
	if err != nil {
		t.Fatal(err)
	}
	own := first.(*connLease)
	own.stop()
	<-own.ended
	if err := own.conn.Close(t.Context()); err != nil { // as its process does when it dies
		t.Fatal(err)
	}
	l, err := acquireSoon(t.Context(), d, activity("run1", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.(load.Leaver).Leave(t.Context()); err != nil {
		t.Error(err)
	}
	query(t, database, "UPDATE forms._formetl_leases SET holder = 'damaged'")
	last, err := d.Acquire(t.Context(), "", activity("run2", 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
