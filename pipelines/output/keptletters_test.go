package output

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/transform"
)

// rejecting is a window of a day with so many rejected results from an id on.
func rejecting(day string, first int64, n int) *reading.Window {
	w := &reading.Window{Planned: extract.Planned{Window: extract.Window{From: extracttest.Wall(day), To: extracttest.Wall(day).AddDate(0, 0, 1)}}}
	for i := range n {
		id := first + int64(n-1-i) // not in the order of ids
		w.Rejects = append(w.Rejects, transform.Reject{ResultID: id, Column: "price", Raw: fmt.Sprint("raw", id), Reason: "no number"})
	}
	return w
}

// TestKeptLetters: the first hundred, by window and id, in a new file that nobody else
// may read, and that is removed after seven days.
func TestKeptLetters(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	windows := []*reading.Window{rejecting("2026-01-02", 1, 90), rejecting("2026-01-01", 500, 30)}
	const form = "../ev/il"
	kept, err := KeepLetters(state, "run1", form, windows)
	if err != nil || len(kept.First) != MostKeptLetters || kept.First[0].ResultID != 500 || kept.First[30].ResultID != 1 {
		t.Fatalf("%d letters, %v", len(kept.First), err)
	}
	info, err := os.Stat(kept.Path)
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(kept.Path) != filepath.Join(state, "rejects") {
		t.Fatalf("%s: %v, %v", kept.Path, info, err)
	}
	data, err := os.ReadFile(kept.Path)
	if err != nil || bytes.Count(data, []byte("\n")) != MostKeptLetters || !strings.HasPrefix(string(data), `{"result_id":500,"column":"price","raw":"raw500","reason":"no number","window":"2026-01-01 00:00:00/2026-01-02 00:00:00"}`+"\n") {
		t.Errorf("%v: %.200s", err, data)
	}
	again, err := KeepLetters(state, "run1", form, windows[:1])
	if err != nil || again.Path == kept.Path || len(again.First) != 90 {
		t.Errorf("%s: %v", again.Path, err)
	}
	if after, err := os.ReadFile(kept.Path); err != nil || !bytes.Equal(after, data) {
		t.Errorf("the first file is another now: %v", err)
	}
	if none, err := KeepLetters(state, "run2", form, nil); err != nil || none.Path != "" {
		t.Errorf("without letters: %+v, %v", none, err)
	}

	now := time.Now()
	if err := os.Chtimes(kept.Path, now, now.Add(-checkpoint.KeepFor-time.Hour)); err != nil {
		t.Fatal(err)
	}
	strange := filepath.Join(state, "rejects", "notes.txt")
	if err := os.WriteFile(strange, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dryRun bool
		want   int
		left   int
	}{{true, 1, 3}, {false, 1, 2}, {false, 0, 2}} {
		if n := SweepLetters(state, now, c.dryRun); n != c.want {
			t.Errorf("dry run %v: %d files", c.dryRun, n)
		}
		if left, err := os.ReadDir(filepath.Join(state, "rejects")); err != nil || len(left) != c.left {
			t.Errorf("%v are left, %v", left, err)
		}
	}
}

// TestKeptLettersThatCannotBe tell why, and what the letters are all the same.
func TestKeptLettersThatCannotBe(t *testing.T) {
	state := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kept, err := KeepLetters(state, "run1", "form1", []*reading.Window{rejecting("2026-01-01", 1, 2)})
	if err == nil || kept.Path != "" || len(kept.First) != 2 {
		t.Errorf("%+v, %v", kept, err)
	}
}
