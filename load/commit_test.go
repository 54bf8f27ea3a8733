package load_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

func TestDatasetCommit(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a", 2: "bb"}, nil))
	s.holds("run1", days{1: "a", 2: "bb"})
	s.must(s.run("run2", days{2: "new", 3: "ccc"}, nil))
	s.holds("run2", days{1: "a", 2: "new", 3: "ccc"})
	m, _, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
	s.must(err)
	sets := besideNames(m.Parts)
	slices.Sort(sets)
	want := []string{
		"_SUCCESS", sets[0], sets[1], sets[2], "_manifest.json", sets[3], sets[4], sets[5],
		"dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.csv",
		"dt=2026-01-02/part-20260102T000000-20260103T000000-000002-0000.csv",
		"dt=2026-01-03/part-20260103T000000-20260104T000000-000002-0000.csv",
	}
	if got := s.names(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A run is killed before each of its actions: its error says what the next run finds. What
// that makes of it the conformance suite shows.
func TestDatasetKilledAtEveryStep(t *testing.T) {
	for n := 0; ; n++ {
		s := newShop(t)
		s.must(s.run("run1", days{1: "a", 2: "b"}, nil))
		hook, killed := killAt(n)
		err := s.run("run2", days{2: "x", 3: "y"}, hook)
		if *killed == "" {
			s.must(err)
			return
		}
		var stopped *load.CommitError
		if !errors.As(err, &stopped) || stopped.Step != *killed || !errors.Is(err, errKilled) {
			t.Fatalf("killed at %s: %v", *killed, err)
		}
		recorded := *killed != load.StepCheck && *killed != load.StepBeside && *killed != load.StepIntent
		r, err := load.Recover(t.Context(), s.d, "", nil, false)
		if err != nil || stopped.Recorded != recorded || r.Finished != recorded {
			t.Errorf("killed at %s: recorded is %v, finished %v, %v", *killed, stopped.Recorded, r.Finished, err)
		}
	}
}

// Each changing operation of a commit fails once, without its effect or in spite
// of it, and so does each operation of the recovery after that; the run after
// them gives the truth.
func TestDatasetFaults(t *testing.T) {
	needs.Slow(t)
	for _, after := range []bool{false, true} {
		for n, hit := 0, true; hit; n++ {
			for m, again := 0, true; hit && again; m++ {
				hit, again = newShop(t).faults(n, m, after)
			}
		}
	}
}

// faults lets the n-th operation of a commit fail and the m-th of its
// recovery, and checks what the next run leaves. It tells whether there were
// so many operations.
func (s shop) faults(n, m int, after bool) (first, second bool) {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(s.run("run1", days{1: "a", 2: "b"}, nil))
	c, _, err := s.change("run2", days{2: "x", 4: "w"})
	s.must(err)
	commit := &faulty{Destination: s.d, n: n, after: after}
	err = c.Do(ctx, commit)
	if !commit.hit {
		s.must(err)
		return false, false
	}
	recovery := &faulty{Destination: s.d, n: m, after: after}
	_, _ = load.Recover(ctx, recovery, "", nil, false) // it may fail: the next one tries again
	if _, err := load.Recover(ctx, s.d, "", nil, false); err != nil {
		s.t.Fatalf("operations %d and %d fail (after: %v): %v", n, m, after, err)
	}
	for _, p := range c.New {
		s.must(s.d.Abort(ctx, p)) // what a run does that was not recorded
	}
	for _, l := range s.clean("").Removed {
		if !orphaned(l) {
			s.t.Errorf("operations %d and %d fail (after: %v): left is %+v", n, m, after, l)
		}
	}
	s.must(s.run("run3", days{2: "truth", 4: "z"}, nil))
	s.holds("run3", days{1: "a", 2: "truth", 4: "z"})
	return true, recovery.hit
}

// The rolling back of a commit is itself interrupted at every operation.
func TestRollBackFaults(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n, hit := 0, true; hit; n++ {
			s := newShop(t)
			s.must(s.run("run1", days{1: "a"}, nil))
			c, _, err := s.change("run2", days{1: "x", 2: "y", 3: "z"})
			s.must(err)
			c.Hook = killBefore(load.StepParts, 3) // two parts have their names
			if err := c.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			s.must(s.d.Abort(t.Context(), c.New[2]))
			broken := &faulty{Destination: s.d, n: n, after: after}
			_, _ = load.Recover(t.Context(), broken, "", nil, false) // it may fail: the next one tries again
			hit = broken.hit
			_, err = load.Recover(t.Context(), s.d, "", nil, false)
			s.must(err)
			s.clean("")
			s.holds("run1", days{1: "a"})
		}
	}
}

func wantConflict(t *testing.T, err error) {
	t.Helper()
	var stopped *load.CommitError
	if !errors.As(err, &stopped) || !errors.Is(err, load.ErrConflict) || stopped.Recorded {
		t.Fatalf("got %v, want a commit error that wraps ErrConflict", err)
	}
}

// Another run commits between a run's start and its commit.
func TestDatasetBaseChanged(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a"}, nil))
	loser, _, err := s.change("run2", days{1: "lost"})
	s.must(err)
	s.must(s.run("run3", days{1: "won"}, nil))
	wantConflict(t, loser.Do(t.Context(), s.d))
	s.must(s.d.Abort(t.Context(), loser.New[0]))
	s.holds("run3", days{1: "won"})
}

// The manifest is written by someone else in the middle of a commit, as can
// happen when a lease was lost.
func TestDatasetLosesTheSwap(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a", 2: "b"}, nil))
	loser, _, err := s.change("run2", days{2: "lost", 3: "lost too"})
	s.must(err)
	loser.Hook = func(step load.Step) error {
		if step != load.StepManifest {
			return nil
		}
		m, _, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
		if err != nil {
			return err
		}
		m.RunID = "other"
		data, err := m.Encode()
		if err != nil {
			return err
		}
		return s.d.Put(t.Context(), load.ManifestName, data, load.AnyVersion)
	}
	wantConflict(t, loser.Do(t.Context(), s.d))
	s.clean("")
	s.holds("other", days{1: "a", 2: "b"})
}

// Two runs make the same part under the same name and the other one wins: the
// loser must not take it away.
func TestDatasetLoserKeepsSharedPart(t *testing.T) {
	s := newShop(t)
	loser, _, err := s.change("run2", days{1: "same", 2: "lost"})
	s.must(err)
	winner, _, err := s.change("run3", days{1: "same"})
	s.must(err)
	loser.Hook = func(step load.Step) error {
		if step != load.StepManifest {
			return nil
		}
		if err := s.d.Commit(t.Context(), winner.New[0]); err != nil {
			return err
		}
		data, err := winner.Manifest.Encode()
		if err != nil {
			return err
		}
		return s.d.Put(t.Context(), load.ManifestName, data, load.NoVersion)
	}
	wantConflict(t, loser.Do(t.Context(), s.d))
	s.clean("")
	s.holds("run3", days{1: "same"})
}

// A file lies under a part's name and is none of ours.
func TestDatasetNameTaken(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a"}, nil))
	c, _, err := s.change("run2", days{2: "x", 3: "y"})
	s.must(err)
	s.must(s.d.Put(t.Context(), c.New[1].Name, []byte("foreign"), load.NoVersion))
	wantConflict(t, c.Do(t.Context(), s.d))
	data, _, err := s.d.Get(t.Context(), c.New[1].Name)
	if err != nil || string(data) != "foreign" {
		t.Fatalf("the foreign file holds %q, %v", data, err)
	}
	s.must(s.d.Delete(t.Context(), c.New[1].Name))
	s.clean("")
	s.holds("run1", days{1: "a"})
}

func TestCommitChecksItself(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*load.Commit)
		want   string
	}{
		{"another run's manifest", func(c *load.Commit) { c.Manifest.RunID = "other" }, `the manifest is from run "other"`},
		{"a part that is not listed", func(c *load.Commit) { c.Manifest.Parts, c.Manifest.Rows = nil, 0 }, "does not list"},
		{"another checksum", func(c *load.Commit) { c.New[0].SHA256 = strings.Repeat("0", 64) }, "does not list"},
		{"another length", func(c *load.Commit) { c.New[0].Bytes++ }, "does not list"},
		{"removes what it lists", func(c *load.Commit) { c.Remove = []string{c.New[0].Name} }, "but the commit removes it"},
		{"removes outside", func(c *load.Commit) { c.Remove = []string{"../x"} }, "which is not a file of a dataset"},
		{"an id set of no part", func(c *load.Commit) { c.Beside[0].Name = load.IDsName(strings.Repeat("0", 64)) }, "lists no part that"},
		{"an id set of a name of its own", func(c *load.Commit) { c.Beside[0].Name = "_ids/1.ids" }, "lists no part that"},
		{"an id set without content", func(c *load.Commit) {
			c.Beside = c.Beside[:1]
			c.Beside[0].Encode = func() ([]byte, error) { return nil, nil }
		}, "would be empty"},
		{"removes the manifest", func(c *load.Commit) { c.Remove = []string{load.ManifestName} }, "which is not a file of a dataset"},
		{"removes an id set outside", func(c *load.Commit) { c.Remove = []string{"_ids/../x.ids"} }, "which is not a file of a dataset"},
		{"rows do not add up", func(c *load.Commit) { c.Manifest.Rows++ }, "rows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newShop(t)
			c, _, err := s.change("run1", days{1: "a"})
			s.must(err)
			staged := c.New[0]
			test.change(&c)
			err = c.Do(t.Context(), s.d)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			s.must(s.d.Abort(t.Context(), staged))
			if names := s.names(); len(names) > 0 {
				t.Errorf("left %v", names)
			}
		})
	}
}

