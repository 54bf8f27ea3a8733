package load_test

import (
	"errors"
	"testing"

	"github.com/formetl/formetl/load"
)

// A commit that was recorded and not published has changed nothing that a
// reader sees, and whoever comes next finishes it.
func TestRecordedCommitIsFinished(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a", 2: "b"}, nil))
	c, _, err := s.change("run2", days{2: "x", 3: "y"})
	s.must(err)
	publish, err := c.Record(t.Context(), s.d)
	s.must(err)
	s.content(days{1: "a", 2: "b"})
	if _, _, err := s.d.Get(t.Context(), load.SuccessName); err != nil {
		t.Errorf("the old state is not marked as whole: %v", err)
	}
	r, err := load.Recover(t.Context(), s.d, "", nil, false)
	if want := (load.Recovery{RunID: "run2", Finished: true}); err != nil || r != want {
		t.Fatalf("%+v, %v", r, err)
	}
	s.holds("run2", days{1: "a", 2: "x", 3: "y"})
	// The process that had recorded it comes to it late.
	s.must(publish(t.Context()))
	s.holds("run2", days{1: "a", 2: "x", 3: "y"})
}

// Records of several outputs stand side by side, and each is finished alone.
func TestRecordedCommitsOfSeveralOutputs(t *testing.T) {
	s := newShop(t)
	c, _, err := s.change("run1", days{1: "a"})
	s.must(err)
	_, err = c.Record(t.Context(), s.d)
	s.must(err)
	p, err := s.stageNamed("run1", fileName, "file")
	s.must(err)
	m := manifest("run1")
	m.Parts, m.Rows = []load.Part{{Path: fileName, Rows: 1, MinID: 1, MaxID: 1, Bytes: p.Bytes, SHA256: p.SHA256}}, 1
	_, err = load.Commit{RunID: "run1", File: fileName, Manifest: m, Base: load.NoVersion, New: []load.Prepared{p}}.Record(t.Context(), s.d)
	s.must(err)
	if _, _, err := s.d.Get(t.Context(), fileName); !errors.Is(err, load.ErrNotExist) {
		t.Errorf("the file is visible: %v", err)
	}
	for _, scope := range []string{fileName, ""} {
		if found := s.look(scope); found.Pending != "run1" || len(found.Leftovers) > 0 {
			t.Errorf("at %q found %+v", scope, found)
		}
		r, err := load.Recover(t.Context(), s.d, scope, nil, false)
		if err != nil || !r.Finished {
			t.Errorf("%q: %+v, %v", scope, r, err)
		}
	}
	if data, _, err := s.d.Get(t.Context(), fileName); err != nil || string(data) != "file" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	s.content(days{1: "a"})
}

// A commit that is not the first is refused when it is recorded; the run that recorded before
// it is not touched.
func TestRecordRefused(t *testing.T) {
	s := newShop(t)
	first, _, err := s.change("run1", days{1: "a"})
	s.must(err)
	second, _, err := s.change("run2", days{1: "b"})
	s.must(err)
	publish, err := first.Record(t.Context(), s.d)
	s.must(err)
	_, err = second.Record(t.Context(), s.d)
	failed := new(load.CommitError)
	if !errors.Is(err, load.ErrConflict) || !errors.As(err, &failed) || failed.Recorded || failed.RunID != "run2" {
		t.Errorf("error %v", err)
	}
	s.must(s.d.Abort(t.Context(), second.New[0]))
	s.must(publish(t.Context()))
	s.holds("run1", days{1: "a"})
}

// A record that may stand in spite of an error keeps the staged parts.
func TestRecordWhereThePutFails(t *testing.T) {
	for _, after := range []bool{false, true} {
		s := newShop(t)
		c, _, err := s.change("run1", days{1: "a"})
		s.must(err)
		_, err = c.Record(t.Context(), &faulty{Destination: s.d, n: 2, after: after}) // after the id set and the dead letters
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		s.must(s.d.Check(t.Context(), c.New[0]))
		r, err := load.Recover(t.Context(), s.d, "", nil, false)
		if err != nil || r.Finished != after {
			t.Errorf("after %t: %+v, %v", after, r, err)
		}
		if after {
			s.holds("run1", days{1: "a"})
		}
	}
}
