package loadtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
)

// Place is where a test's destination keeps its objects: an empty folder or
// prefix.
type Place struct {
	// Open returns a new Destination at the place, as another process would
	// have.
	Open func() load.Destination
	// Names lists all objects at the place, including staged ones that a
	// listing shows.
	Names func() []string
}

// Destination checks that a destination meets the contract of load.Destination. open gives
// a new empty place for each case.
func Destination(t *testing.T, open func(t *testing.T) Place) {
	for _, c := range []struct {
		name string
		run  func(*bench)
	}{
		{"contents of every size", contents},
		{"nothing is visible before the commit, nor found as data", nothingBeforeCommit},
		{"an upload that is aborted leaves nothing", abortUpload},
		{"an object that was committed and superseded is gone", superseded},
		{"commit never overwrites", commitNeverOverwrites},
		{"commit of what is gone is no other's object", goneIsNoOthers},
		{"commit replaces in one step where it may", commitReplaces},
		{"two objects of one name stage side by side", sameNameTwice},
		{"names in folders, with spaces and in all scripts", strangeNames},
		{"names that would leave are refused", namesRefused},
		{"a cancelled context stops before anything is done", cancelled},
		{"a small object is put, read and deleted", putGetDelete},
		{"a version that is not the object's is refused", versions},
		{"list gives what begins with a prefix, in order", listed},
		{"stagers side by side", concurrentStagers},
		{"a race to put if absent has one winner", racePutIfAbsent},
		{"a race to put if it is what was read loses no update", raceCounter},
		{"a race to commit one name has one winner", raceCommit},
		{"a race to commit one prepared object harms nobody", raceCommitSame},
		{"a race for a lease has one winner", raceLease},
		{"a lease is held by one, and told", leaseExclusive},
		{"leases of two scopes are held side by side", leaseScopes},
		{"a file whose name a folder has gets no lease", leaseOfFolder},
		{"asking for holders disturbs no one who takes a lease", holdersDisturbNobody},
		{"an upload in progress is left over", sweepInProgress},
		{"a prepared object is left over", sweepPrepared},
		{"nothing is left over after commit and abort", sweepEnded},
		{"leftovers of several runs and names are told apart", sweepSeveral},
		{"remove never touches what is committed", sweepCommitted},
		{"remove refuses what is no leftover", sweepForged},
		{"whatever kills a commit, each part has its id set and dead letters", idsKilled},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t)
			c.run(&bench{T: t, place: p, d: p.Open()})
		})
	}
}

// bench is one case's test, place and first destination.
type bench struct {
	*testing.T
	place Place
	d     load.Destination
}

func (b *bench) must(what string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

// wants checks that an error wraps the wanted one and adds to its text.
func (b *bench) wants(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("%s gives %v, want an error that wraps %q", what, err, want)
	}
}

// begin begins an object and writes content.
func (b *bench) begin(run, name string, content []byte) load.Upload {
	b.Helper()
	u, err := b.d.Stage(b.Context(), run, name)
	b.must("stage", err)
	_, err = u.Write(content)
	b.must("write", err)
	return u
}

// prepare stages content under name.
func (b *bench) prepare(name, content string) load.Prepared {
	b.Helper()
	p, err := b.begin("run1", name, []byte(content)).Prepare(b.Context())
	b.must("prepare", err)
	return p
}

func (b *bench) commit(p load.Prepared) {
	b.Helper()
	b.must("commit "+p.Name, b.d.Commit(b.Context(), p))
}

func (b *bench) put(name, content string) {
	b.Helper()
	b.must("put "+name, b.d.Put(b.Context(), name, []byte(content), load.AnyVersion))
}

func (b *bench) delete(name string) {
	b.Helper()
	b.must("delete "+name, b.d.Delete(b.Context(), name))
}

// abort aborts a prepared object, twice, the second time as another process does.
func (b *bench) abort(p load.Prepared) {
	b.Helper()
	b.must("abort", b.d.Abort(b.Context(), p))
	b.must("abort elsewhere", b.place.Open().Abort(b.Context(), throughJSON(b, p)))
}

// holds checks an object's content through a new Destination.
func (b *bench) holds(name, want string) {
	b.Helper()
	got, _, err := b.place.Open().Get(b.Context(), name)
	b.must("get "+name, err)
	if string(got) != want {
		b.Fatalf("%s holds %.60q, want %.60q", name, got, want)
	}
}

func (b *bench) absent(name string) {
	b.Helper()
	_, version, err := b.place.Open().Get(b.Context(), name)
	b.wants("get "+name, err, load.ErrNotExist)
	if version != load.NoVersion {
		b.Fatalf("a missing object has the version %q", version)
	}
}

// clean checks that the place holds the given names and nothing else.
func (b *bench) clean(names ...string) {
	b.Helper()
	got := strings.Join(b.place.Names(), " ")
	if want := strings.Join(names, " "); got != want {
		b.Fatalf("the place holds %q, want %q", got, want)
	}
}

