package loadtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
)

// held checks which leases are held.
func (b *bench) held(want ...load.ScopedHolder) {
	b.Helper()
	got, err := b.place.Open().Holders(b.Context())
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

// acquire takes a lease as another process would.
func (b *bench) acquire(scope string, h load.Holder) load.Lease {
	b.Helper()
	lease, err := b.place.Open().Acquire(b.Context(), scope, h)
	b.must("acquire "+scope, err)
	return lease
}

func leaseExclusive(b *bench) {
	b.held()
	var first load.Lease
	for _, run := range []string{"run1", "run2"} {
		h := holder(run)
		lease := b.acquire("", h)
		b.held(load.ScopedHolder{Holder: h})
		b.held(load.ScopedHolder{Holder: h}) // a call of Holders changes nothing
		if first != nil {
			b.must("release twice", first.Release(b.Context())) // lets go of no other's lease
		}
		first = lease
		_, err := b.place.Open().Acquire(b.Context(), "", holder("run3"))
		var other *load.HeldError
		if !errors.As(err, &other) {
			b.Fatalf("a second lease gives %v, want a *load.HeldError", err)
		}
		if other.RunID != run || other.Pipeline != h.Pipeline || other.PID != h.PID || !other.Since.Equal(h.Since) {
			b.Errorf("the holder is told as %+v", other.Holder)
		}
		select {
		case <-lease.Lost():
			b.Error("the lease says that it is lost")
		default:
		}
		b.must("release", lease.Release(b.Context()))
		b.held()
	}
	b.clean()
}

func leaseScopes(b *bench) {
	first, second := holder("run1"), holder("run2")
	one, two, three := b.acquire("a.csv", first), b.acquire("", second), b.acquire("b.csv", first)
	for _, name := range b.place.Names() {
		if strings.Contains(path.Base(name), ".csv") {
			b.Errorf("%s is found as data", name)
		}
	}
	b.held(load.ScopedHolder{Holder: second}, load.ScopedHolder{Scope: "a.csv", Holder: first}, load.ScopedHolder{Scope: "b.csv", Holder: first})
	b.must("release", two.Release(b.Context()))
	b.must("release", three.Release(b.Context()))
	b.held(load.ScopedHolder{Scope: "a.csv", Holder: first})
	b.must("release", one.Release(b.Context()))
	b.held()
	b.clean()
}

func leaseOfFolder(b *bench) {
	b.put("a.csv/b", "x")
	_, err := b.d.Acquire(b.Context(), "a.csv", load.Holder{RunID: "run1"})
	if !errors.Is(err, load.ErrUnusable) {
		b.Fatalf("the lease of a folder gives %v, want a load.ErrUnusable", err)
	}
	for _, scope := range []string{"a", "a.csv.gz"} {
		b.must("release", b.acquire(scope, load.Holder{RunID: "run1"}).Release(b.Context()))
	}
}

// holdersDisturbNobody takes a lease repeatedly while other goroutines call
// Holders.
func holdersDisturbNobody(b *bench) {
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			d := b.place.Open()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if held, err := d.Holders(b.Context()); err != nil || len(held) > 1 {
					b.Errorf("holders gives %v, %v", held, err)
					return
				}
			}
		})
	}
	for i := range 30 {
		lease, err := b.d.Acquire(b.Context(), "", holder(fmt.Sprint("run", i)))
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

// leftovers gives the leftovers as a new Destination finds them, sorted by run and name. It
// checks of which run and name they are.
func (b *bench) leftovers(want ...string) []load.Leftover {
	b.Helper()
	found, err := b.place.Open().Staged(b.Context())
	b.must("staged", err)
	slices.SortFunc(found, func(x, y load.Leftover) int { return strings.Compare(x.Run+" "+x.Name, y.Run+" "+y.Name) })
	got := make([]string, len(found))
	for i, l := range found {
		got[i] = l.Run + " " + l.Name
		if l.Kind == "" || l.Kind == load.Temporary || l.Path == "" || l.Staged == "" || l.Bytes < -1 {
			b.Fatalf("the leftover %+v tells too little", l)
		}
		if age := time.Since(l.Since); age < -time.Hour || age > time.Hour {
			b.Fatalf("the leftover %s is told to be of %s", l.Path, l.Since)
		}
	}
	if !slices.Equal(got, want) {
		b.Fatalf("left over are %q, want %q", got, want)
	}
	return found
}

// remove removes a leftover, twice.
func (b *bench) remove(l load.Leftover) {
	b.Helper()
	p := load.Prepared{Name: l.Name, Staged: l.Staged}
	b.must("remove", b.place.Open().Abort(b.Context(), p))
	b.must("remove again", b.d.Abort(b.Context(), p))
}

// inProgress is more bytes than a destination buffers before it writes or sends
// any.
const inProgress = 9 << 20

func sweepInProgress(b *bench) {
	b.leftovers()
	u := b.begin("run7", "dt=2026-01-01/part.parquet", bytes.Repeat([]byte("x"), inProgress))
	b.remove(b.leftovers("run7 dt=2026-01-01/part.parquet")[0])
	b.leftovers()
	_ = u.Abort() // the object is gone, so the error does not matter
	b.clean()
}

func sweepPrepared(b *bench) {
	p := b.prepare("x/part.csv", "content")
	l := b.leftovers("run1 x/part.csv")[0]
	if l.Bytes != p.Bytes && l.Bytes != -1 {
		b.Errorf("it has %d bytes, want %d", l.Bytes, p.Bytes)
	}
	if again := b.leftovers("run1 x/part.csv")[0]; again != l {
		b.Errorf("asked again it is %+v, not %+v", again, l)
	}
	b.remove(l)
	b.leftovers()
	b.clean()
	b.checks("after the removal", p, load.ErrStagedGone)
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrStagedGone)
	b.abort(p)
}

