package s3

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
)

// leaseName begins the names of lease objects in the control folder.
const leaseName = "lease"

// leaseTimes are the times of a lease.
type leaseTimes struct {
	expire time.Duration // after the last renewal, by the store's clock, others may take it
	hold   time.Duration // after the last renewal was sent, the holder takes it for lost
	renew  time.Duration // from one renewal to the next
	retry  time.Duration // after a renewal that failed
	settle time.Duration // before the check, where conditions are ignored
}

// defaultLeaseTimes leave three renewals before a lease is lost. expire has a
// second more than the promised 60, as the store tells times in whole ones.
func defaultLeaseTimes() leaseTimes {
	return leaseTimes{expire: 61 * time.Second, hold: 50 * time.Second, renew: 15 * time.Second, retry: 2 * time.Second, settle: 3 * time.Second}
}

// leaseRecord is what a lease object holds.
type leaseRecord struct {
	Scope string `json:"scope,omitempty"`
	load.Holder
	Process  process   `json:"process"`
	Token    string    `json:"token"`    // names the lease
	Renewals int       `json:"renewals"` // so that every renewal is a new version
	Renewed  time.Time `json:"renewed"`  // by the holder's clock, for people
}

// leaseStore keeps one lease object.
type leaseStore interface {
	// read gives the record, its version and its age by the store's clock,
	// negative where that is not known. A record that cannot be read is empty.
	read(ctx context.Context) (r leaseRecord, version string, age time.Duration, err error)
	// write writes the record on the condition of its version.
	write(ctx context.Context, r leaseRecord, version string) (string, error)
	// remove removes the object.
	remove(ctx context.Context) error
}

// leaseObject is a lease object of a destination.
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
	data, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("cannot encode the lease: %w", err)
	}
	return o.store.put(ctx, o.name, append(data, '\n'), version)
}

func (o leaseObject) remove(ctx context.Context) error { return o.store.remove(ctx, o.name) }

// leases are those of a destination, an object for each scope in the control
// folder.
type leases struct {
	*bucket
	store *store
	times leaseTimes
}

// Acquire takes the lease by a conditional write. A holder that did not renew
// in time is replaced, one on this host whose process is gone at once.
func (l *leases) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if scope != "" {
		if err := load.CheckObjectName(scope); err != nil {
			return nil, err
		}
	}
	if err := l.checkContext(ctx, "take the lease of", scope); err != nil {
		return nil, err
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
	taken := &lease{
		store: leaseObject{l.store, path.Join(load.ControlFolder, leaseFile(scope))}, times: times,
		record: leaseRecord{Scope: scope, Holder: h, Process: thisProcess(), Token: rand.Text()},
		log:    l.options.Logger, lost: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := taken.take(ctx, l.path(scope)); err != nil {
		return nil, err
	}
	return taken, nil
}

// leaseFile names a scope's lease. A file's own name would end in a data
// extension, so its hash stands for it; the scope is told inside.
func leaseFile(scope string) string {
	if scope == "" {
		return leaseName
	}
	digest := sha256.Sum256([]byte(scope))
	return leaseName + "-" + hex.EncodeToString(digest[:8])
}

type lease struct {
	store   leaseStore
	times   leaseTimes
	record  leaseRecord // its renewer's, once it is taken
	version string
	log     *slog.Logger

	stop  context.CancelFunc
	lost  chan struct{}
	ended chan struct{} // the renewer has ended
	once  sync.Once
}

// take writes the lease and starts its renewal. Several that find the same
// dead holder race by the holder's version, and one wins.
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
			version = load.NoVersion // released meanwhile
		case err != nil:
			return err
		case l.times.free(held, age):
			version = current
		default:
			return &load.HeldError{Path: where, Holder: held.Holder}
		}
	}
	return &load.HeldError{Path: where} // others are faster every time
}

// free tells whether a lease's holder lost it or is gone.
func (t leaseTimes) free(held leaseRecord, age time.Duration) bool {
	if age < 0 && !held.Renewed.IsZero() {
		age = time.Since(held.Renewed) // the hosts' clocks must do
	}
	return age > t.expire || held.Process.gone()
}

// settle waits until another's write of the same moment must have arrived,
// and looks whose lease it is. It is for stores that ignore conditions.
func (l *lease) settle(ctx context.Context) error {
	if l.times.settle == 0 {
		return nil
	}
	timer := time.NewTimer(l.times.settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("cannot take the lease: %w", context.Cause(ctx))
	case <-timer.C:
	}
	held, _, _, err := l.store.read(ctx)
	if err != nil || held.Token == l.record.Token {
		return err
	}
	return load.ErrConflict
}

// start renews the lease until Release. The run's own end does not end it:
// what a stopped run still commits must be guarded too.
func (l *lease) start(ctx context.Context, sent time.Time) {
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(l.ended)
		if !l.keep(ctx, sent) {
			close(l.lost)
		}
	}()
}

// keep renews until ctx ends, or gives false when the lease is lost: another
// took it, or it could not be renewed in time.
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

// renew writes the next record. On a store that ignores conditions the check
// before the write tells of another holder.
func (l *lease) renew(ctx context.Context, now, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	l.record.Renewals++
	l.record.Renewed = now.UTC()
	version, err := l.store.write(ctx, l.record, l.version)
	if err == nil {
		l.version = version
	}
	return err
}

// Lost is closed when another run has the lease or could have it.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release removes the lease object if it is still this lease's. Between the
// look and the removal nobody else can take a lease that was renewed in time.
// Where that fails, the lease is left to expire: the run's results are not
// worse for it, so it is logged and no error.
func (l *lease) Release(ctx context.Context) error {
	l.once.Do(func() {
		l.stop()
		<-l.ended
		select {
		case <-l.lost:
			return // another's, or soon
		default:
		}
		ctx, cancel := cleanup(ctx)
		defer cancel()
		held, _, _, err := l.store.read(ctx)
		if err == nil && held.Token == l.record.Token {
			err = l.store.remove(ctx)
		}
		if err != nil && !errors.Is(err, load.ErrNotExist) {
			l.log.LogAttrs(ctx, slog.LevelWarn, "the lease could not be given back; it expires a minute after its last renewal", slog.String("error", err.Error()))
		}
	})
	return nil
}

// Holders reads the lease objects. Those that Acquire would replace are left
// out.
func (l *leases) Holders(ctx context.Context) ([]load.ScopedHolder, error) {
	objects, err := l.store.List(ctx, path.Join(load.ControlFolder, leaseName))
	if err != nil {
		return nil, err
	}
	var held []load.ScopedHolder
	for _, name := range load.NamesOf(objects) {
		if base := path.Base(name); path.Dir(name) != load.ControlFolder || base != leaseName && !strings.HasPrefix(base, leaseName+"-") {
			continue
		}
		r, _, age, err := leaseObject{l.store, name}.read(ctx)
		switch {
		case errors.Is(err, load.ErrNotExist): // released meanwhile
		case err != nil:
			return nil, err
		case !l.times.free(r, age):
			held = append(held, load.ScopedHolder{Scope: r.Scope, Holder: r.Holder})
		}
	}
	return held, nil
}
