package s3

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
)

// leaseTimes are the times that decide when a lease is renewed and when it is lost.
type leaseTimes struct {
	expire time.Duration // age at which others may take the lease, by the store's clock
	hold   time.Duration // time after the last good renewal when the holder gives up the lease
	renew  time.Duration // time from one renewal to the next
	retry  time.Duration // pause after a renewal that failed
	settle time.Duration // pause before a written lease is checked, if the store ignores conditions
}

// defaultLeaseTimes leave time for three renewals before a lease is lost. A lease
// expires a second later than the documented 60 s, because stores give times in
// whole seconds.
func defaultLeaseTimes() leaseTimes {
	return leaseTimes{expire: 61 * time.Second, hold: 50 * time.Second, renew: 15 * time.Second, retry: 2 * time.Second, settle: 3 * time.Second}
}

// leaseRecord is the content of a lease object.
type leaseRecord struct {
	Scope string `json:"scope,omitempty"`
	load.Holder
	Process  process   `json:"process"`
	Token    string    `json:"token"`    // random, different for each lease
	Renewals int       `json:"renewals"` // counted, so that every renewal has another ETag
	Renewed  time.Time `json:"renewed"`  // by the holder's clock
}

// leaseStore reads and writes one lease object.
type leaseStore interface {
	// read returns the record, its version and its age by the store's clock.
	// The age is negative if unknown. A damaged record is returned as empty.
	read(ctx context.Context) (r leaseRecord, version string, age time.Duration, err error)
	// write writes the record and returns its new version. If the object no
	// longer has the given version, the error wraps load.ErrConflict.
	write(ctx context.Context, r leaseRecord, version string) (string, error)
	// remove deletes the lease's object, whatever its version.
	remove(ctx context.Context) error
}

// leaseObject is a leaseStore in a bucket.
type leaseObject struct {
	store *store
	name  string
}

func (o leaseObject) read(ctx context.Context) (leaseRecord, string, time.Duration, error) {
	got, err := o.store.get(ctx, o.name)
	if err != nil {
		return leaseRecord{}, "", 0, err
	}
	var r leaseRecord
	if json.Unmarshal(got.data, &r) != nil {
		r = leaseRecord{}
	}
	return r, got.version, got.age, nil
}

func (o leaseObject) write(ctx context.Context, r leaseRecord, version string) (string, error) {
	data, _ := json.Marshal(r) // encoding strings, numbers and times cannot fail
	return o.store.put(ctx, o.name, append(data, '\n'), version)
}

func (o leaseObject) remove(ctx context.Context) error { return o.store.remove(ctx, o.name) }

// leases are the leases of a destination. Each scope has one object in the
// control folder.
type leases struct {
	*bucket
	store *store
	times leaseTimes
}

// Acquire takes the lease by a conditional write. It replaces a holder that did
// not renew in time. If the holder ran on this host and its process is gone,
// Acquire replaces it at once.
func (l *leases) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if scope != "" {
		if err := load.CheckObjectName(scope); err != nil {
			return nil, err
		}
	}
	if err := l.store.checkNoFolder(ctx, scope); err != nil {
		return nil, err
	}
	c, err := l.store.conditions(ctx)
	if err != nil {
		return nil, err
	}
	times := l.times
	if c.put {
		times.settle = 0
	}
	var here process
	if h.Owner == "" { // a lease that processes share outlives each of them
		here = thisProcess()
	}
	taken := &lease{
		store: leaseObject{l.store, load.ScopeName(load.LeaseName, scope)}, times: times,
		record: leaseRecord{Scope: scope, Holder: h, Process: here, Token: rand.Text()},
		log:    l.options.Logger, lost: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := taken.take(ctx, l.path(scope)); err != nil {
		return nil, err
	}
	return taken, nil
}

type lease struct {
	store   leaseStore
	times   leaseTimes
	record  leaseRecord // used by the renewing goroutine alone after take
	version string
	log     *slog.Logger

	stop  context.CancelFunc
	lost  chan struct{}
	ended chan struct{} // closed when the renewing goroutine has ended
	once  sync.Once
}

// take writes the lease and starts its renewal. If several runs find the same
// dead holder, each writes on condition that the object is unchanged. So only
// one of them succeeds.
func (l *lease) take(ctx context.Context, where string) error {
	version := load.NoVersion
	for range 4 {
		sent := time.Now()
		l.record.Renewed = sent.UTC()
		written, err := l.store.write(ctx, l.record, version)
		if err == nil {
			err = l.settle(ctx)
		}
		if err == nil {
			l.version = written
			l.start(ctx, sent)
			return nil
		}
		if !errors.Is(err, load.ErrConflict) {
			return err
		}
		held, current, age, err := l.store.read(ctx)
		switch {
		case errors.Is(err, load.ErrNotExist):
			version = load.NoVersion // it was released meanwhile
		case err != nil:
			return err
		case l.times.free(held, age), held.Owner != "" && held.Owner == l.record.Owner:
			version = current
		default:
			return &load.HeldError{Path: where, Holder: held.Holder}
		}
	}
	return &load.HeldError{Path: where} // others took it first each time
}