func TestCommitErrorSaysWhatIsNext(t *testing.T) {
	for recorded, want := range map[bool]string{
		false: `run r could not put its results in place (step "parts"): cause; nothing of the run is in the output`,
		true:  `run r could not put its results in place (step "parts"): cause; the next run does the rest`,
	} {
		err := &load.CommitError{RunID: "r", Step: load.StepParts, Recorded: recorded, Err: fmt.Errorf("cause")}
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// A staged file was damaged after the commit was recorded: the commit is taken
// back and its results are read again.
func TestRecoverDamagedParts(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"cut off": func(file string) error { return os.Truncate(file, 0) },
		"changed": func(file string) error { return os.WriteFile(file, []byte("?"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.must(s.run("run1", days{1: "a"}, nil))
			c, _, err := s.change("run2", days{1: "x", 2: "y"})
			s.must(err)
			c.Hook = killBefore(load.StepParts, 1) // the commit is recorded, and nothing visible
			if err := c.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			s.must(damage(filepath.Join(s.d.String(), filepath.FromSlash(c.New[1].Staged))))
			r, err := load.Recover(t.Context(), s.d, "", nil, false)
			s.must(err)
			if r != (load.Recovery{RunID: "run2"}) {
				t.Errorf("recovery is %+v", r)
			}
			s.clean("")
			s.holds("run1", days{1: "a"})
		})
	}
}

// A part of a commit whose manifest is written was removed: what is left of the commit is done
// all the same, so that parts of before do not lie beside new ones.
func TestRecoverBesideMissingPart(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a"}, nil))
	c, _, err := s.change("run2", days{1: "x", 2: "y"})
	s.must(err)
	c.Hook = killBefore(load.StepSupersede, 1)
	if err := c.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	s.must(s.d.Delete(t.Context(), c.New[1].Name))
	r, err := load.Recover(t.Context(), s.d, "", nil, false)
	if err != nil || r != (load.Recovery{RunID: "run2", Finished: true}) {
		t.Fatalf("recovery is %+v, %v", r, err)
	}
	m, _, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
	s.must(err)
	i, err := load.TakeInventory(t.Context(), s.d, m)
	s.must(err)
	if len(i.Unlisted) > 0 || len(i.Damaged) != 1 {
		t.Errorf("%v unlisted, %v damaged", i.Unlisted, i.Damaged)
	}
}

// A part whose results are all gone leaves no name to a later one, so that a reader that holds
// an older manifest finds the part missing instead of reading other results.
func TestNoNameTwice(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a"}, nil))
	s.must(s.run("run2", days{2: "b"}, nil))
	before, version, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
	s.must(err)
	m := manifest("run3")
	m.Parts = before.Parts[:1]
	m.Rows = m.Parts[0].Rows
	s.must(load.Commit{RunID: "run3", Manifest: m, Base: version}.Do(t.Context(), s.d))
	s.must(s.run("run4", days{2: "other"}, nil))
	after, _, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
	s.must(err)
	if old, fresh := before.Parts[1].Path, after.Parts[1].Path; old == fresh {
		t.Errorf("%s is the name of other results than before", old)
	}
}
