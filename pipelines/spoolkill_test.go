package pipelines

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// spoolChildState names the state folder for the process that TestSpoolChild is.
const spoolChildState = "FORMETL_TEST_SPOOL_CHILD"

// TestSpoolChild is the process that TestSpoolOutlivesKills kills: it goes on
// with what it finds, spools window after window, and tells each that is
// recorded. Every third window it reads an earlier one again.
func TestSpoolChild(t *testing.T) {
	state, ok := os.LookupEnv(spoolChildState)
	if !ok {
		return // it is no process to kill
	}
	var s *spool
	next := 1
	if l := find(t, state); l == nil {
		s = begun(t, state, "nightly", "orders")
	} else {
		var err error
		if s, err = l.adopt(); err != nil {
			t.Fatal(err)
		}
		next = len(l.records) + 1
	}
	segments := map[int]*segment{}
	for ; next < 1_000_000; next++ {
		segments[next] = spoolDay(t, s, next, 0)
		fmt.Println(next)
		if again := next - 2; next%3 == 0 && segments[again] != nil {
			old := segments[again]
			segments[again] = spoolDay(t, s, again, 1)
			old.remove()
		}
	}
}

// TestSpoolOutlivesKills kills a process with -9 again and again: every window
// that was recorded is there, whole.
func TestSpoolOutlivesKills(t *testing.T) {
	state := t.TempDir()
	told := 0
	for round := range 5 {
		told = max(told, killedChild(t, state, told+10+7*round))
		l := find(t, state)
		if l == nil {
			t.Fatal("nothing was found")
		}
		if len(l.records) < told || len(l.faults) > 0 {
			t.Errorf("round %d: %d windows of %d, %v", round, len(l.records), told, l.faults)
		}
		for i, w := range l.records {
			if rows := rowsIn(t, w.segment); w.index != i+1 || rows != w.Stats.Rows {
				t.Errorf("window %d of %d holds %d rows, want %d", w.index, i+1, rows, w.Stats.Rows)
			}
		}
		if err := l.release(); err != nil {
			t.Fatal(err)
		}
	}
}

// killedChild runs the child until it tells of a window, kills it, and gives
// the last one that it told of.
func killedChild(t *testing.T, state string, until int) (told int) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSpoolChild$", "-test.timeout="+time.Minute.String())
	child.Env = append(os.Environ(), spoolChildState+"="+state)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Errorf("the child says %q", lines.Text())
			continue
		}
		told = n
		if n == until { // the rest is what it told before it died
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := child.Wait(); err == nil || told < until {
		t.Errorf("the child ended at window %d: %v", told, err)
	}
	return told
}
