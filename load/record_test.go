package load_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
)

const (
	datasetRecord = ".formetl/intent"
	precious      = "of somebody else"
)

// foreign are objects in a dataset's folder that no commit may touch.
func foreign() []string {
	return []string{
		"precious.txt", "other.csv", "other.csv.manifest.json", "other.csv.rejects.jsonl", "_rejects/notes.txt", "_ids/notes.txt",
		"dt=2026-01-01/notes.csv", ".formetl/notes",
	}
}

// recorded is a place where a run died with its commit recorded: of a dataset,
// or of a file where scope names one.
func recorded(t testing.TB, scope string) (s shop, record []byte) {
	t.Helper()
	s = newShop(t)
	for _, name := range foreign() {
		s.must(s.d.Put(t.Context(), name, []byte(precious), load.NoVersion))
	}
	kill := func(step load.Step) error {
		if step == load.StepParts {
			return errKilled
		}
		return nil
	}
	name := datasetRecord
	if scope == "" {
		first, _, err := s.change("run1", days{1: "one", 2: "two"})
		s.must(err)
		s.must(first.Do(t.Context(), s.d))
		second, _, err := s.change("run2", days{2: "again", 3: "three"})
		s.must(err)
		second.Hook = kill
		if err := second.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	} else {
		s.must(s.runFile("run1", "one", nil))
		if err := s.runFile("run2", "a reject", kill); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		control, err := s.d.List(t.Context(), load.ControlFolder+"/")
		s.must(err)
		names := load.NamesOf(control)
		name = names[slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, datasetRecord+"-") })]
	}
	record, _, err := s.d.Get(t.Context(), name)
	s.must(err)
	return s, record
}

// recoverFrom puts another record in the place of the scope's and recovers.
func (s shop) recoverFrom(scope string, record []byte) (load.Recovery, error) {
	s.t.Helper()
	control, err := s.d.List(s.t.Context(), load.ControlFolder+"/")
	s.must(err)
	names := load.NamesOf(control)
	at := slices.IndexFunc(names, func(n string) bool { return n == datasetRecord || strings.HasPrefix(n, datasetRecord+"-") })
	s.must(s.d.Put(s.t.Context(), names[at], record, load.AnyVersion))
	recovery, err := load.Recover(s.t.Context(), s.d, scope, nil, false)
	for _, name := range foreign() {
		if data, _, err := s.d.Get(s.t.Context(), name); err != nil || string(data) != precious {
			s.t.Errorf("%s holds %q, %v, after the record\n%s", name, data, err, record)
		}
	}
	return recovery, err
}

// A record that is damaged in any way harms nobody, and what is not understood
// whole is told with a way out.
func TestDamagedRecords(t *testing.T) {
	for _, scope := range []string{"", fileName} {
		_, record := recorded(t, scope)
		var keys []string
		for _, quoted := range bytes.Split(record, []byte(`"`)) {
			if key := string(quoted); !slices.Contains(keys, key) && bytes.Contains(record, []byte(`"`+key+`":`)) {
				keys = append(keys, key)
			}
		}
		if len(keys) < 20 {
			t.Fatalf("the record has only the keys %q", keys)
		}
		for _, key := range keys {
			if slices.Contains([]string{"ids", "letters", "rejected", "bytes"}, key) {
				continue // a part may do without them
			}
			s, record := recorded(t, scope)
			_, err := s.recoverFrom(scope, bytes.Replace(record, []byte(`"`+key+`":`), []byte(`"x`+key+`":`), 1))
			if err == nil || !is[*load.RecordError](err) || !strings.Contains(err.Error(), datasetRecord) {
				t.Errorf("with %q renamed: %v", key, err)
			}
		}
		for what, change := range hostileRecords(scope) {
			s, record := recorded(t, scope)
			changed := bytes.Replace(record, []byte(change[0]), []byte(change[1]), 1)
			if bytes.Equal(changed, record) {
				t.Errorf("%s: the record has no %s:\n%s", what, change[0], record)
			}
			if _, err := s.recoverFrom(scope, changed); err == nil || !is[*load.RecordError](err) {
				t.Errorf("%s: %v", what, err)
			}
			if got, err := load.Recover(t.Context(), s.d, scope, nil, true); err != nil || got != (load.Recovery{RunID: "unknown"}) {
				t.Errorf("%s, withdrawn: %+v, %v", what, got, err)
			}
			if run, err := load.Pending(t.Context(), s.d, scope); err != nil || run != "" {
				t.Errorf("%s, withdrawn: %q is recorded, %v", what, run, err)
			}
		}
	}
}

