package load_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/load/local"
)

// sets are the id sets and dead letters that lie at the place.
func (s shop) sets() []string {
	s.t.Helper()
	ids, err := s.d.List(context.Background(), "_ids/")
	s.must(err)
	letters, err := s.d.List(context.Background(), "_rejects/")
	s.must(err)
	return append(load.NamesOf(ids), load.NamesOf(letters)...)
}

// orphaned tells whether a leftover lay beside a part that is not there.
func orphaned(l load.Leftover) bool {
	return l.Kind == load.OrphanedIDs && strings.HasPrefix(l.Name, "_ids/") || l.Kind == load.OrphanedLetters && strings.HasPrefix(l.Name, "_rejects/")
}

// A run is killed after each number of sets and dies: they are what clean
// tells and removes.
func TestCleanRemovesOrphanedIDs(t *testing.T) {
	for n, want := range []int{0, 1, 2, 2, 4} { // the third set is shared
		s := newShop(t)
		s.must(s.run("run1", days{1: "a", 2: "equal"}, nil))
		c, _, err := s.change("dead", days{1: "x", 3: "equal", 4: "y"})
		s.must(err)
		c.Hook = killBefore(load.StepBeside, n+1)
		if n == 4 {
			c.Hook = killBefore(load.StepIntent, 1)
		}
		if err := c.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		for _, p := range c.New {
			s.must(s.d.Abort(t.Context(), p))
		}
		// What is no id set is somebody's.
		for _, name := range []string{"_ids/notes.ids", "_ids/" + strings.Repeat("A", 64) + ".ids", "_ids/old/" + strings.Repeat("0", 64) + ".ids"} {
			s.must(s.d.Put(t.Context(), name, []byte("x"), load.NoVersion))
		}
		if beside := s.clean("form1.csv"); len(beside.Removed) > 0 {
			t.Errorf("beside it: %+v", beside)
		}
		told, err := load.Clean(t.Context(), s.d, "", cleaner, load.CleanOptions{DryRun: true})
		s.must(err)
		cleaned := s.clean("")
		if len(cleaned.Removed) != want || !slices.Equal(told.Removed, cleaned.Removed) {
			t.Errorf("told %+v, removed %+v, want %d", told.Removed, cleaned.Removed, want)
		}
		for _, l := range cleaned.Removed {
			if !orphaned(l) || !strings.HasSuffix(l.Path, "/"+l.Name) || l.Bytes <= 0 || l.Run != "" {
				t.Errorf("removed %+v", l)
			}
		}
		if sets := s.sets(); len(sets) != 2*2+3 {
			t.Errorf("left are %v", sets)
		}
		s.content(days{1: "a", 2: "equal"})
		if again := s.clean(""); len(again.Removed) > 0 {
			t.Errorf("cleaning again removed %+v", again.Removed)
		}
	}
}

// A run that writes its sets is alive: nobody who looks takes them for
// leftovers. The sets of a manifest that cannot be read are nobody's to judge.
func TestOrphanedIDsThatMayBeNeeded(t *testing.T) {
	orphan := func(s shop) {
		s.must(s.d.Put(s.t.Context(), load.IDsName(strings.Repeat("0", 64)), []byte("x"), load.AnyVersion))
	}
	s := newShop(t)
	orphan(s)
	s.hold("", "alive")
	found, err := load.Look(t.Context(), s.d, "")
	s.must(err)
	if len(found.Leftovers) > 0 || found.Holder == nil {
		t.Errorf("found %+v beside a run that is alive", found)
	}
	s = newShop(t)
	s.must(s.run("run1", days{1: "a"}, nil))
	orphan(s)
	s.leave("dead", "form1.csv")
	s.must(s.d.Put(t.Context(), load.ManifestName, []byte("{"), load.AnyVersion))
	if cleaned := s.clean(""); runsOf(cleaned.Removed) != "dead dead" {
		t.Errorf("removed %+v", cleaned.Removed)
	}
	s.must(s.d.Delete(t.Context(), load.ManifestName))
	if cleaned := s.clean(""); len(cleaned.Removed) != 0 {
		t.Errorf("without a manifest, beside parts: removed %+v", cleaned.Removed)
	}
	for _, prefix := range []string{"dt=", "part-"} {
		objects, err := s.d.List(t.Context(), prefix)
		s.must(err)
		for _, o := range objects {
			s.must(s.d.Delete(t.Context(), o.Name))
		}
	}
	if cleaned := s.clean(""); len(cleaned.Removed) != 3 {
		t.Errorf("without a manifest and parts: removed %+v", cleaned.Removed)
	}
}

// leaseless is a destination whose leases nobody can take.
type leaseless struct{ *local.Destination }

func (leaseless) Acquire(context.Context, string, load.Holder) (load.Lease, error) {
	return nil, errDenied
}

// A dataset whose parts have their sets has nothing to clean, so that no lease
// is taken, as one may not write there.
func TestCleanTakesNoLeaseForSetsInUse(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a", 2: "b"}, nil))
	cleaned, err := load.Clean(t.Context(), leaseless{s.d}, "", cleaner, load.CleanOptions{})
	if err != nil || len(cleaned.Removed) > 0 {
		t.Errorf("%+v, %v", cleaned, err)
	}
	s.must(s.d.Delete(t.Context(), load.ManifestName))
	if _, err := load.Clean(t.Context(), leaseless{s.d}, "", cleaner, load.CleanOptions{Unlisted: true}); !errors.Is(err, errDenied) {
		t.Errorf("with orphans: %v", err)
	}
}

// TestPartIDs: a set of ids is that of its part by number, lowest and highest id. Rows of an
// exploded list are of any number.
func TestPartIDs(t *testing.T) {
	s := newShop(t)
	data := idset.Encode(idset.Of(3, 5, 9))
	sum := idset.Sum(data)
	s.must(s.d.Put(t.Context(), load.IDsName(sum), data, load.AnyVersion))
	for _, c := range []struct {
		rows, lowest, highest int64
		exploded, fits        bool
	}{{3, 3, 9, false, true}, {7, 3, 9, true, true}, {7, 3, 9, false, false}, {3, 2, 9, true, false}, {3, 3, 10, true, false}} {
		_, err := load.PartIDs(t.Context(), s.d, load.Part{IDs: sum, Rows: c.rows, MinID: c.lowest, MaxID: c.highest}, c.exploded)
		if c.fits != (err == nil) || !c.fits && !errors.Is(err, idset.ErrDamaged) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
