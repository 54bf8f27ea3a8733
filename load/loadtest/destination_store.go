package loadtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
)

func storeCases() []destinationCase {
	return []destinationCase{
		{"a small object is put and read", putThenGet},
		{"an empty small object is an object", putEmpty},
		{"a missing object is ErrNotExist", func(b *bench) { b.absent("nothing"); b.absent("no/folder/nothing") }},
		{"deleting a missing object is no error", deleteMissing},
		{"put if absent", putIfAbsent},
		{"put if it is what was read", putIfMatch},
		{"put over anything", putOverAnything},
		{"a version is gone with its object", versionGone},
		{"names of small objects that would leave are refused", storeNamesRefused},
	}
}

func raceCases() []destinationCase {
	return []destinationCase{
		{"stagers side by side", concurrentStagers},
		{"a race to put if absent has one winner", racePutIfAbsent},
		{"a race to put if it is what was read loses no update", raceCounter},
		{"a race to commit one name has one winner", raceCommit},
		{"a race to commit one prepared object harms nobody", raceCommitSame},
		{"a lease is held by one", leaseExclusive},
		{"leases of two scopes are held side by side", leaseScopes},
		{"a file whose name a folder has gets no lease", leaseOfFolder},
		{"a race for a lease has one winner", raceLease},
	}
}

// dataExtensions are the extensions that readers glob for.
var dataExtensions = [...]string{".csv", ".gz", ".zst", ".json", ".ndjson", ".jsonl", ".parquet", ".arrow"}

func stagedIsNoData(b *bench) {
	prepared := make([]load.Prepared, 0, len(dataExtensions))
	for _, extension := range dataExtensions {
		prepared = append(prepared, b.prepare("dt=2026-01-01/part"+extension, "content"))
	}
	for _, name := range b.place.Names() {
		for _, extension := range dataExtensions {
			if strings.Contains(path.Base(name), extension) {
				b.Errorf("the staged object %s is found by **/*%s", name, extension)
			}
		}
	}
	for _, p := range prepared {
		b.must("abort", b.d.Abort(b.Context(), p))
	}
	b.clean()
}

func largeObject(b *bench) {
	source := rand.New(rand.NewPCG(1, 2))
	chunk := make([]byte, 100_003) // no multiple of any buffer
	var all bytes.Buffer
	u, err := b.d.Stage(b.Context(), "run1", "large.parquet")
	b.must("stage", err)
	for range 100 {
		for i := range chunk {
			chunk[i] = byte(source.Uint32())
		}
		all.Write(chunk)
		n, err := u.Write(chunk)
		b.must("write", err)
		if n != len(chunk) {
			b.Fatalf("wrote %d bytes of %d", n, len(chunk))
		}
	}
	p, err := u.Prepare(b.Context())
	b.must("prepare", err)
	b.must("commit", b.d.Commit(b.Context(), p))
	got, _, err := b.d.Get(b.Context(), "large.parquet")
	b.must("get", err)
	if !bytes.Equal(got, all.Bytes()) || p.Bytes != int64(all.Len()) {
		b.Fatalf("read %d bytes back that differ from the %d written", len(got), all.Len())
	}
}

func emptyObject(b *bench) {
	u, err := b.d.Stage(b.Context(), "run1", "empty.csv")
	b.must("stage", err)
	p, err := u.Prepare(b.Context())
	b.must("prepare", err)
	if p.Bytes != 0 || p.SHA256 != digest(nil) {
		b.Fatalf("got %+v", p)
	}
	b.must("commit", b.d.Commit(b.Context(), p))
	b.must("commit again", b.d.Commit(b.Context(), p))
	b.holds("empty.csv", "")
}

func smallWrites(b *bench) {
	u, err := b.d.Stage(b.Context(), "run1", "x.csv")
	b.must("stage", err)
	for i := range 3000 {
		_, err := fmt.Fprintf(u, "%d,", i%10)
		b.must("write", err)
	}
	p, err := u.Prepare(b.Context())
	b.must("prepare", err)
	b.must("commit", b.d.Commit(b.Context(), p))
	b.holds("x.csv", strings.Repeat("0,1,2,3,4,5,6,7,8,9,", 300))
}

