package loadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
)

func sweepCases() []destinationCase {
	return []destinationCase{
		{"nothing is left over at first", sweepEmpty},
		{"an upload in progress is left over", sweepInProgress},
		{"a prepared object is left over", sweepPrepared},
		{"nothing is left over after commit and abort", sweepEnded},
		{"leftovers of several runs and names are told apart", sweepSeveral},
		{"remove never touches what is committed", sweepCommitted},
		{"remove refuses what is no leftover", sweepForged},
		{"a removed object cannot be committed", sweepThenCommit},
		{"holders are who holds a lease now", holdersNow},
		{"holders of scopes", holdersScopes},
		{"asking for holders disturbs no one who takes a lease", holdersDisturbNobody},
		{"whatever kills a commit, each part has its id set and dead letters", idsKilled},
	}
}

// sweeper gives a new Destination as a Sweeper, or false if it is none.
func (b *bench) sweeper() (load.Sweeper, bool) {
	s, ok := b.place.Open().(load.Sweeper)
	return s, ok
}

// leftovers gives the leftovers, sorted by run and name.
func (b *bench) leftovers(s load.Sweeper) []load.Leftover {
	b.Helper()
	found, err := s.Leftovers(b.Context())
	b.must("leftovers", err)
	slices.SortFunc(found, func(x, y load.Leftover) int { return strings.Compare(x.Run+" "+x.Name, y.Run+" "+y.Name) })
	for _, l := range found {
		if l.Kind == "" || l.Path == "" || l.Ref == "" || l.Bytes < -1 {
			b.Fatalf("the leftover %+v tells too little", l)
		}
		if age := time.Since(l.Since); age < -time.Hour || age > time.Hour {
			b.Fatalf("the leftover %s is told to be of %s", l.Path, l.Since)
		}
	}
	return found
}

// oneLeftover checks that there is one leftover, of that run and name, and
// returns it.
func (b *bench) oneLeftover(s load.Sweeper, run, name string) load.Leftover {
	b.Helper()
	found := b.leftovers(s)
	if len(found) != 1 || found[0].Run != run || found[0].Name != name || found[0].Kind == load.Temporary {
		b.Fatalf("left over is %+v, want one of run %s for %s", found, run, name)
	}
	return found[0]
}

// nothingLeft checks that there are no leftovers.
func (b *bench) nothingLeft(s load.Sweeper) {
	b.Helper()
	if found := b.leftovers(s); len(found) != 0 {
		b.Fatalf("left over is %+v", found)
	}
}

func sweepEmpty(b *bench) {
	s, ok := b.sweeper()
	if !ok {
		return
	}
	b.nothingLeft(s)
	held, err := s.Holders(b.Context())
	b.must("holders", err)
	if len(held) != 0 {
		b.Errorf("held by %+v", held)
	}
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	_, err = s.Leftovers(ctx)
	b.wants("leftovers", err, context.Canceled)
	_, err = s.Holders(ctx)
	b.wants("holders", err, context.Canceled)
	b.clean()
}

// inProgress is more bytes than a destination buffers before it writes or sends
// any.
const inProgress = 9 << 20

func sweepInProgress(b *bench) {
	s, ok := b.sweeper()
	if !ok {
		return
	}
	u, err := b.d.Stage(b.Context(), "run7", "dt=2026-01-01/part.parquet")
	b.must("stage", err)
	_, err = u.Write(bytes.Repeat([]byte("x"), inProgress))
	b.must("write", err)
	l := b.oneLeftover(s, "run7", "dt=2026-01-01/part.parquet")
	b.must("remove", s.Remove(b.Context(), l))
	b.must("remove again", s.Remove(b.Context(), l))
	b.nothingLeft(s)
	_ = u.Abort() // the object is gone, so the error does not matter
	b.clean()
}

