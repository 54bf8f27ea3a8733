package load_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
)

// journal opens a journal with records of the given numbers.
func journal(t testing.TB, d load.Store, run string, numbers ...int) *load.Journal {
	t.Helper()
	j, err := load.OpenJournal(t.Context(), d, load.JournalHeader{
		RunID: run, OpenedAt: time.Unix(1, 0).UTC(), Base: "b", Fingerprint: "f", Body: json.RawMessage(`{"x":1}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		if err := j.Record(t.Context(), load.JournalRecord{Number: n, Body: json.RawMessage(`[1]`)}); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

func numbers(records []load.JournalRecord) []int {
	list := make([]int, 0, len(records))
	for _, r := range records {
		list = append(list, r.Number)
	}
	return list
}

func TestJournal(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		s := open()
		_, _, err := load.ReadJournal(t.Context(), s.d)
		if !errors.Is(err, load.ErrNotExist) {
			t.Fatalf("an empty place: %v", err)
		}
		j := journal(t, s.d, "run1", 12, 0, 3)
		prepared := load.PreparedPart{Part: load.Part{Path: "p.csv", Rows: 2, MinID: 1, MaxID: 2}, Prepared: load.Prepared{Name: "p.csv", Staged: "x", Bytes: 7}}
		s.must(j.Record(t.Context(), load.JournalRecord{Number: 3, Parts: []load.PreparedPart{prepared}, Body: json.RawMessage(`[2]`)}))
		s.must(j.Forget(t.Context(), 12))
		s.must(j.Forget(t.Context(), 99))
		got, records, err := load.ReadJournal(t.Context(), s.d)
		s.must(err)
		if got.RunID != "run1" || got.Base != "b" || got.Fingerprint != "f" || string(got.Body) != `{"x":1}` || got.Token != j.Token || !got.OpenedAt.Equal(time.Unix(1, 0)) {
			t.Errorf("the header is %+v", got.JournalHeader)
		}
		if !slices.Equal(numbers(records), []int{0, 3}) || records[1].Parts[0] != prepared || string(records[1].Body) != `[2]` {
			t.Errorf("the records are %+v", records)
		}
		s.must(got.Close(t.Context()))
		s.must(j.Close(t.Context()))
		if names := s.names(); len(names) != 0 {
			t.Errorf("%v are left", names)
		}
	})
}

// Records of a journal that a crash left half-removed are not another's.
func TestJournalsDoNotMix(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		s := open()
		journal(t, s.d, "run1", 0, 1, 2)
		journal(t, s.d, "run2", 5)
		j, records, err := load.ReadJournal(t.Context(), s.d)
		s.must(err)
		if j.RunID != "run2" || !slices.Equal(numbers(records), []int{5}) {
			t.Errorf("run %s, records %v", j.RunID, numbers(records))
		}
		s.must(j.Close(t.Context()))
		s.must(load.RemoveJournal(t.Context(), s.d))
		if names := s.names(); len(names) != 0 {
			t.Errorf("%v are left", names)
		}
	})
}

func TestBrokenJournals(t *testing.T) {
	for name, c := range map[string]struct{ object, text string }{
		"no JSON":             {".formetl/journal", "{"},
		"no run":              {".formetl/journal", `{"token":"A"}`},
		"a run that leaves":   {".formetl/journal", `{"run_id":"../x","token":"A"}`},
		"a token that leaves": {".formetl/journal", `{"run_id":"r","token":"../../x"}`},
		"a broken record":     {"000001", "x"},
		"a record's number":   {"000001", `{"number":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := loadtest.NewMemory()
			j := journal(t, d, "run1", 1, 2)
			if c.object == "000001" {
				c.object = ".formetl/journal-" + j.Token + "/" + c.object
			}
			if err := d.Put(t.Context(), c.object, []byte(c.text), load.AnyVersion); err != nil {
				t.Fatal(err)
			}
			_, _, err := load.ReadJournal(t.Context(), d)
			if e := new(load.JournalError); !errors.As(err, &e) || e.Name != c.object {
				t.Errorf("error %v", err)
			}
			if err := load.RemoveJournal(t.Context(), d); err != nil || len(d.Names()) != 0 {
				t.Errorf("%v are left, %v", d.Names(), err)
			}
		})
	}
}

// A commit ends the journal of its run, wherever it is interrupted, and aborts
// what it does not need.
func TestCommitEndsTheJournal(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		for step := 1; ; step++ {
			s := open()
			c, _, err := s.change("run1", days{1: "x", 2: "y"})
			s.must(err)
			u, err := s.d.Stage(t.Context(), "run1", "unused.csv")
			s.must(err)
			_, err = u.Write([]byte("z"))
			s.must(err)
			unused, err := u.Prepare(t.Context())
			s.must(err)
			c.Unused = []load.Prepared{unused}
			c.Journal = journal(t, s.d, "run1", 0, 1).Token
			c.Hook, _ = killAt(step)
			done := c.Do(t.Context(), s.d)
			if done != nil && !errors.Is(done, errKilled) {
				t.Fatal(done)
			}
			r, err := load.Recover(t.Context(), s.d, "")
			s.must(err)
			_, _, err = load.ReadJournal(t.Context(), s.d)
			if wanted := r.RunID == "" && done != nil; wanted != (err == nil) {
				t.Fatalf("killed at action %d (%v): the journal gives %v", step, done, err)
			}
			if err != nil {
				s.holds("run1", days{1: "x", 2: "y"})
			}
			if done == nil {
				return
			}
		}
	})
}

