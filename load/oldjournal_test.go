package load_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
)

const journalHeader = load.ControlFolder + "/journal"

// journal leaves what an older version of the program left of a run that died
// with two parts prepared: a header, records beside it, and the staged parts.
func (s shop) journal(run string) []load.PreparedPart {
	s.t.Helper()
	token := "T" + run
	s.put(journalHeader, map[string]any{"run_id": run, "opened_at": "2026-02-01T10:00:00Z", "token": token, "base": "", "fingerprint": "f", "body": map[string]any{}})
	var parts []load.PreparedPart
	for day := 1; day <= 2; day++ {
		p, err := s.stage(run, 1, day, "text")
		s.must(err)
		s.put(fmt.Sprintf("%s-%s/%06d", journalHeader, token, day), map[string]any{"number": day, "parts": []load.PreparedPart{p}, "body": map[string]any{}})
		parts = append(parts, p)
	}
	return parts
}

func (s shop) put(name string, v any) {
	s.t.Helper()
	data, err := json.Marshal(v)
	s.must(err)
	s.must(s.d.Put(s.t.Context(), name, data, load.AnyVersion))
}

// journals are the names of what is left of journals.
func (s shop) journals() []string {
	s.t.Helper()
	found, err := s.d.List(s.t.Context(), journalHeader)
	s.must(err)
	return load.NamesOf(found)
}

// discards discards the journal and checks whose it was.
func (s shop) discards(want string) {
	s.t.Helper()
	run, err := load.DiscardJournal(s.t.Context(), s.d)
	if err != nil || run != want {
		s.t.Errorf("discarded that of %q, want %q: %v", run, want, err)
	}
	if left := s.journals(); len(left) > 0 {
		s.t.Errorf("%v are left", left)
	}
}

// Of an older version's journal nothing is left, its staged parts included;
// what others staged stays.
func TestDiscardJournal(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		s := open()
		s.discards("")
		s.must(s.run("base", days{5: "five"}, nil))
		s.leave("other", "dt=2026-01-03/part-20260103T000000-20260104T000000-000002-0000.csv")
		before := s.everything()
		s.journal("dead")
		_, err := s.stage("dead", 1, 3, "no record lists it")
		s.must(err)
		s.discards("dead")
		s.same("what is left", s.everything(), before)
		s.content(days{5: "five"})
		s.discards("")
	})
}

// A run of several outputs stages files beside the dataset under one id: they
// are not the journal's.
func TestDiscardJournalLeavesFiles(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		s := open()
		s.journal("dead")
		p, err := s.stageNamed("dead", "form1.csv", "file")
		s.must(err)
		s.discards("dead")
		s.must(s.d.Check(t.Context(), p))
	})
}

// Records that a crash left half-removed are removed with another run's
// journal, and without any header.
func TestDiscardJournalOfTwoRuns(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		s := open()
		first := s.journal("run1")
		s.journal("run2")
		s.discards("run2")
		for _, p := range first {
			s.must(s.d.Check(t.Context(), p.Prepared)) // whose they are, only Clean can tell
		}
		s.journal("run3")
		s.must(s.d.Delete(t.Context(), journalHeader))
		s.discards("unknown")
		s.clean("")
		if left := s.everything(); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

// The run of the journal may be alive at a file beside the dataset.
func TestDiscardJournalOfALiveRun(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		s := open()
		parts := s.journal("alive")
		s.hold("form1.csv", "alive")
		s.discards("alive")
		for _, p := range parts {
			s.must(s.d.Check(t.Context(), p.Prepared))
		}
	})
}

func TestDiscardJournalThatIsDamaged(t *testing.T) {
	for name, c := range map[string]struct{ header, run string }{
		"no JSON":           {"{", "unknown"},
		"empty":             {"", "unknown"},
		"no run":            {`{"token":"A"}`, "unknown"},
		"a run that leaves": {`{"run_id":"../x","token":"A"}`, "../x"},
		"another kind":      {`{"run_id":7}`, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			shops(t, func(t *testing.T, open func() shop) {
				s := open()
				s.journal("dead")
				s.must(s.d.Put(t.Context(), journalHeader, []byte(c.header), load.AnyVersion))
				s.discards(c.run)
				if cleaned := s.clean(""); runsOf(cleaned.Removed) != "dead dead" {
					t.Errorf("cleaning removed %+v", cleaned.Removed)
				}
			})
		})
	}
}

// A destination that cannot tell what is staged loses the journal all the same.
func TestDiscardJournalWithoutSweeper(t *testing.T) {
	m := loadtest.NewMemory()
	s := shop{t: t, d: m}
	s.journal("dead")
	run, err := load.DiscardJournal(t.Context(), struct{ load.Destination }{m})
	if err != nil || run != "dead" || len(m.Names()) > 0 || m.Staged() != 2 {
		t.Errorf("discarded that of %q, %v; %v and %d staged are left", run, err, m.Names(), m.Staged())
	}
}