func sweepPrepared(b *bench) {
	s, ok := b.sweeper()
	if !ok {
		return
	}
	p := b.prepare("x/part.csv", "content")
	l := b.oneLeftover(s, "run1", "x/part.csv")
	if l.Bytes != p.Bytes {
		b.Errorf("it has %d bytes, want %d", l.Bytes, p.Bytes)
	}
	if again := b.oneLeftover(s, "run1", "x/part.csv"); again != l {
		b.Errorf("asked again it is %+v, not %+v", again, l)
	}
	b.must("remove", s.Remove(b.Context(), l))
	b.must("remove again", s.Remove(b.Context(), l))
	b.nothingLeft(s)
	b.clean()
	b.checks("after the removal", p, load.ErrStagedGone)
	b.must("abort", b.d.Abort(b.Context(), p))
}

func sweepEnded(b *bench) {
	s, ok := b.sweeper()
	if !ok {
		return
	}
	b.must("commit", b.d.Commit(b.Context(), b.prepare("x/a.csv", "content")))
	replaces := b.prepare("b.csv", "content")
	replaces.Replace = true
	b.must("replace", b.d.Commit(b.Context(), replaces))
	b.must("abort", b.d.Abort(b.Context(), b.throughJSON(b.prepare("x/b.csv", "content"))))
	u, err := b.d.Stage(b.Context(), "run1", "x/c.csv")
	b.must("stage", err)
	_, err = u.Write(bytes.Repeat([]byte("x"), inProgress))
	b.must("write", err)
	b.must("abort", u.Abort())
	b.must("put", b.d.Put(b.Context(), "_SUCCESS", []byte("x"), load.NoVersion))
	b.nothingLeft(s)
	b.clean("_SUCCESS", "b.csv", "x/a.csv")
}

func sweepSeveral(b *bench) {
	s, ok := b.sweeper()
	if !ok {
		return
	}
	var want []string
	for _, run := range []string{"run1", "run2", "run3"} {
		for _, name := range []string{"dt=2026-01-01/Größe 1.csv", "x.csv"} {
			u, err := b.d.Stage(b.Context(), run, name)
			b.must("stage", err)
			_, err = u.Write([]byte(run + name))
			b.must("write", err)
			_, err = u.Prepare(b.Context())
			b.must("prepare", err)
			want = append(want, run+" "+name)
		}
	}
	b.must("commit", b.d.Commit(b.Context(), b.prepare("committed.csv", "content")))
	for left := b.leftovers(s); len(want) > 0; left = b.leftovers(s) {
		got := make([]string, len(left))
		for i, l := range left {
			got[i] = l.Run + " " + l.Name
		}
		if !slices.Equal(got, want) {
			b.Fatalf("left over are %q, want %q", got, want)
		}
		b.must("remove", s.Remove(b.Context(), left[0]))
		want = want[1:]
	}
	b.clean("committed.csv")
}

func sweepCommitted(b *bench) {
	s, ok := b.sweeper()
	if !ok {
		return
	}
	p := b.prepare("x/part.csv", "content")
	l := b.oneLeftover(s, "run1", "x/part.csv")
	b.must("commit", b.d.Commit(b.Context(), p))
	b.must("remove", s.Remove(b.Context(), l))
	b.holds("x/part.csv", "content")
	b.checks("after the removal", p, nil)
	b.clean("x/part.csv")
}

func sweepForged(b *bench) {
	s, ok := b.sweeper()
	if !ok {
		return
	}
	b.must("put", b.d.Put(b.Context(), "x.csv", []byte("data"), load.NoVersion))
	b.must("put", b.d.Put(b.Context(), load.ControlFolder+"/intent", []byte("{}"), load.NoVersion))
	p := b.prepare("y.csv", "content")
	real := b.oneLeftover(s, "run1", "y.csv")
	for _, ref := range []string{
		"", "x.csv", "../x.csv", "/etc/passwd", load.ControlFolder, load.ControlFolder + "/intent",
		load.ControlFolder + "/run1/../../x.csv", load.ControlFolder + "/run1", `{"object":"x.csv"}`,
		`{"object":".formetl/intent"}`, `{"object":".formetl/run1/staged-X/../../../x.csv"}`, `{"upload":"1"}`, "{}", strings.ToUpper(real.Ref),
	} {
		l := real
		l.Ref = ref
		_ = s.Remove(b.Context(), l) // it may be refused or find nothing; both are fine
	}
	b.checks("of the only leftover", p, nil)
	b.must("abort", b.d.Abort(b.Context(), p))
	b.clean(load.ControlFolder+"/intent", "x.csv")
}

