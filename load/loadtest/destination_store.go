package loadtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/formetl/formetl/load"
)

func putGetDelete(b *bench) {
	b.absent("nothing")
	b.absent("no/folder/nothing")
	b.delete("nothing") // is no error
	b.delete("no/folder/nothing")
	for _, content := range []string{"{}\n", "", "22"} {
		b.put("_rejects/run1.jsonl", content)
		b.holds("_rejects/run1.jsonl", content)
	}
	b.delete("_rejects") // a folder is no object
	b.clean("_rejects/run1.jsonl")
	b.delete("_rejects/run1.jsonl")
	b.absent("_rejects/run1.jsonl")
	b.clean()
}

func versions(b *bench) {
	put := func(content, version string) error { return b.d.Put(b.Context(), "m.json", []byte(content), version) }
	for _, content := range []string{"", "1"} {
		b.must("put if absent", put(content, load.NoVersion))
		b.wants("put if absent again", put("x", load.NoVersion), load.ErrConflict)
		b.holds("m.json", content)
		_, version, err := b.d.Get(b.Context(), "m.json")
		b.must("get", err)
		b.must("put", b.place.Open().Put(b.Context(), "m.json", []byte("2"), version))
		b.wants("put of an old version", put("3", version), load.ErrConflict)
		b.holds("m.json", "2")
		_, version, err = b.d.Get(b.Context(), "m.json")
		b.must("get", err)
		b.delete("m.json")
		b.wants("put of a version that is gone", put("2", version), load.ErrConflict)
		b.absent("m.json")
	}
}

// begins checks which objects List gives for a prefix, through a new Destination, and compares
// their sizes with what Get reads.
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

func listed(b *bench) {
	b.begins("nothing/")
	header, folder := load.ControlFolder+"/checkpoint", load.ControlFolder+"/checkpoint-X"
	all := []string{
		folder + "/000002", header, folder + "/000001",
		"a/b/2", "a/b/10", "a/b/1", "a/b/c/d", "a/b-c/x", "a/bc/x", "a/b.x", "ä/b/x", "a/ö z", "a/b/c0", "top",
	}
	for _, name := range all {
		b.put(name, name)
	}
	b.commit(b.prepare("x/part.csv", "content"))
	for prefix, want := range map[string][]string{
		"a/b/":                   {"a/b/1", "a/b/10", "a/b/2", "a/b/c/d", "a/b/c0"},
		"a/b/c/":                 {"a/b/c/d"},
		"a/":                     {"a/b-c/x", "a/b.x", "a/b/1", "a/b/10", "a/b/2", "a/b/c/d", "a/b/c0", "a/bc/x", "a/ö z"},
		"ä/":                     {"ä/b/x"},
		"a/b":                    {"a/b-c/x", "a/b.x", "a/b/1", "a/b/10", "a/b/2", "a/b/c/d", "a/b/c0", "a/bc/x"},
		"a/b/1":                  {"a/b/1", "a/b/10"},
		"a/b/c":                  {"a/b/c/d", "a/b/c0"},
		"t":                      {"top"},
		"a/b/1/":                 nil, // an object is not below itself
		"no":                     nil,
		"a/no":                   nil,
		"a/nothing/at/all/":      nil,
		"x":                      {"x/part.csv"},
		folder + "/":             {folder + "/000001", folder + "/000002"},
		load.ControlFolder + "/": {header, folder + "/000001", folder + "/000002"},
	} {
		b.begins(prefix, want...)
	}
	for _, name := range append(all, "x/part.csv") {
		b.delete(name)
	}
	b.begins(load.ControlFolder + "/")
	b.clean()
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
	b.put("m.json", "")
	const sides, rounds = 4, 5
	errs := race(sides, func(int) error {
		d := b.place.Open()
		for done := 0; done < rounds; {
			data, version, err := d.Get(b.Context(), "m.json")
			if err == nil {
				err = d.Put(b.Context(), "m.json", append(data, '+'), version)
			}
			switch {
			case err == nil:
				done++
			case !isConflict(err):
				return err
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

func raceLease(b *bench) {
	held := make([]load.Lease, 6)
	b.oneWinner(race(len(held), func(i int) (err error) {
		held[i], err = b.place.Open().Acquire(b.Context(), "", load.Holder{RunID: fmt.Sprint(i)})
		return err
	}), func(err error) bool {
		var other *load.HeldError
		return errors.As(err, &other)
	})
	for _, l := range held {
		if l != nil {
			b.must("release", l.Release(b.Context()))
		}
	}
}
