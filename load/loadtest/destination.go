package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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

// Destination checks that a destination meets the contract of load.Destination.
// It also checks load.Leaser and load.Sweeper if the destination implements
// them. open gives a new empty place for each case.
func Destination(t *testing.T, open func(t *testing.T) Place) {
	for _, c := range slices.Concat(stageCases(), storeCases(), listCases(), raceCases(), sweepCases()) {
		t.Run(c.name, func(t *testing.T) {
			p := open(t)
			c.run(&bench{T: t, place: p, d: p.Open()})
		})
	}
}

type destinationCase struct {
	name string
	run  func(*bench)
}

func stageCases() []destinationCase {
	return []destinationCase{
		{"a committed object can be read", committedIsVisible},
		{"nothing is visible before the commit", nothingBeforeCommit},
		{"prepared describes the object", preparedDescribes},
		{"an aborted upload leaves nothing", abortUpload},
		{"an upload's abort after prepare is a no-op", abortAfterPrepare},
		{"an aborted prepared object leaves nothing", abortPrepared},
		{"abort after commit keeps the object", abortAfterCommit},
		{"abort twice is harmless", abortTwice},
		{"an ended upload refuses to go on", endedUpload},
		{"commit twice is harmless", commitTwice},
		{"commit after abort is gone", commitAfterAbort},
		{"commit never overwrites", commitNeverOverwrites},
		{"commit of what is gone is no other's object", goneIsNoOthers},
		{"commit replaces in one step where it may", commitReplaces},
		{"replace makes a file that was not there", replaceMakes},
		{"committing a replacement twice is harmless", replaceTwice},
		{"a replacement that is gone is told", replaceGone},
		{"an object committed and superseded is gone", commitThenDelete},
		{"a prepared object survives JSON and its process", preparedSurvives},
		{"a prepared object can be aborted by another process", preparedAbortedElsewhere},
		{"two objects of one name stage side by side", sameNameTwice},
		{"a large object keeps every byte", largeObject},
		{"an empty object is an object", emptyObject},
		{"many small writes are one object", smallWrites},
		{"names in folders, with spaces and in all scripts", strangeNames},
		{"names that would leave are refused", namesRefused},
		{"runs that are no folder's name are refused", runsRefused},
		{"staged objects are never found as data", stagedIsNoData},
		{"a cancelled context stops before anything is done", cancelled},
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

// prepare stages content under name.
func (b *bench) prepare(name, content string) load.Prepared {
	b.Helper()
	u, err := b.d.Stage(b.Context(), "run1", name)
	b.must("stage", err)
	_, err = u.Write([]byte(content))
	b.must("write", err)
	p, err := u.Prepare(b.Context())
	b.must("prepare", err)
	return p
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

func committedIsVisible(b *bench) {
	p := b.prepare("dt=2026-01-01/part-1.csv", "a,b\n")
	b.must("commit", b.d.Commit(b.Context(), p))
	b.holds("dt=2026-01-01/part-1.csv", "a,b\n")
	b.clean("dt=2026-01-01/part-1.csv")
}

func nothingBeforeCommit(b *bench) {
	u, err := b.d.Stage(b.Context(), "run1", "x/part.csv")
	b.must("stage", err)
	_, err = u.Write([]byte("content"))
	b.must("write", err)
	b.absent("x/part.csv")
	p, err := u.Prepare(b.Context())
	b.must("prepare", err)
	b.absent("x/part.csv")
	for _, name := range b.place.Names() {
		if !strings.HasPrefix(name, load.ControlFolder+"/") {
			b.Errorf("%s is visible before the commit", name)
		}
	}
	b.must("abort", b.d.Abort(b.Context(), p))
}

func preparedDescribes(b *bench) {
	p := b.prepare("part.csv", "hello")
	want := load.Prepared{
		Name: "part.csv", Staged: p.Staged, Bytes: 5,
		SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
	}
	if p != want || p.Staged == "" {
		b.Fatalf("got %+v, want %+v", p, want)
	}
}

func abortUpload(b *bench) {
	u, err := b.d.Stage(b.Context(), "run1", "part.csv")
	b.must("stage", err)
	_, err = u.Write([]byte("content"))
	b.must("write", err)
	b.must("abort", u.Abort())
	b.must("abort again", u.Abort())
	b.clean()
}

func abortAfterPrepare(b *bench) {
	u, err := b.d.Stage(b.Context(), "run1", "part.csv")
	b.must("stage", err)
	p, err := u.Prepare(b.Context())
	b.must("prepare", err)
	b.must("abort", u.Abort())
	b.must("commit", b.d.Commit(b.Context(), p))
	b.holds("part.csv", "")
}

func abortPrepared(b *bench) {
	p := b.prepare("part.csv", "content")
	b.must("abort", b.d.Abort(b.Context(), p))
	b.clean()
}

func abortAfterCommit(b *bench) {
	p := b.prepare("part.csv", "content")
	b.must("commit", b.d.Commit(b.Context(), p))
	b.must("abort", b.d.Abort(b.Context(), p))
	b.holds("part.csv", "content")
}

func abortTwice(b *bench) {
	p := b.prepare("part.csv", "content")
	b.must("abort", b.d.Abort(b.Context(), p))
	b.must("abort again", b.d.Abort(b.Context(), p))
	b.must("abort elsewhere", b.place.Open().Abort(b.Context(), p))
}

func endedUpload(b *bench) {
	u, err := b.d.Stage(b.Context(), "run1", "part.csv")
	b.must("stage", err)
	b.must("abort", u.Abort())
	if _, err := u.Write([]byte("x")); err == nil {
		b.Error("write after abort: no error")
	}
	if _, err := u.Prepare(b.Context()); err == nil {
		b.Error("prepare after abort: no error")
	}
	b.clean()
}

func commitTwice(b *bench) {
	p := b.prepare("part.csv", "content")
	b.must("commit", b.d.Commit(b.Context(), p))
	b.must("commit again", b.d.Commit(b.Context(), p))
	b.must("commit elsewhere", b.place.Open().Commit(b.Context(), p))
	b.holds("part.csv", "content")
}

func commitAfterAbort(b *bench) {
	p := b.prepare("part.csv", "content")
	b.must("abort", b.d.Abort(b.Context(), p))
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrStagedGone)
	b.clean()
}

func commitNeverOverwrites(b *bench) {
	first, second := b.prepare("part.csv", "first"), b.prepare("part.csv", "other")
	b.must("commit", b.d.Commit(b.Context(), first))
	b.wants("commit of other content", b.d.Commit(b.Context(), second), load.ErrConflict)
	b.holds("part.csv", "first")
	b.must("abort", b.d.Abort(b.Context(), second))
	b.clean("part.csv")
}

func goneIsNoOthers(b *bench) {
	p := b.prepare("part.csv", "mine!")
	b.must("put", b.d.Put(b.Context(), "part.csv", []byte("other"), load.NoVersion))
	b.must("abort", b.d.Abort(b.Context(), p))
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrConflict)
	b.holds("part.csv", "other")
	b.clean("part.csv")
}

func commitReplaces(b *bench) {
	b.must("put", b.d.Put(b.Context(), "out.csv", []byte("old"), load.NoVersion))
	p := b.prepare("out.csv", "new")
	p.Replace = true
	b.must("commit", b.d.Commit(b.Context(), p))
	b.holds("out.csv", "new")
	b.clean("out.csv")
}

func replaceMakes(b *bench) {
	p := b.prepare("a/out.csv", "new")
	p.Replace = true
	b.must("commit", b.d.Commit(b.Context(), p))
	b.holds("a/out.csv", "new")
}

func replaceTwice(b *bench) {
	p := b.prepare("out.csv", "new")
	p.Replace = true
	b.must("commit", b.d.Commit(b.Context(), p))
	b.must("commit again", b.place.Open().Commit(b.Context(), p))
	b.holds("out.csv", "new")
}

func replaceGone(b *bench) {
	b.must("put", b.d.Put(b.Context(), "out.csv", []byte("old"), load.NoVersion))
	p := b.prepare("out.csv", "new")
	p.Replace = true
	b.must("abort", b.d.Abort(b.Context(), p))
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrStagedGone)
	b.holds("out.csv", "old")
}

