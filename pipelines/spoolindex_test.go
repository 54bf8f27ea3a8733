package pipelines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/transform"
)

func header(pipeline, form string) spoolHeader {
	return spoolHeader{
		Version: spoolVersion, RunID: "run1", OpenedAt: time.Date(2026, 2, 1, 3, 0, 0, 0, time.UTC), Pipeline: pipeline, Form: form,
		Definition: "/etc/" + pipeline + ".yaml", Fingerprint: "abc", Bases: map[string]string{"/out.csv": "v1"}, Body: json.RawMessage(`{"total":3}`),
	}
}

// find looks for the spool of the form "orders" of the pipeline "nightly".
func find(t *testing.T, state string) *leftSpool {
	t.Helper()
	l, err := findSpool(state, "nightly", "orders", "/etc/nightly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// begun opens a spool that can be gone on with.
func begun(t *testing.T, state, pipeline, form string) *spool {
	t.Helper()
	s := mustOpen(t, state)
	if err := s.begin(header(pipeline, form)); err != nil {
		t.Fatal(err)
	}
	return s
}

// dies is what a kill leaves: the folder, and the lock free.
func dies(t *testing.T, s *spool) {
	t.Helper()
	if err := s.lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// windowOf is the record of a day in January 2026 with that many rows.
func windowOf(t testing.TB, day, reading, rows int) windowRecord {
	t.Helper()
	ids := bitmap()
	for i := range rows {
		ids.Add(uint64(1000*day + i)) //nolint:gosec // small
	}
	data, err := ids.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	from := wall("2026-01-01").AddDate(0, 0, day-1)
	return windowRecord{
		Range: load.Range{From: load.Wall(from), To: load.Wall(from.AddDate(0, 0, 1))}, Attempt: "run1", Reading: reading, IDs: data,
		Stats: statsRecord{Rows: int64(rows)},
	}
}

// spoolDay spools a day's rows as two batches of two schemas, and records them.
func spoolDay(t *testing.T, s *spool, day, attempt int) *segment {
	t.Helper()
	seg := s.segment(day, attempt)
	for i, names := range [][]string{{"a"}, {"a", "b"}} {
		b := batch(t, names, i+1)
		if err := seg.write(b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if err := s.record(indexRecord{Index: day, Window: windowOf(t, day, attempt+1, 3)}, seg); err != nil {
		t.Fatal(err)
	}
	return seg
}

// rowsIn reads a segment.
func rowsIn(t *testing.T, seg *segment) (rows int64) {
	t.Helper()
	if err := seg.each(func(b arrow.RecordBatch) error {
		rows += b.NumRows()
		return nil
	}); err != nil {
		t.Error(err)
	}
	return rows
}

func indices(l *leftSpool) (list []int) {
	for _, w := range l.records {
		list = append(list, w.index)
	}
	return list
}

// tree lists a folder's files and folders.
func tree(t *testing.T, folder string) (names []string) {
	t.Helper()
	if err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		names = append(names, filepath.ToSlash(name))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// TestSpoolWithoutHeader is of no use to others, whatever it holds.
func TestSpoolWithoutHeader(t *testing.T) {
	state := t.TempDir()
	for _, end := range []func(*spool) error{
		func(s *spool) error { return s.lock.Close() },
		func(s *spool) error { return s.close(true) },
	} {
		s := mustOpen(t, state)
		if err := s.begin(spoolHeader{}); err == nil || s.begun {
			t.Errorf("a header that says nothing is taken (%v)", err)
		}
		if err := end(s); err != nil {
			t.Fatal(err)
		}
		if find(t, state) != nil || exists(s.folder) {
			t.Error("it was found or left")
		}
	}
}

// TestSpoolIsPrivate: results are readable by their owner alone.
func TestSpoolIsPrivate(t *testing.T) {
	s := begun(t, t.TempDir(), "nightly", "orders")
	defer func() { _ = s.close(false) }()
	spoolDay(t, s, 1, 0)
	names := tree(t, s.folder)
	if len(names) != 6 {
		t.Errorf("the spool holds %v", names)
	}
	for _, name := range append(names, ".") {
		info, err := os.Stat(filepath.Join(s.folder, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v (%v)", name, info.Mode(), err)
		}
	}
}

// TestDamageCostsItsWindowOnly: a kill or a power cut at any point, and files
// that somebody else wrote.
func TestDamageCostsItsWindowOnly(t *testing.T) {
	edit := func(change func(*indexRecord)) func(*testing.T, *spool) {
		return func(t *testing.T, s *spool) {
			data, err := os.ReadFile(s.recordPath(2))
			if err != nil {
				t.Fatal(err)
			}
			var r indexRecord
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			change(&r)
			if data, err = json.Marshal(r); err == nil {
				err = os.WriteFile(s.recordPath(2), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, text string) func(*testing.T, *spool) {
		return func(t *testing.T, s *spool) {
			if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	const file = "w0000002-0-1.spool"
	for _, c := range []struct {
		name   string
		damage func(*testing.T, *spool)
		fault  string // "" where nothing is lost
	}{
		{"a segment was begun", write("w0000003-0-0.spool", "begun"), ""},
		{"a segment was read again", write("w0000002-1-0.spool", "begun"), ""},
		{"a record was begun", write("index/0000002.json.new", `{"index"`), ""},
		{"a header was begun", write("header.json.new", `{"run_id"`), ""},
		{"another's file", write("index/notes.txt", "x"), ""},
		{"a record's torn", write("index/0000002.json", `{"index":2,"window":{`), "unexpected EOF"},
		{"a record's zeros", write("index/0000002.json", "\x00\x00\x00\x00"), "invalid character"},
		{"a record of another window", edit(func(r *indexRecord) { r.Index = 7 }), "the record of window 7"},
		{"ids are damaged", edit(func(r *indexRecord) { r.Window.IDs = r.Window.IDs[:7] }), "the set of ids is damaged"},
		{"fewer rows than ids", edit(func(r *indexRecord) { r.Window.Stats.Rows = 2 }), "does not agree with itself"},
		{"rows below nothing", edit(func(r *indexRecord) {
			r.Window.Stats = statsRecord{Rows: -1, Rejected: 4}
			r.Window.Rejects = make([]transform.Reject, 4)
		}), "does not agree with itself"},
		{"a range that ends before it begins", edit(func(r *indexRecord) { r.Window.To = r.Window.From }), "does not agree with itself"},
		{"rows without files", edit(func(r *indexRecord) { r.Files = nil }), "3 rows in 0 files"},
		{"a file outside", edit(func(r *indexRecord) { r.Files[0].Name = "../w0000002-0-0.spool" }), "is no file of it"},
		{"a file twice", edit(func(r *indexRecord) { r.Files[1] = r.Files[0] }), "is no file of it"},
		{"a file of another window", edit(func(r *indexRecord) { r.Files[0].Name = "w0000001-0-0.spool" }), "is of window 1"},
		{"a file is torn", func(t *testing.T, s *spool) {
			if err := os.Truncate(filepath.Join(s.folder, file), 100); err != nil {
				t.Fatal(err)
			}
		}, "has 100 bytes"},
		{"a file's zeros", func(t *testing.T, s *spool) {
			info, err := os.Stat(filepath.Join(s.folder, file))
			if err != nil {
				t.Fatal(err)
			}
			write(file, strings.Repeat("\x00", int(info.Size())))(t, s)
		}, "does not hold what was written"},
		{"a file is gone", func(t *testing.T, s *spool) {
			if err := os.Remove(filepath.Join(s.folder, file)); err != nil {
				t.Fatal(err)
			}
		}, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			s := begun(t, state, "nightly", "orders")
			spoolDay(t, s, 1, 0)
			spoolDay(t, s, 2, 0)
			whole := tree(t, s.folder)
			dies(t, s)
			c.damage(t, s)
			l := find(t, state)
			if l == nil {
				t.Fatal("nothing was found")
			}
			want, files := []int{1, 2}, whole
			if c.fault != "" {
				want = []int{1}
				files = slices.DeleteFunc(whole, func(n string) bool { return strings.Contains(n, "0000002") })
			}
			if told := fmt.Sprint(l.faults); !slices.Equal(indices(l), want) || !strings.Contains(told, c.fault) || (c.fault != "") != (len(l.faults) == 1) {
				t.Errorf("windows %v, want %v; faults %s", indices(l), want, told)
			}
			next, err := l.adopt()
			if err != nil {
				t.Fatal(err)
			}
			if got := tree(t, next.folder); !slices.Equal(got, files) {
				t.Errorf("left are %v, want %v", got, files)
			}
			spoolDay(t, next, 2, 0)
			if err := next.close(true); err != nil {
				t.Error(err)
			}
			if l = find(t, state); l == nil || len(l.faults) > 0 || !slices.Equal(indices(l), []int{1, 2}) {
				t.Errorf("found %+v", l)
			}
		})
	}
}

// TestIndexThatCannotBeRead is discarded with a reason, and others' is left alone.
func TestIndexThatCannotBeRead(t *testing.T) {
	with := func(change func(*spoolHeader)) []byte {
		h := header("nightly", "orders")
		change(&h)
		data, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, c := range map[string]struct {
		data  []byte
		fault string // "" where it is left
	}{
		"torn":                         {[]byte(`{"version":1,`), "unexpected end"},
		"empty":                        {nil, "unexpected end"},
		"no object":                    {[]byte(`[]`), "cannot unmarshal"},
		"another version":              {with(func(h *spoolHeader) { h.Version = spoolVersion + 1 }), "its version is 3"},
		"no version":                   {[]byte(`{}`), "its version is 0"},
		"a path for a run":             {with(func(h *spoolHeader) { h.RunID = "../x" }), "names no run"},
		"no fingerprint":               {with(func(h *spoolHeader) { h.Fingerprint = "" }), "not whole"},
		"another version of another's": {with(func(h *spoolHeader) { h.Version, h.Pipeline = spoolVersion+1, "weekly" }), ""},
		"another form":                 {with(func(h *spoolHeader) { h.Form = "leads" }), ""},
		"another definition":           {with(func(h *spoolHeader) { h.Definition = "/etc/other.yaml" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			s := begun(t, state, "nightly", "orders")
			spoolDay(t, s, 1, 0)
			dies(t, s)
			if err := os.WriteFile(s.headerPath(), c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := findSpool(state, "nightly", "orders", "/etc/nightly.yaml")
			if l != nil || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) || err != nil && !strings.Contains(err.Error(), s.folder) {
				t.Errorf("found %+v, %v", l, err)
			}
			if exists(s.folder) != (c.fault == "") {
				t.Errorf("left is %t", exists(s.folder))
			}
		})
	}
}

func TestIndexThatCannotBeWritten(t *testing.T) {
	s := begun(t, t.TempDir(), "nightly", "orders")
	if err := s.close(false); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"begin": s.begin(header("nightly", "orders")), "record": s.record(indexRecord{Index: 1, Window: windowOf(t, 1, 1, 0)}, nil),
	} {
		if e := (*SpoolError)(nil); !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