func strangeNames(b *bench) {
	for _, name := range []string{
		"a b/c d.csv", "Größe/データ.csv", "emoji-😀.csv", "a/b/c/d/e.csv",
		"dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet",
		"percent%2Fname.csv", "..two-dots.csv", "plus+and&.csv",
	} {
		p := b.prepare(name, name)
		b.must("commit "+name, b.d.Commit(b.Context(), p))
		b.holds(name, name)
		b.must("delete "+name, b.d.Delete(b.Context(), name))
	}
	b.clean()
}

// leavingNames are names that could lead out of a destination or be misread as
// a path.
var leavingNames = [...]string{
	"", ".", "..", "../x.csv", "a/../../x.csv", "a/../x.csv", "/etc/x.csv", "a//x.csv", "a/", "/",
	"./x.csv", "a/./x.csv", "a\\..\\x.csv", "..\\x.csv", "x\x00.csv", "x\n.csv", "\xff.csv",
	strings.Repeat("a", 300), strings.Repeat("a/", 600) + "x",
}

func (b *bench) refused(what string, err error) {
	b.Helper()
	var name *load.NameError
	if !errors.As(err, &name) {
		b.Errorf("%s gives %v, want a *load.NameError", what, err)
	}
}

func namesRefused(b *bench) {
	for _, name := range append(leavingNames[:], load.ControlFolder, load.ControlFolder+"/x.csv") {
		u, err := b.d.Stage(b.Context(), "run1", name)
		if err == nil {
			b.must("abort", u.Abort())
		}
		b.refused(fmt.Sprintf("stage %.40q", name), err)
		b.refused(fmt.Sprintf("commit %.40q", name), b.d.Commit(b.Context(), load.Prepared{Name: name, Staged: "x"}))
	}
	b.clean()
}

func storeNamesRefused(b *bench) {
	for _, name := range leavingNames {
		_, _, err := b.d.Get(b.Context(), name)
		b.refused(fmt.Sprintf("get %.40q", name), err)
		b.refused(fmt.Sprintf("put %.40q", name), b.d.Put(b.Context(), name, nil, load.AnyVersion))
		b.refused(fmt.Sprintf("delete %.40q", name), b.d.Delete(b.Context(), name))
	}
	b.clean()
}

func runsRefused(b *bench) {
	for _, run := range []string{"", ".", "..", "../x", "a/b", "/a", "a\\b", "a\x00", "é", ".a", strings.Repeat("a", 300)} {
		u, err := b.d.Stage(b.Context(), run, "x.csv")
		if err == nil {
			b.must("abort", u.Abort())
		}
		b.refused(fmt.Sprintf("stage in run %.40q", run), err)
	}
	b.clean()
}

func putThenGet(b *bench) {
	b.must("put", b.d.Put(b.Context(), "_rejects/run1.jsonl", []byte("{}\n"), load.AnyVersion))
	b.holds("_rejects/run1.jsonl", "{}\n")
	b.clean("_rejects/run1.jsonl")
	b.must("delete", b.d.Delete(b.Context(), "_rejects/run1.jsonl"))
	b.absent("_rejects/run1.jsonl")
	b.clean()
}

func putEmpty(b *bench) {
	b.must("put", b.d.Put(b.Context(), "_SUCCESS", nil, load.NoVersion))
	b.holds("_SUCCESS", "")
	b.wants("put if absent", b.d.Put(b.Context(), "_SUCCESS", nil, load.NoVersion), load.ErrConflict)
}

func deleteMissing(b *bench) {
	b.must("delete", b.d.Delete(b.Context(), "nothing"))
	b.must("delete", b.d.Delete(b.Context(), "no/folder/nothing"))
	b.must("put", b.d.Put(b.Context(), "a/b", []byte("x"), load.AnyVersion))
	b.must("delete a prefix", b.d.Delete(b.Context(), "a"))
	b.holds("a/b", "x")
}

func putIfAbsent(b *bench) {
	b.must("put", b.d.Put(b.Context(), "m.json", []byte("1"), load.NoVersion))
	b.wants("put again", b.d.Put(b.Context(), "m.json", []byte("2"), load.NoVersion), load.ErrConflict)
	b.holds("m.json", "1")
}

