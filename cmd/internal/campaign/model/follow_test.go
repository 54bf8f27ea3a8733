package model

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
)

// TestFollowed has a run that continues the dataset and read nothing of the two
// days: what changed there before it must be there all the same.
func TestFollowed(t *testing.T) {
	lookback := &readback.Changes{Method: "lookback"}
	for _, c := range []struct {
		name    string
		before  func(s *scene)    // the run
		changes *readback.Changes // nil: the service told
		want    string            // "": nothing is wrong
	}{
		{name: "nothing changed"},
		{name: "edited", before: func(s *scene) { s.put(2, 1, "later") }, want: `column "item_1" is "first", and then was "later"`},
		{name: "moved", before: func(s *scene) { s.put(2, 2, "first") }, want: "that state is dated 2026-01-02"},
		{name: "deleted", before: func(s *scene) { s.form.Remove(2) }, want: "it was deleted, and is in"},
		{name: "new", before: func(s *scene) { s.put(9, 1, "first") }, want: "has no row"},
		{name: "edited, by lookback", before: func(s *scene) { s.put(2, 1, "later") }, changes: lookback},
		{name: "deleted, by lookback", before: func(s *scene) { s.form.Remove(2) }, changes: lookback},
		{name: "edited while nobody knew", before: func(s *scene) {
			s.put(2, 1, "later")
			s.facts.Blind = s.form.At()
		}},
		{name: "outside the definition's range", before: func(s *scene) {
			s.put(9, 1, "first")
			s.facts.From = span("2026-01-02", "2026-01-03").From.Time
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.write()
			before, err := s.d.Look(s.o)
			if err != nil {
				t.Fatal(err)
			}
			s.facts.Ranges, s.facts.Follows, s.facts.Blind = []Reading{{Span: span("2026-01-02", "2026-01-02")}}, true, -1
			if c.before != nil {
				c.before(s)
			}
			s.facts.Start, s.facts.Oldest, s.facts.End = s.form.At(), s.form.At(), s.form.At()
			after, err := s.d.Look(s.o)
			if err != nil {
				t.Fatal(err)
			}
			if after.Manifest.Changes = c.changes; c.changes == nil {
				after.Manifest.Changes = &readback.Changes{Method: MethodChanges}
			}
			got := ""
			if err := s.d.Judge(s.o, s.form, before, after, s.facts); err != nil {
				got = err.Error()
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("the oracle says %q, and should say %q", got, c.want)
			}
		})
	}
}

// TestShown keeps the time of a change as the service answers it.
func TestShown(t *testing.T) {
	s := newScene(t)
	s.form.Served.SetClock(func() time.Time { return span("2026-01-05", "2026-01-06").From.Time })
	s.form.Lack = 2
	for id, want := range map[int64]string{1: "2026-01-05 00:00:00", 2: ""} {
		s.put(id, 1, "later")
		state, _ := s.form.Histories()[id].Current()
		if got, _ := state.Is.Meta("date_update"); got != want {
			t.Errorf("result %d changed at %q, want %q", id, got, want)
		}
	}
}