// checks checks the result of Check by this Destination and by a new one. want
// is nil or ErrStagedGone.
func (b *bench) checks(when string, p load.Prepared, want error) {
	b.Helper()
	for _, d := range []load.Destination{b.d, b.place.Open()} {
		if err := d.Check(b.Context(), p); !errors.Is(err, want) {
			b.Fatalf("check %s gives %v, want %v", when, err, want)
		}
	}
}

// throughJSON encodes a prepared object in JSON and decodes it again.
func throughJSON(b *bench, p load.Prepared) (q load.Prepared) {
	b.Helper()
	data, err := json.Marshal(p)
	b.must("marshal", err)
	b.must("unmarshal", json.Unmarshal(data, &q))
	return q
}

// contents stages nothing, many small writes, and more than any buffer holds.
func contents(b *bench) {
	large := make([]byte, 100_003)                 // no multiple of any buffer
	_, _ = rand.NewChaCha8([32]byte{}).Read(large) // never fails
	for name, c := range map[string]struct {
		write []byte
		times int
	}{"empty.csv": {nil, 0}, "small.csv": {[]byte("0,"), 3000}, "x/large.parquet": {large, 100}} {
		u, err := b.d.Stage(b.Context(), "run1", name)
		b.must("stage", err)
		for range c.times {
			n, err := u.Write(c.write)
			b.must("write", err)
			if n != len(c.write) {
				b.Fatalf("wrote %d bytes of %d", n, len(c.write))
			}
		}
		p, err := u.Prepare(b.Context())
		b.must("prepare", err)
		b.must("abort of an upload that was prepared", u.Abort())
		all := bytes.Repeat(c.write, c.times)
		if want := (load.Prepared{Name: name, Staged: p.Staged, Bytes: int64(len(all)), SHA256: fmt.Sprintf("%x", sha256.Sum256(all))}); p != want || p.Staged == "" {
			b.Fatalf("got %+v, want %+v", p, want)
		}
		b.checks("before the commit", p, nil)
		// Another process commits it, which knows only what the record of a commit holds.
		b.must("commit", b.place.Open().Commit(b.Context(), throughJSON(b, p)))
		b.checks("after the commit", p, nil)
		b.holds(name, string(all))
	}
	b.clean("empty.csv", "small.csv", "x/large.parquet")
}

// dataExtensions are the extensions that readers glob for.
var dataExtensions = [...]string{".csv", ".gz", ".zst", ".json", ".ndjson", ".jsonl", ".parquet", ".arrow"}

func nothingBeforeCommit(b *bench) {
	for _, extension := range dataExtensions {
		name := "x/part" + extension
		u := b.begin("run1", name, []byte("content"))
		b.absent(name)
		p, err := u.Prepare(b.Context())
		b.must("prepare", err)
		b.absent(name)
		b.begins("x")
		for _, name := range b.place.Names() {
			if !strings.HasPrefix(name, load.ControlFolder+"/") || strings.Contains(path.Base(name), extension) {
				b.Errorf("the staged object %s is found as data", name)
			}
		}
		b.abort(p)
	}
	b.clean()
}

func abortUpload(b *bench) {
	u := b.begin("run1", "part.csv", []byte("content"))
	b.must("abort", u.Abort())
	b.must("abort again", u.Abort())
	if _, err := u.Write([]byte("x")); err == nil {
		b.Error("write after abort: no error")
	}
	if _, err := u.Prepare(b.Context()); err == nil {
		b.Error("prepare after abort: no error")
	}
	b.clean()
}

func superseded(b *bench) {
	p := b.prepare("dt=2026-01-01/part.csv", "content")
	b.commit(p)
	b.delete(p.Name)
	b.absent(p.Name)
	b.checks("after the commit and a removal", p, load.ErrStagedGone)
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrStagedGone)
	b.clean()
}

func commitNeverOverwrites(b *bench) {
	b.commit(b.prepare("part.csv", "first"))
	for _, content := range []string{"other", ""} {
		p := b.prepare("part.csv", content)
		b.wants("commit of other content", b.d.Commit(b.Context(), p), load.ErrConflict)
		b.holds("part.csv", "first")
		b.abort(p)
	}
	b.clean("part.csv")
}

func goneIsNoOthers(b *bench) {
	p := b.prepare("part.csv", "mine!")
	b.put("part.csv", "other")
	b.abort(p)
	b.checks("of an object whose name is taken", p, load.ErrStagedGone)
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrConflict)
	b.holds("part.csv", "other")
	b.clean("part.csv")
}