func putIfMatch(b *bench) {
	b.must("put", b.d.Put(b.Context(), "m.json", []byte("1"), load.NoVersion))
	_, version, err := b.d.Get(b.Context(), "m.json")
	b.must("get", err)
	b.must("put", b.place.Open().Put(b.Context(), "m.json", []byte("2"), version))
	b.wants("put of an old version", b.d.Put(b.Context(), "m.json", []byte("3"), version), load.ErrConflict)
	b.holds("m.json", "2")
}

func putOverAnything(b *bench) {
	b.must("put", b.d.Put(b.Context(), "m.json", []byte("1"), load.AnyVersion))
	b.must("put", b.d.Put(b.Context(), "m.json", []byte("22"), load.AnyVersion))
	b.holds("m.json", "22")
}

func versionGone(b *bench) {
	b.must("put", b.d.Put(b.Context(), "m.json", []byte("1"), load.NoVersion))
	_, version, err := b.d.Get(b.Context(), "m.json")
	b.must("get", err)
	b.must("delete", b.d.Delete(b.Context(), "m.json"))
	b.wants("put of its version", b.d.Put(b.Context(), "m.json", []byte("2"), version), load.ErrConflict)
	b.absent("m.json")
}

// race calls f n times at once and returns the errors.
func race(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	group.Wait()
	return errs
}

// oneWinner checks that exactly one error is nil and lost accepts the others.
func (b *bench) oneWinner(errs []error, lost func(error) bool) {
	b.Helper()
	winners := 0
	for _, err := range errs {
		switch {
		case err == nil:
			winners++
		case !lost(err):
			b.Errorf("a loser got %v", err)
		}
	}
	if winners != 1 {
		b.Errorf("%d winners", winners)
	}
}

func isConflict(err error) bool { return errors.Is(err, load.ErrConflict) }

func concurrentStagers(b *bench) {
	const n = 8
	name := func(i int) string { return fmt.Sprintf("dt=2026-01-0%d/part-%d.csv", i%3+1, i) }
	errs := race(n, func(i int) error {
		d := b.place.Open()
		u, err := d.Stage(b.Context(), "run1", name(i))
		if err != nil {
			return err
		}
		defer func() { _ = u.Abort() }()
		if _, err := fmt.Fprint(u, i); err != nil {
			return err
		}
		p, err := u.Prepare(b.Context())
		if err != nil {
			return err
		}
		if i%4 == 3 {
			return d.Abort(b.Context(), p)
		}
		return d.Commit(b.Context(), p)
	})
	for i, err := range errs {
		b.must(name(i), err)
		if i%4 == 3 {
			b.absent(name(i))
		} else {
			b.holds(name(i), fmt.Sprint(i))
		}
	}
}

func racePutIfAbsent(b *bench) {
	b.oneWinner(race(8, func(i int) error {
		return b.place.Open().Put(b.Context(), "m.json", []byte(fmt.Sprint(i)), load.NoVersion)
	}), isConflict)
}

// raceCounter lets several goroutines increment a counter by compare-and-swap.
func raceCounter(b *bench) {
	b.must("put", b.d.Put(b.Context(), "m.json", nil, load.NoVersion))
	const sides, rounds = 4, 5
	errs := race(sides, func(int) error {
		d := b.place.Open()
		for range rounds {
			for {
				data, version, err := d.Get(b.Context(), "m.json")
				if err != nil {
					return err
				}
				err = d.Put(b.Context(), "m.json", append(data, '+'), version)
				if err == nil {
					break
				}
				if !isConflict(err) {
					return err
				}
			}
		}
		return nil
	})
	b.must("count", errors.Join(errs...))
	b.holds("m.json", strings.Repeat("+", sides*rounds))
}

func raceCommit(b *bench) {
	const sides = 6
	prepared := make([]load.Prepared, 0, sides)
	for i := range sides {
		prepared = append(prepared, b.prepare("part.csv", fmt.Sprint(i)))
	}
	b.oneWinner(race(len(prepared), func(i int) error {
		return b.place.Open().Commit(b.Context(), prepared[i])
	}), isConflict)
	for _, p := range prepared {
		b.must("abort", b.d.Abort(b.Context(), p))
	}
	b.clean("part.csv")
}

