package load_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
)

var cleaner = load.Holder{RunID: "cleaner", Pipeline: "feedback", Host: "here", PID: 1}

// everything lists what lies at the place, staged objects included.
func (s shop) everything() []string {
	s.t.Helper()
	left, err := s.d.Staged(context.Background())
	s.must(err)
	found := s.names()
	for _, l := range left {
		found = append(found, "left by "+l.Run+": "+l.Path)
	}
	slices.Sort(found)
	return found
}

func (s shop) clean(scope string) load.Cleaned {
	s.t.Helper()
	cleaned, err := load.Clean(s.t.Context(), s.d, scope, cleaner, load.CleanOptions{})
	s.must(err)
	return cleaned
}

// leave stages what a run that dies leaves: a prepared object and one that is
// being written.
func (s shop) leave(run, name string) load.Prepared {
	s.t.Helper()
	p, err := s.stageNamed(run, name, "left")
	s.must(err)
	_, err = s.d.Stage(s.t.Context(), run, name)
	s.must(err)
	return p
}

// hold takes a lease for a run that stays alive for the rest of the test.
func (s shop) hold(scope, run string) {
	s.t.Helper()
	lease, err := s.d.Acquire(s.t.Context(), scope, load.Holder{RunID: run, Pipeline: "other"})
	s.must(err)
	s.t.Cleanup(func() { s.must(lease.Release(context.Background())) })
}

func (s shop) file(run, name, text string, hook load.Hook) error {
	p, err := s.stageNamed(run, name, text)
	s.must(err)
	m := manifest(run)
	m.Parts = []load.Part{{Path: name, Rows: 1, MinID: 1, MaxID: 1, Bytes: p.Bytes, SHA256: p.SHA256}}
	m.Rows = 1
	return load.Commit{RunID: run, File: name, Manifest: m, Base: load.NoVersion, New: []load.Prepared{p}, Hook: hook}.Do(context.Background(), s.d)
}

func runsOf(left []load.Leftover) string {
	runs := make([]string, 0, len(left))
	for _, l := range left {
		runs = append(runs, l.Run)
	}
	slices.Sort(runs)
	return strings.Join(runs, " ")
}

func (s shop) same(what string, got, want []string) {
	s.t.Helper()
	if !slices.Equal(got, want) {
		s.t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCleanRemovesWhatTheDeadLeft(t *testing.T) {
	for _, scope := range []string{"", "form1.csv"} {
		s := newShop(t)
		s.must(s.run("base", days{1: "one", 2: "two"}, nil))
		s.must(s.file("base2", "form1.csv", "file", nil))
		before := s.everything()
		s.leave("dead", "dt=2026-01-01/part-20260101T000000-20260102T000000-000002-0000.csv")
		s.leave("older", "form1.csv")
		cleaned := s.clean(scope)
		if got := runsOf(cleaned.Removed); got != "dead dead older older" || len(cleaned.Kept) > 0 {
			t.Errorf("removed those of %s, kept %v", got, cleaned.Kept)
		}
		s.same("what is left", s.everything(), before)
		s.content(days{1: "one", 2: "two"})
		again := s.clean(scope)
		if len(again.Removed)+len(again.Kept) > 0 || again.Recovery != (load.Recovery{}) {
			t.Errorf("cleaning again found %+v", again)
		}
		s.same("after cleaning twice", s.everything(), before)
	}
}

// content checks the dataset's content where a file lies beside it.
func (s shop) content(content days) {
	s.t.Helper()
	m, _, err := load.ReadManifest(s.t.Context(), s.d, load.ManifestName)
	s.must(err)
	for _, p := range m.Parts {
		data, _, err := s.d.Get(s.t.Context(), p.Path)
		s.must(err)
		if string(data) != content[p.From.Day()] {
			s.t.Errorf("%s holds %q", p.Path, data)
		}
	}
}

func TestCleanLeavesTheLiving(t *testing.T) {
	s := newShop(t)
	s.hold("other.csv", "alive")
	p := s.leave("alive", "other.csv")
	s.leave("dead", "form1.csv")
	cleaned := s.clean("form1.csv")
	if got := runsOf(cleaned.Removed); got != "dead dead" || len(cleaned.Kept) != 2 {
		t.Errorf("removed those of %q, kept %v", got, cleaned.Kept)
	}
	for _, k := range cleaned.Kept {
		if k.Run != "alive" || k.Why != "run alive is still running" {
			t.Errorf("kept %+v", k)
		}
	}
	s.must(s.d.Check(t.Context(), p))
	s.must(s.d.Commit(t.Context(), p))
}

func TestCleanIsRefusedWhereARunIsAlive(t *testing.T) {
	for _, o := range []load.CleanOptions{{}, {DryRun: true}} {
		s := newShop(t)
		s.leave("dead", "form1.csv")
		s.hold("", "alive")
		before := s.everything()
		cleaned, err := load.Clean(t.Context(), s.d, "", cleaner, o)
		var held *load.HeldError
		if !errors.As(err, &held) || held.RunID != "alive" || len(cleaned.Removed) > 0 {
			t.Errorf("got %+v, %v; want a HeldError that names the run", cleaned, err)
		}
		s.same("what is left", s.everything(), before)
	}
}

func TestCleanLeavesARecordedCommitOfAnotherScope(t *testing.T) {
	for _, scope := range []string{"", "form1.csv"} {
		s := newShop(t)
		hook, _ := killAt(2) // before the parts, after the intent
		if err := s.file("dead", "other.csv", "whole", hook); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		s.leave("dead2", "form1.csv")
		cleaned := s.clean(scope)
		if got := runsOf(cleaned.Removed); got != "dead2 dead2" || len(cleaned.Kept) != 1 || cleaned.Recovery.RunID != "" {
			t.Errorf("removed those of %q, kept %v", got, cleaned.Kept)
		}
		cleaned = s.clean("other.csv")
		if cleaned.Recovery != (load.Recovery{RunID: "dead", Finished: true}) {
			t.Errorf("got %+v", cleaned.Recovery)
		}
		data, _, err := s.d.Get(t.Context(), "other.csv")
		if string(data) != "whole" {
			t.Errorf("the file holds %q, %v", data, err)
		}
	}
}

func TestCleanDryRunTouchesNothing(t *testing.T) {
	s := newShop(t)
	s.must(s.run("base", days{1: "one"}, nil))
	s.leave("dead", "form1.csv")
	s.stageTwo("stopped")
	s.hold("other.csv", "alive")
	s.leave("alive", "other.csv")
	before := s.everything()
	told, err := load.Clean(t.Context(), s.d, "", cleaner, load.CleanOptions{DryRun: true})
	s.must(err)
	s.same("after the dry run", s.everything(), before)
	did := s.clean("")
	if runsOf(told.Removed) != runsOf(did.Removed) || len(told.Kept) != len(did.Kept) {
		t.Errorf("told %+v, did %+v", told, did)
	}
}

func TestCleanWithoutAnything(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out")
	d, err := local.New(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []load.CleanOptions{{}, {DryRun: true}} {
		cleaned, err := load.Clean(t.Context(), d, "", cleaner, o)
		if err != nil || len(cleaned.Removed)+len(cleaned.Kept) > 0 {
			t.Errorf("got %+v, %v", cleaned, err)
		}
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}
