// Package lease keeps leases in stores that do not learn when a process ends: the holder
// renews the lease, and others may take it once it was not renewed for a minute.
//
// Begin reading with Take.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/load"
)

// Times are the times that decide when a lease is renewed and when it is lost.
type Times struct {
	Expire time.Duration // age at which others may take the lease, by the store's clock
	Hold   time.Duration // time after the last good renewal when the holder gives up the lease
	Renew  time.Duration // time from one renewal to the next
	Retry  time.Duration // pause after a renewal that failed
}

// DefaultTimes leave time for three renewals before a lease is lost. A lease
// expires a second later than the documented 60 s, because stores give times in
// whole seconds.
func DefaultTimes() Times {
	return Times{Expire: 61 * time.Second, Hold: 50 * time.Second, Renew: 15 * time.Second, Retry: 2 * time.Second}
}

// Record is what a store keeps of a lease.
type Record struct {
	Scope string `json:"scope,omitempty"`
	load.Holder
	Process  Process   `json:"process"`
	Token    string    `json:"token"`    // a random text, different for each lease
	Renewals int       `json:"renewals"` // number of renewals; it makes each ETag differ
	Renewed  time.Time `json:"renewed"`  // time of the last renewal, by the holder's clock
}

// Store reads and writes one lease.
type Store interface {
	// Read returns the lease's record, its version and its age by the store's clock. The age is
	// negative if unknown. A damaged record is returned as empty. The error wraps load.ErrNotExist
	// if there is no lease.
	Read(ctx context.Context) (r Record, version string, age time.Duration, err error)
	// Write writes the lease's record and returns its new version. If the object no longer has the
	// given version, the error wraps load.ErrConflict.
	Write(ctx context.Context, r Record, version string) (string, error)
	// Remove deletes the lease, whatever its version.
	Remove(ctx context.Context) error
}

// Lease is a lease that this process holds and renews in the background.
type Lease struct {
	store   Store
	times   Times
	record  Record // what the store keeps; used by the renewing goroutine alone after take
	version string
	log     *slog.Logger

	renewed atomic.Pointer[time.Time] // when the last good renewal was sent
	stop    context.CancelFunc
	lost    chan struct{}
	ended   chan struct{} // closed when the renewing goroutine has ended
	once    sync.Once
}

// Take takes a lease for the holder in a record, whose other fields it fills. where is the
// place of the lease, for people. If another run holds it, the error is a *load.HeldError.
func Take(ctx context.Context, s Store, times Times, r Record, where string, log *slog.Logger) (load.Lease, error) {
	r.Process, r.Token = ThisProcess(), rand.Text()
	l := &Lease{store: s, times: times, record: r, log: log, lost: make(chan struct{}), ended: make(chan struct{})}
	if err := l.take(ctx, where); err != nil {
		return nil, err
	}
	return l, nil
}

// take writes the lease and starts its renewal. If several runs find the same
// dead holder, each writes on condition that the object is unchanged. So only
// one of them succeeds.
func (l *Lease) take(ctx context.Context, where string) error {
	version := load.NoVersion
	for range 4 {
		sent := time.Now()
		l.record.Renewed = sent.UTC()
		written, err := l.store.Write(ctx, l.record, version)
		if err == nil {
			l.version = written
			l.start(ctx, sent)
			return nil
		}
		if !errors.Is(err, load.ErrConflict) {
			return err
		}
		held, current, age, err := l.store.Read(ctx)
		switch {
		case errors.Is(err, load.ErrNotExist):
			version = load.NoVersion // the lease was released meanwhile
		case err != nil:
			return err
		case l.times.Free(held, age), l.own(held): // own: a write's answer was lost
			version = current
		default:
			return &load.HeldError{Path: where, Holder: held.Holder}
		}
	}
	return &load.HeldError{Path: where} // other runs took the lease first, at each attempt
}

// Free tells whether another run may take a lease: it has expired, or its holder's
// process is gone. held is the lease's record, and age is negative if unknown.
func (t Times) Free(held Record, age time.Duration) bool {
	if age < 0 && !held.Renewed.IsZero() {
		age = time.Since(held.Renewed) // the store does not tell the age, so the hosts' clocks are compared
	}
	return age > t.Expire || held.Process.Gone()
}

// own tells whether a lease was written by this run, and by this process.
func (l *Lease) own(held Record) bool {
	return held.RunID != "" && held.RunID == l.record.RunID && held.Process == l.record.Process
}

// start renews the lease in the background until Release. It goes on after ctx
// is cancelled, because a stopped run may still be committing.
func (l *Lease) start(ctx context.Context, sent time.Time) {
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.renewed.Store(&sent)
	go func() {
		defer close(l.ended)
		if !l.keep(ctx) {
			close(l.lost)
		}
	}()
}

// keep renews the lease until ctx is cancelled. It returns false if the lease
// is lost: another run took it, or it could not be renewed in time.
func (l *Lease) keep(ctx context.Context) bool {
	timer := time.NewTimer(l.times.Renew)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case <-timer.C:
		}
		sent := time.Now()
		deadline := l.renewed.Load().Add(l.times.Hold)
		err := l.renew(ctx, sent, deadline)
		switch {
		case ctx.Err() != nil:
			return true
		case err == nil:
			l.renewed.Store(&sent)
			timer.Reset(l.times.Renew)
		case errors.Is(err, load.ErrConflict), !time.Now().Before(deadline):
			return false
		default:
			timer.Reset(min(l.times.Retry, time.Until(deadline)))
		}
	}
}

// renew writes the lease again with the time now. It fails with ErrConflict if
// another run has taken the lease. It leaves time for another attempt before the deadline.
func (l *Lease) renew(ctx context.Context, now, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, l.times.Renew)
	defer stop()
	l.record.Renewals++
	l.record.Renewed = now.UTC()
	version, err := l.store.Write(ctx, l.record, l.version)
	if errors.Is(err, load.ErrConflict) { // another run has it, or a renewal's answer was lost
		held, current, _, unread := l.store.Read(ctx)
		if unread != nil && !errors.Is(unread, load.ErrNotExist) {
			return unread
		}
		if held.Token == l.record.Token {
			version, err = l.store.Write(ctx, l.record, current)
		}
	}
	if err == nil {
		l.version = version
	}
	return err
}

// Lost returns a channel that is closed when another run has taken the lease or may take it. A
// process that was suspended learns here that it lost the lease, before its next renewal
// fails.
func (l *Lease) Lost() <-chan struct{} {
	if time.Now().Round(0).Sub(l.renewed.Load().Round(0)) > l.times.Hold { // a machine that sleeps stops the monotonic clock
		return expired
	}
	return l.lost
}

// expired is a closed channel, for Lost of a lease that was not renewed in time.
var expired = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// givingBack bounds how long it takes to give a lease back. A run that is stopped has 10 s
// for all that it cleans up.
const givingBack = 2 * time.Second

// Release removes the lease from its store if it is still this holder's. Nobody
// can take it between the check and the removal, because it was renewed in
// time. A failure is logged and not returned: the lease expires by itself.
func (l *Lease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.ended
		select {
		case <-l.Lost():
			return // another run has the lease, or may take it
		default:
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
		defer cancel()
		held, _, _, err := l.store.Read(ctx)
		if err == nil && held.Token == l.record.Token {
			err = l.store.Remove(ctx)
		}
		if err != nil && !errors.Is(err, load.ErrNotExist) {
			l.log.LogAttrs(ctx, slog.LevelWarn, "the run's lock on the output could not be removed; it expires by itself within a minute", slog.String("error", err.Error()))
		}
	})
	return nil
}
