package load_test

import (
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

func TestLookThatCannot(t *testing.T) {
	s := newShop(t)
	s.must(s.d.Put(t.Context(), load.ControlFolder+"/"+load.IntentName, []byte("{"), load.AnyVersion))
	var broken *load.RecordError
	if _, err := load.Look(t.Context(), s.d, ""); !errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
}