func sweepThenCommit(b *bench) {
	s, ok := b.sweeper()
	if !ok {
		return
	}
	p := b.prepare("x/part.csv", "content")
	b.must("remove", s.Remove(b.Context(), b.oneLeftover(s, "run1", "x/part.csv")))
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrStagedGone)
	b.clean()
}

// held checks which leases are held.
func (b *bench) held(s load.Sweeper, want ...load.ScopedHolder) {
	b.Helper()
	got, err := s.Holders(b.Context())
	b.must("holders", err)
	slices.SortFunc(got, func(x, y load.ScopedHolder) int { return strings.Compare(x.Scope, y.Scope) })
	if !slices.EqualFunc(got, want, func(x, y load.ScopedHolder) bool {
		return x.Scope == y.Scope && x.RunID == y.RunID && x.PID == y.PID && x.Host == y.Host && x.Pipeline == y.Pipeline && x.Since.Equal(y.Since)
	}) {
		b.Fatalf("held by %+v, want %+v", got, want)
	}
}

// holder is a holder whose process is alive: this one.
func holder(run string) load.Holder {
	host, _ := os.Hostname() // "" is a host too
	return load.Holder{RunID: run, Pipeline: "feedback", Host: host, PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)}
}

// leases gives the destination as a Leaser and a Sweeper, or false if it is not
// both.
func (b *bench) leases() (load.Leaser, load.Sweeper, bool) {
	s, sweeps := b.sweeper()
	l, leases := b.leaser()
	return l, s, sweeps && leases
}

func holdersNow(b *bench) {
	l, s, ok := b.leases()
	if !ok {
		return
	}
	for _, run := range []string{"run1", "run2"} {
		h := holder(run)
		lease, err := l.Acquire(b.Context(), "", h)
		b.must("acquire", err)
		b.held(s, load.ScopedHolder{Holder: h})
		b.held(s, load.ScopedHolder{Holder: h}) // a call of Holders changes nothing
		other, _ := b.leaser()
		_, err = other.Acquire(b.Context(), "", holder("run3"))
		var held *load.HeldError
		if !errors.As(err, &held) || held.RunID != run {
			b.Errorf("a second lease gives %v", err)
		}
		b.must("release", lease.Release(b.Context()))
		b.held(s)
	}
	b.clean()
}

func holdersScopes(b *bench) {
	l, s, ok := b.leases()
	if !ok {
		return
	}
	first, second := holder("run1"), holder("run2")
	one, err := l.Acquire(b.Context(), "a.csv", first)
	b.must("acquire a.csv", err)
	two, err := l.Acquire(b.Context(), "", second)
	b.must("acquire all", err)
	b.held(s, load.ScopedHolder{Holder: second}, load.ScopedHolder{Scope: "a.csv", Holder: first})
	b.must("release", two.Release(b.Context()))
	b.held(s, load.ScopedHolder{Scope: "a.csv", Holder: first})
	b.must("release", one.Release(b.Context()))
	b.held(s)
	b.clean()
}

// holdersDisturbNobody takes a lease repeatedly while other goroutines call
// Holders.
func holdersDisturbNobody(b *bench) {
	l, _, ok := b.leases()
	if !ok {
		return
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			s, _ := b.sweeper()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if held, err := s.Holders(b.Context()); err != nil || len(held) > 1 {
					b.Errorf("holders gives %v, %v", held, err)
					return
				}
			}
		})
	}
	for i := range 30 {
		lease, err := l.Acquire(b.Context(), "", holder(fmt.Sprint("run", i)))
		if err != nil {
			b.Errorf("acquire while others ask: %v", err)
			break
		}
		b.must("release", lease.Release(b.Context()))
	}
	close(stop)
	group.Wait()
	b.clean()
}
