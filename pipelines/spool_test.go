package pipelines

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func mustOpen(t *testing.T, state string) *spool {
	t.Helper()
	s, err := openSpool(state, "run")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestSpoolSweepsWhatDeadRunsLeft and nothing else.
func TestSpoolSweepsWhatDeadRunsLeft(t *testing.T) {
	state := t.TempDir()
	live := mustOpen(t, state)
	dead, empty, unlocked := filepath.Join(state, "spool", "dead"), filepath.Join(state, "spool", "empty"), filepath.Join(state, "spool", "unlocked")
	for _, folder := range []string{dead, empty, unlocked} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(dead, spoolLock), filepath.Join(dead, "w1.spool"), filepath.Join(unlocked, "w1.spool"), filepath.Join(state, "spool", "mine")} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next := mustOpen(t, state)
	for path, want := range map[string]bool{dead: false, empty: false, unlocked: false, live.folder: true, next.folder: true, filepath.Join(state, "spool", "mine"): true} {
		if exists(path) != want {
			t.Errorf("%s is there: %t", path, !want)
		}
	}
	info, err := os.Stat(next.folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	for _, s := range []*spool{live, next} {
		if err := s.close(false); err != nil {
			t.Error(err)
		}
		if exists(s.folder) {
			t.Errorf("%s is left", s.folder)
		}
	}
}

// TestSpoolRemovesWhatItMade and leaves a folder that was there before.
func TestSpoolRemovesWhatItMade(t *testing.T) {
	old := t.TempDir()
	fresh := filepath.Join(old, "a", "state")
	for _, state := range []string{old, fresh} {
		if err := mustOpen(t, state).close(false); err != nil {
			t.Error(err)
		}
	}
	if !exists(old) || exists(fresh) || exists(filepath.Join(old, "spool")) {
		t.Errorf("old %t, fresh %t", exists(old), exists(fresh))
	}
}

func TestSpoolThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openSpool(file, "run")
	if err := s.close(true); err != nil {
		t.Errorf("closing what was not opened: %v", err)
	}
	var e *SpoolError
	if !errors.As(err, &e) || e.Folder != filepath.Join(file, "spool") {
		t.Errorf("error %v", err)
	}
}

// TestSpoolsOfManyRuns opens and closes folders of one state folder side by
// side: each run sweeps, and removes the folders that it leaves empty.
func TestSpoolsOfManyRuns(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				s, err := openSpool(state, "run")
				if err != nil {
					t.Error(err)
					return
				}
				file := filepath.Join(s.folder, "w1.spool")
				if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
					t.Error(err)
				}
				if !exists(file) {
					t.Error("a live folder was swept")
				}
				if err := s.close(false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if exists(filepath.Join(state, "spool")) {
		t.Error("folders are left")
	}
}

func batch(t *testing.T, names []string, rows int) arrow.RecordBatch {
	t.Helper()
	fields := make([]arrow.Field, 0, len(names))
	for _, n := range names {
		fields = append(fields, arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i := range names {
		for r := range rows {
			b.Field(i).(*array.Int64Builder).Append(int64(r))
		}
	}
	return b.NewRecordBatch()
}

// TestSegmentKeepsBatchesOfSeveralSchemas in their order, in a file for each.
func TestSegmentKeepsBatchesOfSeveralSchemas(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	defer func() { _ = s.close(false) }()
	seg := s.segment(1, 0)
	for _, b := range []arrow.RecordBatch{
		batch(t, []string{"a"}, 3), batch(t, []string{"a"}, 0), batch(t, []string{"a"}, 2), batch(t, []string{"a", "b"}, 4),
	} {
		if err := seg.write(b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	for range 2 { // closing twice is harmless
		if err := seg.close(); err != nil {
			t.Fatal(err)
		}
	}
	var shapes [][2]int64
	each := func(b arrow.RecordBatch) error {
		shapes = append(shapes, [2]int64{b.NumRows(), b.NumCols()})
		return nil
	}
	if err := seg.each(each); err != nil {
		t.Fatal(err)
	}
	if want := [][2]int64{{3, 1}, {2, 1}, {4, 2}}; len(shapes) != 3 || shapes[0] != want[0] || shapes[1] != want[1] || shapes[2] != want[2] {
		t.Errorf("%v", shapes)
	}
	stop := errors.New("stop")
	if err := seg.each(func(arrow.RecordBatch) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	if len(seg.files) != 2 {
		t.Errorf("%d files", len(seg.files))
	}
	first := seg.path(seg.files[0].Name)
	if err := os.Truncate(first, 100); err != nil {
		t.Fatal(err)
	}
	if err := seg.each(each); err == nil {
		t.Error("a truncated file was read")
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if err := seg.each(each); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	seg.remove()
	if entries, err := os.ReadDir(s.folder); err != nil || len(entries) != 1 {
		t.Errorf("left %v (%v)", entries, err)
	}
	if err := seg.each(each); err != nil {
		t.Error(err)
	}
}

func TestSegmentThatCannotBeWritten(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	seg := s.segment(1, 0)
	if err := s.close(false); err != nil {
		t.Fatal(err)
	}
	b := batch(t, []string{"a"}, 1)
	defer b.Release()
	var e *SpoolError
	if err := seg.write(b); !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	seg.remove()
}