// TestDiscardJournalWhereCallsFail: each call in turn fails. It is told, and
// discarding again leaves nothing.
func TestDiscardJournalWhereCallsFail(t *testing.T) {
	for n, hit := 0, true; hit; n++ {
		m := loadtest.NewMemory()
		s := shop{t: t, d: m}
		s.journal("dead")
		u := newUnreliable(m, n)
		_, err := load.DiscardJournal(t.Context(), u)
		if hit = u.hit; hit != errors.Is(err, errKilled) {
			t.Errorf("call %d failed: %t, and the error is %v", n, hit, err)
		}
		if _, err := load.DiscardJournal(t.Context(), m); err != nil || len(m.Names()) > 0 || m.Staged() > 0 {
			t.Errorf("call %d failed, and left are %v and %d staged: %v", n, m.Names(), m.Staged(), err)
		}
	}
}

// oldRecord makes the record of a commit that of an older version, which names
// its journal.
func (s shop) oldRecord() {
	s.t.Helper()
	name := load.ControlFolder + "/" + load.IntentName
	data, _, err := s.d.Get(s.t.Context(), name)
	s.must(err)
	text := strings.Replace(string(data), `{"dataset":{`, `{"dataset":{"journal":"Tdead",`, 1)
	if text == string(data) {
		s.t.Fatalf("the record is %s", data)
	}
	s.must(s.d.Put(s.t.Context(), name, []byte(text), load.AnyVersion))
}

// A commit that an older version recorded is finished before its journal is
// discarded, wherever it had stopped: the journal's parts are the commit's.
func TestRecordedCommitOfAJournal(t *testing.T) {
	for _, step := range []load.Step{load.StepUnmark, load.StepParts, load.StepManifest, load.StepSupersede, load.StepMark, load.StepClose} {
		t.Run(string(step), func(t *testing.T) {
			shops(t, func(t *testing.T, open func() shop) {
				s := open()
				s.must(s.run("base", days{1: "old", 5: "five"}, nil))
				s.journal("dead")
				if err := s.run("dead", days{1: "x", 2: "y"}, killBefore(step, 1)); !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				s.oldRecord()
				r, err := load.Recover(t.Context(), s.d, "", nil)
				if want := (load.Recovery{RunID: "dead", Finished: true}); err != nil || r != want {
					t.Errorf("%+v, %v", r, err)
				}
				s.discards("dead")
				s.holds("dead", days{1: "x", 2: "y", 5: "five"})
			})
		})
	}
}

// A commit of an older version that cannot be done any more is taken back, and
// the journal goes with it.
func TestRolledBackCommitOfAJournal(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		s := open()
		s.must(s.run("base", days{1: "a"}, nil))
		s.journal("dead")
		c, _, err := s.change("dead", days{2: "x"})
		s.must(err)
		c.Hook = killBefore(load.StepParts, 1)
		if err := c.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		s.oldRecord()
		s.must(s.d.Abort(t.Context(), c.New[0]))
		r, err := load.Recover(t.Context(), s.d, "", nil)
		if want := (load.Recovery{RunID: "dead"}); err != nil || r != want {
			t.Errorf("%+v, %v", r, err)
		}
		s.discards("dead")
		s.holds("base", days{1: "a"})
	})
}

// FuzzDiscardJournal discards whatever lies where an older version kept its
// journal, and touches nothing else.
func FuzzDiscardJournal(f *testing.F) {
	f.Add([]byte(`{"run_id":"r","opened_at":"2026-01-01T00:00:00Z","token":"T","base":"","fingerprint":"","body":{}}`), []byte(`{"number":1,"parts":[]}`))
	f.Add([]byte(`{`), []byte(`null`))
	f.Add([]byte(`{"run_id":"base","token":"../x"}`), []byte(`{"number":-1}`))
	f.Add([]byte(`{"run_id":"other"}`), []byte(nil))
	f.Fuzz(func(t *testing.T, header, record []byte) {
		m := loadtest.NewMemory()
		s := shop{t: t, d: m, names: m.Names}
		s.must(s.run("base", days{1: "one"}, nil))
		p, err := s.stageNamed("other", "form1.csv", "staged")
		s.must(err)
		before := m.Names()
		for name, data := range map[string][]byte{journalHeader: header, journalHeader + "-T/000001": record} {
			s.must(m.Put(t.Context(), name, data, load.AnyVersion))
		}
		if run, err := load.DiscardJournal(t.Context(), m); err != nil || run == "" || !slices.Equal(m.Names(), before) {
			t.Fatalf("of %q: %v; %v are left", run, err, m.Names())
		}
		s.must(m.Check(t.Context(), p))
		s.content(days{1: "one"})
	})
}
