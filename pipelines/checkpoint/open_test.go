package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// TestMain holds a checkpoint where it is run by TestHeldByAnotherProcess.
func TestMain(m *testing.M) {
	if state := os.Getenv("CHECKPOINT_HELD"); state != "" {
		if _, err := Open(context.Background(), folderState(state), testKey, 1, holder); err != nil {
			os.Exit(3)
		}
		_, _ = os.Stdout.WriteString("held\n")
		time.Sleep(time.Minute) // it is killed
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestHeldByAnotherProcess: who finds the checkpoint taken is told so; once its
// holder is killed, however it was, the next one has it.
func TestHeldByAnotherProcess(t *testing.T) {
	state := t.TempDir()
	c := opened(t, folderState(state))
	begin(t, c)
	write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1}})
	must(t, c.Close(t.Context(), true))
	self, err := os.Executable()
	must(t, err)
	process := exec.CommandContext(t.Context(), self)
	process.Env = append(os.Environ(), "CHECKPOINT_HELD="+state)
	out, err := process.StdoutPipe()
	must(t, err)
	must(t, process.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	held(t, folderState(state), 1)
	must(t, process.Process.Kill())
	_ = process.Wait()
	c = opened(t, folderState(state))
	if got := shown(found(t, c).Chains); got != "01-01/01-02 (-1,end]" {
		t.Errorf("found %s", got)
	}
	must(t, c.Close(t.Context(), false))
	nothingIn(t, state)
}

// held checks that a run has the checkpoint, and that nobody takes, sees or removes it
// meanwhile. objects is how many checkpoints have objects.
func held(t *testing.T, s State, objects int) {
	t.Helper()
	_, err := Open(t.Context(), s, testKey, 1, holder)
	if e := new(load.HeldError); !errors.As(err, &e) || e.Path != s.PathOf("checkpoint/"+testKey) || e.RunID != "run1" {
		t.Errorf("error %v", err)
	}
	if left, err := FindUnfinished(t.Context(), s, "p", "f"); len(left) > 0 || err != nil {
		t.Errorf("it is told to be left: %+v, %v", left, err)
	}
	for _, dry := range []bool{true, false} {
		if n, err := Sweep(t.Context(), s, holder, dry); n > 0 || err != nil {
			t.Errorf("%d are swept, %v", n, err)
		}
	}
	if gone, err := discard(t.Context(), checkpointAt(s, testKey), holder); gone || err != nil {
		t.Errorf("discarded: %t, %v", gone, err)
	}
	if all, err := find(t.Context(), s, folderName); len(all) != objects || err != nil {
		t.Errorf("found %v, %v", all, err)
	}
}

func nothingIn(t *testing.T, state string) {
	t.Helper()
	if entries, err := os.ReadDir(state); len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state folder holds %v, %v", entries, err)
	}
}

// TestHeld by another descriptor of this process.
func TestHeld(t *testing.T) {
	folder := t.TempDir()
	for _, state := range []State{folderState(folder), remoteState(t)} {
		c := opened(t, state)
		held(t, state, 0)
		begin(t, c)
		held(t, state, 1)
		must(t, c.Close(t.Context(), true))
		c = opened(t, state)
		must(t, c.Close(t.Context(), false))
	}
	nothingIn(t, folder)
}

// TestSlots: as many runs as there are slots have a checkpoint of their own, and
// the next one takes the first that is free.
func TestSlots(t *testing.T) {
	state := t.TempDir()
	open := func() (*Checkpoint, error) { return Open(t.Context(), folderState(state), testKey, 3, holder) }
	all := make([]*Checkpoint, 0, 3)
	for range 3 {
		c, err := open()
		must(t, err)
		begin(t, c)
		all = append(all, c)
	}
	places := []string{all[0].Place, all[1].Place, all[2].Place}
	if want := filepath.Join(state, "checkpoint", testKey); !slices.Equal(places, []string{want, want + ".1", want + ".2"}) {
		t.Errorf("they lie at %v", places)
	}
	if _, err := open(); !errors.As(err, new(*load.HeldError)) {
		t.Errorf("a fourth one: %v", err)
	}
	must(t, all[1].Close(t.Context(), true))
	c, err := open()
	must(t, err)
	if c.Place != places[1] {
		t.Errorf("it took %s", c.Place)
	}
	if i, err := c.Found(t.Context()); err != nil || i == nil || i.RunID != "run1" {
		t.Errorf("found %+v, %v", i, err)
	}
	for _, c := range []*Checkpoint{c, all[0], all[2]} {
		must(t, c.Close(t.Context(), false))
	}
	nothingIn(t, state)
}