// A commit that is taken back removes the journal too: what it lists is gone.
func TestRollBackEndsTheJournal(t *testing.T) {
	shops(t, func(t *testing.T, open func() shop) {
		s := open()
		s.must(s.run("run1", days{1: "a"}, nil))
		c, _, err := s.change("run2", days{2: "x"})
		s.must(err)
		c.Journal = journal(t, s.d, "run2", 0).Token
		s.must(s.d.Abort(t.Context(), c.New[0]))
		if err := c.Do(t.Context(), s.d); !errors.Is(err, load.ErrStagedGone) {
			t.Fatal(err)
		}
		s.holds("run1", days{1: "a"})
		if _, _, err := load.ReadJournal(t.Context(), s.d); !errors.Is(err, load.ErrNotExist) {
			t.Errorf("the journal gives %v", err)
		}
	})
}

// FuzzReadJournal reads whatever lies where a journal should.
func FuzzReadJournal(f *testing.F) {
	f.Add([]byte(`{"run_id":"r","opened_at":"2026-01-01T00:00:00Z","token":"T","base":"","fingerprint":"","body":{}}`),
		[]byte(`{"number":1,"parts":[{"part":{"path":"p","rows":1,"min_id":1,"max_id":1},"prepared":{"name":"p","staged":"s","bytes":1,"sha256":"x"}}],"body":[]}`))
	f.Add([]byte(`{`), []byte(`null`))
	f.Add([]byte(`{"run_id":"r","token":"../x"}`), []byte(`{"number":-1}`))
	f.Fuzz(func(t *testing.T, header, record []byte) {
		d := loadtest.NewMemory()
		for name, data := range map[string][]byte{".formetl/journal": header, ".formetl/journal-T/000001": record} {
			if err := d.Put(t.Context(), name, data, load.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
		j, records, err := load.ReadJournal(t.Context(), d)
		if err != nil {
			if e := new(load.JournalError); !errors.As(err, &e) {
				t.Fatal(err)
			}
		} else if load.CheckRun(j.RunID) != nil || j.Token == "T" && (len(records) != 1 || records[0].Number != 1) {
			t.Fatalf("%+v, %+v", j.JournalHeader, records)
		}
		if err := load.RemoveJournal(t.Context(), d); err != nil || len(d.Names()) != 0 {
			t.Fatalf("%v are left, %v", d.Names(), err)
		}
	})
}