// free tells whether another run may take a lease: it has expired, or its holder's
// process is gone. held is the lease's record, and age is negative if unknown.
func (t leaseTimes) free(held leaseRecord, age time.Duration) bool {
	if age < 0 && !held.Renewed.IsZero() {
		age = time.Since(held.Renewed) // the store does not tell the age, so the hosts' clocks are compared
	}
	return age > t.expire || held.Process.gone()
}

// settle is for stores that ignore conditions. It waits until another run's
// write of the same moment must have arrived. Then it returns load.ErrConflict
// if another run holds the lease.
func (l *lease) settle(ctx context.Context) error {
	if l.times.settle == 0 {
		return nil
	}
	if !wait(ctx, l.times.settle) {
		return fmt.Errorf("cannot take the lease: %w", context.Cause(ctx))
	}
	held, _, _, err := l.store.read(ctx)
	if err != nil || held.Token == l.record.Token {
		return err
	}
	return load.ErrConflict
}

// start renews the lease in the background until Release. It goes on after ctx
// is cancelled, because a stopped run may still be committing.
func (l *lease) start(ctx context.Context, sent time.Time) {
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(l.ended)
		if !l.keep(ctx, sent) {
			close(l.lost)
		}
	}()
}

// keep renews the lease until ctx is cancelled. It returns false if the lease
// is lost: another run took it, or it could not be renewed in time.
func (l *lease) keep(ctx context.Context, renewed time.Time) bool {
	timer := time.NewTimer(l.times.renew)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case <-timer.C:
		}
		sent := time.Now()
		deadline := renewed.Add(l.times.hold)
		err := l.renew(ctx, sent, deadline)
		switch {
		case ctx.Err() != nil:
			return true
		case err == nil:
			renewed = sent
			timer.Reset(l.times.renew)
		case errors.Is(err, load.ErrConflict), !time.Now().Before(deadline):
			return false
		default:
			timer.Reset(min(l.times.retry, time.Until(deadline)))
		}
	}
}

// renew writes the lease again with the time now. It fails with ErrConflict if
// another run has taken the lease.
func (l *lease) renew(ctx context.Context, now, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for {
		l.record.Renewals++
		l.record.Renewed = now.UTC()
		version, err := l.store.write(ctx, l.record, l.version)
		if err == nil {
			l.version = version
			return nil
		}
		if l.record.Owner == "" || !errors.Is(err, load.ErrConflict) {
			return err
		}
		held, current, _, failed := l.store.read(ctx)
		switch {
		case errors.Is(failed, load.ErrNotExist):
			return err // it was given back, and this holder came too late to notice
		case failed != nil:
			return failed
		case !l.shares(held):
			return err
		}
		l.version = current // another process of the owner has renewed it
	}
}

// shares tells whether a lease is held by this run of this lease's owner.
func (l *lease) shares(held leaseRecord) bool {
	if l.record.Owner == "" {
		return held.Token == l.record.Token
	}
	return held.Owner == l.record.Owner && held.RunID == l.record.RunID
}

// Leave stops the renewals. The object stays, so that it expires unless another
// process of the owner renews it.
func (l *lease) Leave(context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.ended
	})
	return nil
}

// Lost returns a channel that is closed when another run has taken the lease or
// may take it.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release removes the lease object if it still belongs to this lease. Nobody
// can take it between the check and the removal, because it was renewed in
// time. A failure is logged and not returned: the lease expires by itself.
func (l *lease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.ended
		select {
		case <-l.lost:
			return // another run has it, or may take it
		default:
		}
		ctx, cancel := cleanup(ctx)
		defer cancel()
		held, _, _, err := l.store.read(ctx)
		if err == nil && l.shares(held) {
			err = l.store.remove(ctx)
		}
		if err != nil && !errors.Is(err, load.ErrNotExist) {
			l.log.LogAttrs(ctx, slog.LevelWarn, "the lease could not be given back; it expires a minute after its last renewal", slog.String("error", err.Error()))
		}
	})
	return nil
}

// Holders returns the holders of all leases, except those that Acquire would replace.
func (l *leases) Holders(ctx context.Context) ([]load.ScopedHolder, error) {
	objects, err := l.store.List(ctx, load.ScopeName(load.LeaseName, ""))
	if err != nil {
		return nil, err
	}
	var held []load.ScopedHolder
	for _, name := range load.NamesOf(objects) {
		if !load.IsScopeName(name, load.LeaseName) {
			continue
		}
		r, _, age, err := leaseObject{l.store, name}.read(ctx)
		switch {
		case errors.Is(err, load.ErrNotExist): // it was released meanwhile
		case err != nil:
			return nil, err
		case !l.times.free(r, age):
			held = append(held, load.ScopedHolder{Scope: r.Scope, Holder: r.Holder})
		}
	}
	return held, nil
}