// TestManyAtOnce: of many that open one key at the same time, over and over, one
// has it at a time, and none fails for a folder that another removes.
func TestManyAtOnce(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	var mu sync.Mutex
	var group sync.WaitGroup
	inside, most, had := 0, 0, 0
	for range 8 {
		group.Go(func() {
			for range 25 {
				c, err := Open(t.Context(), folderState(state), testKey, 1, holder)
				if errors.As(err, new(*load.HeldError)) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				had++
				inside++
				most = max(most, inside)
				mu.Unlock()
				mu.Lock()
				inside--
				mu.Unlock()
				if err := c.Close(t.Context(), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if most != 1 || had == 0 {
		t.Errorf("%d at once, %d in all", most, had)
	}
	if _, err := os.Stat(filepath.Join(state, "checkpoint")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

// TestStateThatCannotBeUsed names the place and what to do.
func TestStateThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(t.Context(), folderState(file), testKey, 1, holder)
	failed := new(StateError)
	if strings.Count(fmt.Sprint(err), "the state in ") != 1 {
		t.Errorf("it names the state more than once: %v", err)
	}
	if !errors.As(err, &failed) || failed.Place != file || !strings.Contains(err.Error(), "give --state") || !errors.Is(err, load.ErrUnusable) {
		t.Errorf("error %v", err)
	}
}

// aged leaves a checkpoint that was last changed so long ago.
func aged(t *testing.T, folder string, header bool, age time.Duration) {
	t.Helper()
	c := opened(t, folderState(folder))
	write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1, 2}}, draft{window: "01-02/01-03", after: First, through: 7, ids: []int64{5}})
	if header {
		begin(t, c)
	}
	must(t, c.lease.Release(t.Context()))
	then := time.Now().Add(-age)
	names, err := filepath.Glob(filepath.Join(c.Place, "*"))
	must(t, err)
	for _, name := range names {
		must(t, os.Chtimes(name, then, then))
	}
}

// TestSweep removes what no run holds and none may take over.
func TestSweep(t *testing.T) {
	for name, c := range map[string]struct {
		header bool
		age    time.Duration
		gone   bool
	}{
		"of use":             {true, KeepFor - time.Hour, false},
		"too old":            {true, KeepFor + time.Hour, true},
		"of another clock":   {true, -KeepFor - time.Hour, true},
		"just begun":         {false, 0, false},
		"without a header":   {false, 2 * beginning, true},
		"ahead a little":     {true, -time.Hour, false},
		"both, and then old": {false, KeepFor + time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			state := folderState(folder)
			aged(t, folder, c.header, c.age)
			want := 0
			if c.gone {
				want = 1
			}
			for _, dry := range []bool{true, false} {
				if n, err := Sweep(t.Context(), state, holder, dry); n != want || err != nil {
					t.Errorf("dry %t: %d were swept, %v", dry, n, err)
				}
			}
			if c.gone {
				nothingIn(t, folder)
			}
		})
	}
}

// TestSweepOfPieces: a checkpoint that a long run still writes to is young,
// however long ago it was begun.
func TestSweepOfPieces(t *testing.T) {
	folder := t.TempDir()
	aged(t, folder, true, KeepFor+time.Hour)
	must(t, os.WriteFile(filepath.Join(folder, "checkpoint", testKey, "0000009-rows"), []byte("x"), 0o600))
	if n, err := Sweep(t.Context(), folderState(folder), holder, false); n != 0 || err != nil {
		t.Errorf("%d were swept, %v", n, err)
	}
}

// TestLeft describes what an earlier run left, and Discard removes it.
func TestLeft(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		state := c.state
		begin(t, c)
		write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1, 2}}, draft{window: "01-02/01-03", after: First, through: 7, ids: []int64{5}})
		must(t, c.Close(t.Context(), true))
		damaged := Key("p", "f", nil)
		must(t, state.Put(t.Context(), folderName+damaged+"/"+headerName, []byte("{"), load.AnyVersion))
		for form, want := range map[string]int{"f": 2, "g": 0} {
			left, err := FindUnfinished(t.Context(), state, "p", form)
			if len(left) != want || err != nil {
				t.Fatalf("left of %s is %+v, %v", form, left, err)
			}
			for _, l := range left {
				if l.RunID == "unknown" && l.Form == "f" && l.Bytes == 1 {
					if gone, err := l.Discard(t.Context(), holder); !gone || err != nil {
						t.Errorf("a damaged one stays: %v", err)
					}
				} else if l.Windows != 1 || l.Rows != 3 || l.Bytes == 0 || l.RunID != "run1" {
					t.Errorf("left is %+v", l)
				}
			}
		}
	})
}