func commitReplaces(b *bench) {
	b.put("out.csv", "old")
	b.put("empty.csv", "old")
	for name, content := range map[string]string{"out.csv": "new", "empty.csv": "", "a/out.csv": "new"} { // the last one is not there yet
		p, gone := b.prepare(name, content), b.prepare(name, "newer")
		p.Replace, gone.Replace = true, true
		b.checks("before the commit", p, nil)
		b.commit(p)
		b.must("commit again", b.place.Open().Commit(b.Context(), p))
		b.checks("after the commit", p, nil)
		b.abort(gone)
		b.checks("after the abort", gone, load.ErrStagedGone)
		b.wants("commit after the abort", b.d.Commit(b.Context(), gone), load.ErrStagedGone)
		b.holds(name, content)
	}
	b.clean("a/out.csv", "empty.csv", "out.csv")
}

func sameNameTwice(b *bench) {
	first, second := b.prepare("part.csv", "same"), b.prepare("part.csv", "same")
	if first.Staged == second.Staged {
		b.Fatalf("both lie at %s", first.Staged)
	}
	b.commit(first)
	b.commit(second) // the name holds equal content
	b.holds("part.csv", "same")
	b.clean("part.csv")
}

func strangeNames(b *bench) {
	for _, name := range []string{
		"a b/c d.csv", "Größe/データ.csv", "emoji-😀.csv", "a/b/c/d/e.csv",
		"dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet",
		"percent%2Fname.csv", "..two-dots.csv", "plus+and&.csv",
	} {
		b.commit(b.prepare(name, name))
		b.holds(name, name)
		b.delete(name)
	}
	b.clean()
}

// namesRefused tries names that could lead out of a destination or be misread as a path.
func namesRefused(b *bench) {
	refused := func(what, name string, err error) {
		b.Helper()
		if !errors.Is(err, load.ErrConfig) {
			b.Errorf("%s %.40q gives %v, want a load.ErrConfig", what, name, err)
		}
	}
	staged := func(run, name string) error {
		u, err := b.d.Stage(b.Context(), run, name)
		if err == nil {
			b.must("abort", u.Abort())
		}
		return err
	}
	leaving := []string{
		"", ".", "..", "../x.csv", "a/../../x.csv", "a/../x.csv", "/etc/x.csv", "a//x.csv", "a/", "/",
		"./x.csv", "a/./x.csv", "a\\..\\x.csv", "..\\x.csv", "x\x00.csv", "x\n.csv", "\xff.csv",
		strings.Repeat("a", 300), strings.Repeat("a/", 600) + "x",
	}
	for _, name := range append(leaving, load.ControlFolder, load.ControlFolder+"/x.csv") {
		refused("stage", name, staged("run1", name))
		refused("commit", name, b.d.Commit(b.Context(), load.Prepared{Name: name, Staged: "x"}))
		refused("check", name, b.d.Check(b.Context(), load.Prepared{Name: name, Staged: "x"}))
	}
	for _, name := range leaving {
		_, _, err := b.d.Get(b.Context(), name)
		refused("get", name, err)
		_, err = b.d.Open(b.Context(), name)
		refused("open", name, err)
		refused("put", name, b.d.Put(b.Context(), name, nil, load.AnyVersion))
		refused("delete", name, b.d.Delete(b.Context(), name))
		if name != "a/" { // what lies in a folder may be listed
			_, err = b.d.List(b.Context(), name)
			refused("list", name, err)
		}
	}
	for _, run := range []string{"", ".", "..", "../x", "a/b", "/a", "a\\b", "a\x00", "é", ".a", strings.Repeat("a", 300)} {
		refused("stage in run", run, staged(run, "x.csv"))
	}
	b.clean()
}

func cancelled(b *bench) {
	p := b.prepare("part.csv", "content")
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	for what, do := range map[string]func() error{
		"stage":     func() error { _, err := b.d.Stage(ctx, "run1", "b.csv"); return err },
		"commit":    func() error { return b.d.Commit(ctx, p) },
		"check":     func() error { return b.d.Check(ctx, p) },
		"get":       func() error { _, _, err := b.d.Get(ctx, "a"); return err },
		"put":       func() error { return b.d.Put(ctx, "a", nil, load.AnyVersion) },
		"delete":    func() error { return b.d.Delete(ctx, "a") },
		"list":      func() error { _, err := b.d.List(ctx, "a"); return err },
		"leftovers": func() error { _, err := b.d.Staged(ctx); return err },
		"holders":   func() error { _, err := b.d.Holders(ctx); return err },
	} {
		b.wants(what, do(), context.Canceled)
	}
	b.absent("part.csv")
	// Abort must work for a cancelled context too, because it cleans up after
	// stopped runs.
	b.must("abort", b.d.Abort(ctx, p))
	b.clean()
}

// Told returns the text of an error and, behind it, that of its hint.
func Told(err error) string {
	var says interface {
		error
		Hint() string
	}
	if errors.As(err, &says) {
		return err.Error() + "; " + says.Hint()
	}
	return err.Error()
}
