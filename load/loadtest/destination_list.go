package loadtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/formetl/formetl/load"
)

func listCases() []destinationCase {
	return []destinationCase{
		{"list gives what lies below a folder, in order", listBelow},
		{"list of a missing folder is empty", listMissing},
		{"list reaches the control folder", listControl},
		{"list shows nothing before the commit", listStaged},
		{"check before commit, after commit, after abort", checkLife},
		{"check of another's object is gone", checkTaken},
		{"check of a replacement", checkReplaces},
		{"check of an empty object", checkEmpty},
		{"check refuses names that would leave", checkNames},
	}
}

// lists checks what List gives below a folder, through a new Destination.
func (b *bench) lists(folder string, want ...string) {
	b.Helper()
	b.begins(folder+"/", want...)
}

// begins checks which objects List gives for a prefix, and compares their sizes
// with what Get reads.
func (b *bench) begins(prefix string, want ...string) {
	b.Helper()
	d := b.place.Open()
	got, err := d.List(b.Context(), prefix)
	b.must("list "+prefix, err)
	if !slices.Equal(load.NamesOf(got), want) {
		b.Fatalf("with %s begin %q, want %q", prefix, load.NamesOf(got), want)
	}
	for _, o := range got {
		data, _, err := d.Get(b.Context(), o.Name)
		b.must("get "+o.Name, err)
		if int64(len(data)) != o.Bytes {
			b.Fatalf("%s has %d bytes, and the list says %d", o.Name, len(data), o.Bytes)
		}
	}
}

func listBelow(b *bench) {
	for _, name := range []string{
		"a/b/2", "a/b/10", "a/b/1", "a/b/c/d", "a/b-c/x", "a/bc/x", "a/b.x", "ä/b/x", "a/ö z", "a/b/c0", "top",
	} {
		b.must("put "+name, b.d.Put(b.Context(), name, []byte(name), load.AnyVersion))
	}
	b.lists("a/b", "a/b/1", "a/b/10", "a/b/2", "a/b/c/d", "a/b/c0")
	b.lists("a/b/c", "a/b/c/d")
	b.lists("a", "a/b-c/x", "a/b.x", "a/b/1", "a/b/10", "a/b/2", "a/b/c/d", "a/b/c0", "a/bc/x", "a/ö z")
	b.lists("ä", "ä/b/x")
	b.begins("a/b", "a/b-c/x", "a/b.x", "a/b/1", "a/b/10", "a/b/2", "a/b/c/d", "a/b/c0", "a/bc/x")
	b.begins("a/b/1", "a/b/1", "a/b/10")
	b.begins("a/b/c", "a/b/c/d", "a/b/c0")
	b.begins("t", "top")
	b.begins("a/b/1/")
	b.must("delete", b.d.Delete(b.Context(), "a/b/1"))
	b.lists("a/b", "a/b/10", "a/b/2", "a/b/c/d", "a/b/c0")
}

func listMissing(b *bench) {
	b.lists("nothing")
	b.must("put", b.d.Put(b.Context(), "a/b", []byte("x"), load.AnyVersion))
	b.lists("nothing")
	b.lists("a/nothing/at/all")
	b.begins("no")
	b.begins("a/no")
	b.lists("a/b") // an object is not below itself
	b.lists(load.ControlFolder)
	for _, name := range leavingNames {
		if name == "a/" {
			continue // a prefix that ends with a slash is no name
		}
		_, err := b.d.List(b.Context(), name)
		b.refused(fmt.Sprintf("list %.40q", name), err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	_, err := b.d.List(ctx, "a")
	b.wants("list", err, context.Canceled)
	b.clean("a/b")
}

func listControl(b *bench) {
	header, folder := load.ControlFolder+"/checkpoint", load.ControlFolder+"/checkpoint-X"
	for _, name := range []string{folder + "/000002", header, folder + "/000001"} {
		b.must("put "+name, b.d.Put(b.Context(), name, []byte("{}"), load.NoVersion))
	}
	b.lists(folder, folder+"/000001", folder+"/000002")
	b.lists(load.ControlFolder, header, folder+"/000001", folder+"/000002")
	for _, name := range []string{folder + "/000002", header, folder + "/000001"} {
		b.must("delete "+name, b.d.Delete(b.Context(), name))
	}
	b.lists(folder)
	b.clean()
}

func listStaged(b *bench) {
	p := b.prepare("x/part.csv", "content")
	b.lists("x")
	b.must("commit", b.d.Commit(b.Context(), p))
	b.lists("x", "x/part.csv")
	b.lists(load.ControlFolder)
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

func checkLife(b *bench) {
	p, dropped := b.throughJSON(b.prepare("x/part.csv", "content")), b.prepare("x/other.csv", "content")
	b.checks("before the commit", p, nil)
	b.must("commit", b.d.Commit(b.Context(), p))
	b.checks("after the commit", p, nil)
	b.must("delete", b.d.Delete(b.Context(), p.Name))
	b.checks("after the commit and a removal", p, load.ErrStagedGone)
	b.checks("before the abort", dropped, nil)
	b.must("abort", b.d.Abort(b.Context(), dropped))
	b.checks("after the abort", dropped, load.ErrStagedGone)
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	b.wants("check", b.d.Check(ctx, p), context.Canceled)
	b.clean()
}

func checkTaken(b *bench) {
	p := b.prepare("part.csv", "mine!")
	b.must("put", b.d.Put(b.Context(), "part.csv", []byte("other"), load.NoVersion))
	b.must("abort", b.d.Abort(b.Context(), p))
	b.checks("of an object whose name is taken", p, load.ErrStagedGone)
}

func checkReplaces(b *bench) {
	b.must("put", b.d.Put(b.Context(), "out.csv", []byte("old"), load.NoVersion))
	p, gone := b.prepare("out.csv", "new"), b.prepare("out.csv", "newer")
	p.Replace, gone.Replace = true, true
	b.checks("before the commit", p, nil)
	b.must("commit", b.d.Commit(b.Context(), p))
	b.checks("after the commit", p, nil)
	b.must("abort", b.d.Abort(b.Context(), gone))
	b.checks("after the abort", gone, load.ErrStagedGone)
}

func checkEmpty(b *bench) {
	p := b.prepare("empty.csv", "")
	b.checks("before the commit", p, nil)
	b.must("commit", b.d.Commit(b.Context(), p))
	b.checks("after the commit", p, nil)
}

func checkNames(b *bench) {
	for _, name := range append(leavingNames[:], load.ControlFolder+"/x.csv") {
		b.refused(fmt.Sprintf("check %.40q", name), b.d.Check(b.Context(), load.Prepared{Name: name, Staged: "x"}))
	}
}
