package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// TestMain holds a checkpoint where it is run by TestHeldByAnotherProcess.
func TestMain(m *testing.M) {
	if state := os.Getenv("CHECKPOINT_HELD"); state != "" {
		if _, err := Open(context.Background(), state, "key", 1); err != nil {
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
	c := opened(t, state)
	begin(t, c)
	write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []uint64{1}})
	must(t, c.Close(t.Context(), true))
	self, err := os.Executable()
	must(t, err)
	holder := exec.CommandContext(t.Context(), self)
	holder.Env = append(os.Environ(), "CHECKPOINT_HELD="+state)
	out, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	held(t, state)
	must(t, holder.Process.Kill())
	_ = holder.Wait()
	c = opened(t, state)
	if got := shown(found(t, c).Chains); got != "01-01/01-02 (-1,end]" {
		t.Errorf("found %s", got)
	}
	must(t, c.Close(t.Context(), false))
	nothingIn(t, state)
}

// held checks that a run has the checkpoint, and that nobody takes, sees or
// removes it meanwhile.
func held(t *testing.T, state string) {
	t.Helper()
	_, err := Open(t.Context(), state, "key", 1)
	if e := new(load.HeldError); !errors.As(err, &e) || e.Path != filepath.Join(state, "checkpoint", "key") {
		t.Errorf("error %v", err)
	}
	if left := LeftIn(t.Context(), state, everyHeader); len(left) > 0 {
		t.Errorf("it is told to be left: %+v", left)
	}
	if n := Sweep(state, true) + Sweep(state, false); n > 0 {
		t.Errorf("%d are swept", n)
	}
	if gone, err := (Left{folder: filepath.Join(state, "checkpoint", "key")}).Discard(t.Context()); gone || err != nil {
		t.Errorf("discarded: %t, %v", gone, err)
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
	state := t.TempDir()
	c := opened(t, state)
	held(t, state)
	begin(t, c)
	held(t, state)
	must(t, c.Close(t.Context(), true))
	c = opened(t, state)
	must(t, c.Close(t.Context(), false))
	nothingIn(t, state)
}

// TestOpenWaits a moment: whoever looks whether it is held has the lock for an
// instant.
func TestOpenWaits(t *testing.T) {
	state := t.TempDir()
	first := opened(t, state)
	begin(t, first)
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = first.Close(context.Background(), true)
	}()
	second := opened(t, state)
	if !found(t, second).OpenedAt.Equal(at(t, "02-01 12:00")) {
		t.Error("another one was opened")
	}
	must(t, second.Close(t.Context(), false))
}

// TestOpenThatIsStopped does not wait.
func TestOpenThatIsStopped(t *testing.T) {
	state := t.TempDir()
	c := opened(t, state)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if _, err := Open(ctx, state, "key", 1); err == nil || time.Since(began) > 500*time.Millisecond {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	must(t, c.Close(t.Context(), false))
}

// TestSlots: as many runs as there are slots have a checkpoint of their own, and
// the next one takes the first that is free.
func TestSlots(t *testing.T) {
	state := t.TempDir()
	open := func() (*Checkpoint, error) { return Open(t.Context(), state, "key", 3) }
	all := make([]*Checkpoint, 0, 3)
	for range 3 {
		c, err := open()
		must(t, err)
		begin(t, c)
		all = append(all, c)
	}
	places := []string{all[0].Place, all[1].Place, all[2].Place}
	if want := filepath.Join(state, "checkpoint", "key"); !slices.Equal(places, []string{want, want + "-1", want + "-2"}) {
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
				c, err := Open(t.Context(), state, "key", 1)
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

// TestStateFolder: one that was made for the checkpoint goes with it, and one
// that was there stays.
func TestStateFolder(t *testing.T) {
	state := filepath.Join(t.TempDir(), "deep", "state")
	c := opened(t, state)
	must(t, c.Close(t.Context(), false))
	if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it stays: %v", err)
	}
	must(t, os.MkdirAll(state, 0o750))
	c = opened(t, state)
	must(t, c.Close(t.Context(), false))
	if _, err := os.Stat(state); err != nil {
		t.Error(err)
	}
}

// TestStateFolderThatCannotBeUsed names the folder and what to do.
func TestStateFolderThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(t.Context(), file, "key", 1)
	failed := new(FolderError)
	if !errors.As(err, &failed) || failed.Folder != filepath.Join(file, "checkpoint", "key") || failed.Err == nil || !strings.Contains(err.Error(), "look what is in its way, or choose another folder with --state") {
		t.Errorf("error %v", err)
	}
	dangling := filepath.Join(t.TempDir(), "dangling") // as /proc/x, where a folder is neither there nor can be made
	must(t, os.Symlink(filepath.Join(t.TempDir(), "gone"), dangling))
	if _, err := Open(t.Context(), dangling, "key", 1); !errors.As(err, &failed) || !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "other processes") {
		t.Errorf("error %v", err)
	}
	full := &FolderError{Folder: "/x", Err: syscall.ENOSPC}
	if !strings.Contains(full.Error(), "free space, or choose another folder with --state") {
		t.Errorf("error %v", full)
	}
	refused := &FolderError{Folder: "/x", Err: fs.ErrPermission}
	if !errors.Is(refused, fs.ErrPermission) || !strings.Contains(refused.Error(), "let this user write there") {
		t.Errorf("error %v", refused)
	}
}