func commitThenDelete(b *bench) {
	p := b.prepare("dt=2026-01-01/part.csv", "content")
	b.must("commit", b.d.Commit(b.Context(), p))
	b.must("delete", b.d.Delete(b.Context(), p.Name))
	b.absent(p.Name)
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrStagedGone)
	b.clean()
}

// throughJSON encodes a prepared object in JSON and decodes it again.
func (b *bench) throughJSON(p load.Prepared) load.Prepared {
	b.Helper()
	data, err := json.Marshal(p)
	b.must("marshal", err)
	var q load.Prepared
	b.must("unmarshal", json.Unmarshal(data, &q))
	return q
}

func preparedSurvives(b *bench) {
	p := b.throughJSON(b.prepare("x/part.csv", "content"))
	b.must("commit", b.place.Open().Commit(b.Context(), p))
	b.holds("x/part.csv", "content")
	b.clean("x/part.csv")
}

func preparedAbortedElsewhere(b *bench) {
	p := b.throughJSON(b.prepare("x/part.csv", "content"))
	b.must("abort", b.place.Open().Abort(b.Context(), p))
	b.wants("commit", b.d.Commit(b.Context(), p), load.ErrStagedGone)
	b.clean()
}

func sameNameTwice(b *bench) {
	first, second := b.prepare("part.csv", "same"), b.prepare("part.csv", "same")
	if first.Staged == second.Staged {
		b.Fatalf("both lie at %s", first.Staged)
	}
	b.must("commit", b.d.Commit(b.Context(), first))
	// The name holds equal content, so the commit succeeds.
	b.must("commit of the equal one", b.d.Commit(b.Context(), second))
	b.holds("part.csv", "same")
	b.clean("part.csv")
}

func cancelled(b *bench) {
	p := b.prepare("part.csv", "content")
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	_, err := b.d.Stage(ctx, "run1", "b.csv")
	b.wants("stage", err, context.Canceled)
	b.wants("commit", b.d.Commit(ctx, p), context.Canceled)
	_, _, err = b.d.Get(ctx, "a")
	b.wants("get", err, context.Canceled)
	b.wants("put", b.d.Put(ctx, "a", nil, load.AnyVersion), context.Canceled)
	b.wants("delete", b.d.Delete(ctx, "a"), context.Canceled)
	b.absent("part.csv")
	// Abort must work for a cancelled context too, because it cleans up after
	// stopped runs.
	b.must("abort", b.d.Abort(ctx, p))
	b.clean()
}
