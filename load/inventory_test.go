package load_test

import (
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// TestTakeInventory compares what lies there with the manifest: parts that are
// gone, shorter or unknown, in partitions and without, and nothing else.
func TestTakeInventory(t *testing.T) {
	d := newShop(t).d
	whole, gone, short := part(1, 1, 0, "a"), part(2, 1, 0, "b"), part(3, 2, 0, "c")
	odd := load.Part{Path: "by-hand.csv", Bytes: 7} // no name of ours, so no listing tells of it
	unlisted := []string{part(3, 1, 0, "c").Path, "part-min-max-000001-0000.csv", "part-undated-000003-0000 (copy).parquet"}
	for name, data := range map[string]string{
		whole.Path: "x", short.Path: "", unlisted[0]: "old", unlisted[1]: "1", unlisted[2]: "22",
		"dt=2026-01-01/notes.txt": "x", "part-of-a-book.csv": "x", "dt=2026-01-01.csv": "x", "_ids/x.ids": "x", ".formetl/lease": "x", "sub/" + whole.Path: "x",
	} {
		if err := d.Put(t.Context(), name, []byte(data), load.NoVersion); err != nil {
			t.Fatal(err)
		}
	}
	m := &load.Manifest{Parts: []load.Part{whole, gone, short, odd}}
	got, err := load.TakeInventory(t.Context(), d, m)
	for i := range got.Unlisted {
		got.Unlisted[i].Changed = time.Time{}
	}
	want := load.Inventory{
		Damaged:  []load.DamagedPart{{Part: gone, Missing: true}, {Part: short}},
		Unlisted: []load.Object{{Name: unlisted[0], Bytes: 3}, {Name: unlisted[1], Bytes: 1}, {Name: unlisted[2], Bytes: 2}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, %v, want\n%+v", got, err, want)
	}
	if sound := got.Sound(m.Parts); !reflect.DeepEqual(sound, []load.Part{whole, odd}) {
		t.Errorf("sound are %+v", sound)
	}
	// Without a manifest all are unlisted, and an empty place has none.
	if got, err := load.TakeInventory(t.Context(), d, nil); err != nil || len(got.Unlisted) != 5 || len(got.Damaged) != 0 {
		t.Errorf("without a manifest: %+v, %v", got, err)
	}
	if got, err := load.TakeInventory(t.Context(), newShop(t).d, nil); err != nil || len(got.Unlisted) != 0 || len(got.Damaged) != 0 {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
}

// TestCleanUnlisted removes what no manifest lists, only where it is told to,
// and nothing that a manifest or a recorded commit names.
func TestCleanUnlisted(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "one", 2: "two"}, nil))
	stray := part(2, 9, 0, "x").Path
	s.must(s.d.Put(t.Context(), stray, []byte("stray"), load.NoVersion))
	unlisted := func(o load.CleanOptions) (load.Cleaned, error) {
		return load.Clean(t.Context(), s.d, "", cleaner, o)
	}
	kept, err := unlisted(load.CleanOptions{})
	if err != nil || len(kept.Removed) != 0 || len(kept.Kept) != 1 || kept.Kept[0].Name != stray {
		t.Fatalf("%+v, %v", kept, err)
	}
	dry, err := unlisted(load.CleanOptions{DryRun: true, Unlisted: true})
	if err != nil || len(dry.Removed) != 1 || dry.Removed[0].Bytes != 5 {
		t.Fatalf("%+v, %v", dry, err)
	}
	if _, _, err := s.d.Get(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	// A recorded commit's parts are no strays, though the manifest does not list them.
	stop := errors.New("killed")
	if err := s.run("run2", days{2: "again", 3: "three"}, func(step load.Step) error {
		if step == load.StepSupersede { // the manifest lists the old part of day 2 no more
			return stop
		}
		return nil
	}); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	pending, err := unlisted(load.CleanOptions{DryRun: true, Unlisted: true})
	if err != nil || len(pending.Removed) != 1 || pending.Recovery.RunID != "run2" {
		t.Fatalf("%+v, %v", pending, err)
	}
	done, err := unlisted(load.CleanOptions{Unlisted: true})
	if err != nil || len(done.Removed) != 1 || done.Removed[0].Name != stray {
		t.Fatalf("%+v, %v", done, err)
	}
	s.holds("run2", days{1: "one", 2: "again", 3: "three"})

	// Of a manifest that cannot be read nobody can tell what it lists.
	s.must(s.d.Put(t.Context(), load.ManifestName, []byte("{"), load.AnyVersion))
	if _, err := unlisted(load.CleanOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := unlisted(load.CleanOptions{Unlisted: true}); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a damaged manifest: %v", err)
	}
	s.must(s.d.Delete(t.Context(), load.ManifestName))
	if done, err = unlisted(load.CleanOptions{Unlisted: true}); err != nil || len(done.Removed) != 9 { // and their id sets and dead letters
		t.Errorf("%+v, %v", done, err)
	}
	for _, name := range s.names() {
		t.Errorf("%s lies there still", name)
	}
}