func raceCommitSame(b *bench) {
	p := b.prepare("x/part.csv", "content")
	errs := race(6, func(int) error { return b.place.Open().Commit(b.Context(), p) })
	b.must("commit", errors.Join(errs...))
	b.holds("x/part.csv", "content")
	b.clean("x/part.csv")
}

// leaser gives the destination as a Leaser, or false if it has no leases.
func (b *bench) leaser() (load.Leaser, bool) {
	l, ok := b.place.Open().(load.Leaser)
	return l, ok
}

func leaseExclusive(b *bench) {
	first, ok := b.leaser()
	if !ok {
		return // leases are optional
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	held, err := first.Acquire(b.Context(), "", load.Holder{RunID: "run1", Pipeline: "feedback", Host: "h", PID: 7, Since: since})
	b.must("acquire", err)
	second, _ := b.leaser()
	_, err = second.Acquire(b.Context(), "", load.Holder{RunID: "run2"})
	var other *load.HeldError
	if !errors.As(err, &other) {
		b.Fatalf("a second lease gives %v, want a *load.HeldError", err)
	}
	if other.RunID != "run1" || other.Pipeline != "feedback" || other.PID != 7 || !other.Since.Equal(since) {
		b.Errorf("the holder is told as %+v", other.Holder)
	}
	select {
	case <-held.Lost():
		b.Error("the lease says that it is lost")
	default:
	}
	b.must("release", held.Release(b.Context()))
	again, err := second.Acquire(b.Context(), "", load.Holder{RunID: "run2"})
	b.must("acquire after release", err)
	b.must("release twice", held.Release(b.Context()))
	_, err = first.Acquire(b.Context(), "", load.Holder{RunID: "run3"})
	if !errors.As(err, &other) || other.RunID != "run2" {
		b.Errorf("a release given twice let go of another's lease: %v", err)
	}
	b.must("release", again.Release(b.Context()))
	b.clean()
}

func leaseScopes(b *bench) {
	l, ok := b.leaser()
	if !ok {
		return // leases are optional
	}
	one, err := l.Acquire(b.Context(), "a.csv", load.Holder{RunID: "run1"})
	b.must("acquire a.csv", err)
	two, err := l.Acquire(b.Context(), "b.csv", load.Holder{RunID: "run1"})
	b.must("acquire b.csv", err)
	for _, name := range b.place.Names() {
		if strings.Contains(path.Base(name), ".csv") {
			b.Errorf("%s is found as data", name)
		}
	}
	b.must("release", one.Release(b.Context()))
	b.must("release", two.Release(b.Context()))
	b.clean()
}

func leaseOfFolder(b *bench) {
	l, ok := b.leaser()
	if !ok {
		return
	}
	b.must("put", b.d.Put(b.Context(), "a.csv/b", []byte("x"), load.NoVersion))
	_, err := l.Acquire(b.Context(), "a.csv", load.Holder{RunID: "run1"})
	if e := new(load.CreateError); !errors.As(err, &e) {
		b.Fatalf("the lease of a folder gives %v, want a *load.CreateError", err)
	}
	for _, scope := range []string{"a", "a.csv.gz"} {
		lease, err := l.Acquire(b.Context(), scope, load.Holder{RunID: "run1"})
		b.must("acquire "+scope, err)
		b.must("release", lease.Release(b.Context()))
	}
}

func raceLease(b *bench) {
	if _, ok := b.leaser(); !ok {
		return // leases are optional
	}
	var held []load.Lease
	var mu sync.Mutex
	b.oneWinner(race(6, func(i int) error {
		l, _ := b.leaser()
		lease, err := l.Acquire(b.Context(), "", load.Holder{RunID: fmt.Sprint(i)})
		if err == nil {
			mu.Lock()
			held = append(held, lease)
			mu.Unlock()
		}
		return err
	}), func(err error) bool {
		var other *load.HeldError
		return errors.As(err, &other)
	})
	for _, l := range held {
		b.must("release", l.Release(b.Context()))
	}
}