// TestRecordOfAnother: the record of a file is not taken for that of the dataset.
func TestRecordOfAnother(t *testing.T) {
	s, _ := recorded(t, "")
	_, record := recorded(t, fileName)
	if _, err := s.recoverFrom("", record); !is[*load.RecordError](err) {
		t.Errorf("err = %v", err)
	}
}

// hostileRecords are texts of a record and what takes their place.
func hostileRecords(scope string) map[string][2]string {
	if scope != "" {
		return map[string][2]string{
			"another file":    {`"file":"form1.csv"`, `"file":"other.csv"`},
			"no replacement":  {`,"replace":true`, ``},
			"a part removed":  {`"new":[`, `"remove":["part-min-max-000001-0000.csv"],"new":[`},
			"a run elsewhere": {`"run_id":"run2"`, `"run_id":"../run2"`},
		}
	}
	return map[string][2]string{
		"a foreign object superseded": {`"remove":[`, `"remove":["precious.txt",`},
		"an object that leaves":       {`"remove":[`, `"remove":["../precious.txt",`},
		"notes beside dead letters":   {`"remove":[`, `"remove":["_rejects/notes.txt",`},
		"dead letters elsewhere":      {`"remove":[`, `"remove":["_rejects/../other.csv.rejects.jsonl",`},
		"no id set":                   {`"remove":[`, `"remove":["_ids/notes.txt",`},
		"a part that is replaced":     {`"new":[{`, `"new":[{"replace":true,`},
		"a file's commit":             {`"new":[`, `"file":"other.csv","new":[`},
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// FuzzRecover reads records that anybody may have written: none makes a
// recovery panic, touch what is not the commit's, or fail without a class.
func FuzzRecover(f *testing.F) {
	for _, scope := range []string{"", fileName} {
		f.Add([]byte(`{"run_id":"run2"}`), scope)
		f.Add([]byte(`{"run_id":"run2","file":"x","manifest":{"run_id":"run2"},"base":"","new":[{"name":"x"}]}`), scope)
		_, record := recorded(f, scope)
		f.Add(record, scope)
		for _, change := range hostileRecords(scope) {
			f.Add(bytes.Replace(record, []byte(change[0]), []byte(change[1]), 1), scope)
		}
	}
	f.Fuzz(func(t *testing.T, record []byte, scope string) {
		if scope != "" {
			scope = fileName
		}
		s, _ := recorded(t, scope)
		if _, err := s.recoverFrom(scope, record); err != nil && !is[*load.RecordError](err) && !errors.Is(err, load.ErrFailed) && !errors.Is(err, load.ErrUnusable) && !errors.Is(err, load.ErrConflict) {
			t.Errorf("%v after\n%s", err, record)
		}
	})
}

// TestRecordWithoutParts: the commit of a dataset that no result has come to is
// finished like any other.
func TestRecordWithoutParts(t *testing.T) {
	s := newShop(t)
	killed := func(step load.Step) error {
		if step == load.StepManifest {
			return errKilled
		}
		return nil
	}
	m := manifest("run1")
	m.Parts, m.Rows = nil, 0
	commit := load.Commit{RunID: "run1", Manifest: m, Hook: killed}
	if err := commit.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	recovery, err := load.Recover(t.Context(), s.d, "", nil, false)
	if err != nil || !recovery.Finished || recovery.RunID != "run1" {
		t.Fatalf("%+v, %v", recovery, err)
	}
	s.holds("run1", days{})
}