// aged leaves a checkpoint that was last changed so long ago.
func aged(t *testing.T, state string, header bool, age time.Duration) {
	t.Helper()
	c := opened(t, state)
	write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []uint64{1, 2}}, draft{window: "01-02/01-03", after: First, through: 7, ids: []uint64{5}})
	if header {
		begin(t, c)
	}
	must(t, c.lock.file.Close())
	then := time.Now().Add(-age)
	names := []string{c.Place}
	if header {
		names = append(names, filepath.Join(c.Place, headerName))
	}
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
		"without a header":   {false, 0, true},
		"ahead a little":     {true, -time.Hour, false},
		"both, and then old": {false, KeepFor + time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			aged(t, state, c.header, c.age)
			want := 0
			if c.gone {
				want = 1
			}
			if n := Sweep(state, true); n != want {
				t.Errorf("a dry run tells of %d", n)
			}
			if left := LeftIn(t.Context(), state, everyHeader); len(left) != 1-want {
				t.Errorf("left is %+v", left)
			}
			if n := Sweep(state, false); n != want {
				t.Errorf("%d were swept", n)
			}
			if c.gone {
				nothingIn(t, state)
			}
		})
	}
}

// TestSweepOfPieces: a checkpoint that a long run still writes to is young,
// however long ago it was begun.
func TestSweepOfPieces(t *testing.T) {
	state := t.TempDir()
	aged(t, state, true, KeepFor+time.Hour)
	folder := filepath.Join(state, "checkpoint", "key")
	must(t, os.WriteFile(filepath.Join(folder, "0000009-rows"), []byte("x"), 0o600))
	if n := Sweep(state, false); n != 0 {
		t.Errorf("%d were swept", n)
	}
}

// TestLeft describes what an earlier run left, and Discard removes it.
func TestLeft(t *testing.T) {
	state := t.TempDir()
	if left := LeftIn(t.Context(), filepath.Join(state, "none"), everyHeader); len(left) > 0 {
		t.Errorf("left is %+v", left)
	}
	aged(t, state, true, time.Hour)
	must(t, os.WriteFile(filepath.Join(state, "checkpoint", "file"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(state, "checkpoint", "damaged"), 0o700))
	must(t, os.WriteFile(filepath.Join(state, "checkpoint", "damaged", headerName), []byte("{"), 0o600))
	left := LeftIn(t.Context(), state, everyHeader)
	if len(left) != 1 || left[0].Windows != 1 || left[0].Rows != 3 || left[0].Bytes == 0 || left[0].RunID != "run1" || !left[0].Is("p", "f", "/p.yaml") || left[0].Is("p", "g", "/p.yaml") {
		t.Fatalf("left is %+v", left)
	}
	if gone, err := left[0].Discard(t.Context()); !gone || err != nil {
		t.Errorf("%t, %v", gone, err)
	}
	if left := LeftIn(t.Context(), state, everyHeader); len(left) > 0 {
		t.Errorf("left is %+v", left)
	}
	must(t, os.Remove(filepath.Join(state, "checkpoint", "file")))
}

// TestLeftAt describes a checkpoint at a destination.
func TestLeftAt(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		if left, err := c.Left(t.Context()); left != nil || err != nil {
			t.Errorf("left is %+v, %v", left, err)
		}
		begin(t, c)
		write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []uint64{1, 2}})
		must(t, c.Close(t.Context(), true))
		c = open()
		if left, err := c.Left(t.Context()); err != nil || left == nil || left.Windows != 1 || left.Rows != 2 {
			t.Errorf("left is %+v, %v", left, err)
		}
		must(t, c.Close(t.Context(), false))
	})
}