func sweepEnded(b *bench) {
	b.commit(b.prepare("x/a.csv", "content"))
	replaces := b.prepare("b.csv", "content")
	replaces.Replace = true
	b.commit(replaces)
	b.abort(b.prepare("x/b.csv", "content"))
	b.must("abort", b.begin("run1", "x/c.csv", bytes.Repeat([]byte("x"), inProgress)).Abort())
	b.put("_SUCCESS", "x")
	b.leftovers()
	b.clean("_SUCCESS", "b.csv", "x/a.csv")
}

func sweepSeveral(b *bench) {
	want := make([]string, 0, 6)
	for _, run := range []string{"run1", "run2", "run3"} {
		for _, name := range []string{"dt=2026-01-01/Größe 1.csv", "x.csv"} {
			_, err := b.begin(run, name, []byte(run+name)).Prepare(b.Context())
			b.must("prepare", err)
			want = append(want, run+" "+name)
		}
	}
	b.commit(b.prepare("committed.csv", "content"))
	for ; len(want) > 0; want = want[1:] {
		b.remove(b.leftovers(want...)[0])
	}
	b.clean("committed.csv")
}

func sweepCommitted(b *bench) {
	p := b.prepare("x/part.csv", "content")
	l := b.leftovers("run1 x/part.csv")[0]
	b.commit(p)
	b.commit(p)
	b.must("commit elsewhere", b.place.Open().Commit(b.Context(), p))
	b.remove(l)
	b.abort(p) // does nothing any more
	b.holds("x/part.csv", "content")
	b.checks("after the removal", p, nil)
	b.clean("x/part.csv")
}

func sweepForged(b *bench) {
	b.put("x.csv", "data")
	b.put(load.ControlFolder+"/intent", "{}")
	p := b.prepare("y.csv", "content")
	l := b.leftovers("run1 y.csv")[0]
	for _, ref := range []string{
		"", "x.csv", "../x.csv", "/etc/passwd", load.ControlFolder, load.ControlFolder + "/intent",
		load.ControlFolder + "/run1/../../x.csv", load.ControlFolder + "/run1", `{"object":"x.csv"}`,
		`{"object":".formetl/intent"}`, `{"object":".formetl/run1/staged-X/../../../x.csv"}`, `{"upload":"1"}`, "{}", strings.ToUpper(l.Staged),
	} {
		_ = b.d.Abort(b.Context(), load.Prepared{Name: l.Name, Staged: ref}) // it may be refused or find nothing; both are fine
	}
	b.checks("of the only leftover", p, nil)
	b.abort(p)
	b.clean(load.ControlFolder+"/intent", "x.csv")
}
