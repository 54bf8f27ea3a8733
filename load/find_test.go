package load_test

import (
	"context"
	"errors"
	"testing"

	"github.com/formetl/formetl/load"
)

func (s shop) look(scope string) load.Found {
	s.t.Helper()
	before := s.everything()
	found, err := load.Look(s.t.Context(), s.d, scope)
	s.must(err)
	s.same("after a look", s.everything(), before)
	return found
}

// TestLook tells what the dead left, and who is at it.
func TestLook(t *testing.T) {
	s := newShop(t)
	s.stageTwo("early")
	s.leave("dead", "dt=2026-01-01/part-20260101T000000-20260102T000000-000002-0000.csv")

	found := s.look("")
	if found.Holder != nil || found.Pending != "" || found.Nothing() {
		t.Errorf("found %+v", found)
	}
	if got := runsOf(found.Leftovers); got != "dead dead early early" {
		t.Errorf("leftovers of %s", got)
	}

	s.hold("form1.csv", "alive")
	if found := s.look(""); found.Holder != nil {
		t.Errorf("the lease of a file is told of the dataset: %+v", found.Holder)
	}
	if found := s.look("form1.csv"); found.Holder == nil || found.Holder.RunID != "alive" || found.Holder.Pipeline != "other" {
		t.Errorf("held by %+v", found.Holder)
	}

	s.hold("", "early")
	if found := s.look(""); runsOf(found.Leftovers) != "dead dead" || found.Holder == nil || found.Holder.RunID != "early" {
		t.Errorf("at a run that is alive found %+v", found)
	}
}

// unmarked is a store that does not tell whose uploads it holds.
type unmarked struct{ load.Destination }

func (u unmarked) Staged(ctx context.Context) ([]load.Leftover, error) {
	left, err := u.Destination.Staged(ctx)
	for i := range left {
		left[i].Kind, left[i].Run = load.UnfinishedUpload, ""
	}
	return left, err
}

// TestLookAtUnmarked: of uploads that nobody claims, those of a recorded commit stay, and those
// of another scope are another program's.
func TestLookAtUnmarked(t *testing.T) {
	s := newShop(t)
	if err := s.run("run2", days{1: "x"}, killBefore(load.StepParts, 1)); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	s.leave("dead", "dt=2026-01-09/part-20260109T000000-20260110T000000-000002-0000.csv")
	s.leave("dead", "form1.csv")
	for scope, want := range map[string][2]int{"": {1, 2}, "form1.csv": {0, 2}, "form2.csv": {0, 0}} {
		found, err := load.Look(t.Context(), unmarked{s.d}, scope)
		if err != nil || len(found.Kept) != want[0] || len(found.Leftovers) != want[1] {
			t.Errorf("%q: kept %v, left over %v, %v", scope, found.Kept, found.Leftovers, err)
		}
	}
}

func TestLookThatCannot(t *testing.T) {
	s := newShop(t)
	s.must(s.d.Put(t.Context(), load.ControlFolder+"/"+load.IntentName, []byte("{"), load.AnyVersion))
	var broken *load.RecordError
	if _, err := load.Look(t.Context(), s.d, ""); !errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
}
