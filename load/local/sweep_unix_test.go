//go:build unix

package local_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
)

// stageAndWait takes the lease, stages one object that is prepared and one
// that is not, says so, and waits to be killed.
func stageAndWait(root string) error {
	d, err := newDestination(root)
	if err != nil {
		return err
	}
	lease, err := d.Acquire(childContext(), "", load.Holder{RunID: "child"})
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(lease) // a lease that is forgotten is unlocked with its file
	for _, name := range []string{"dt=2026-01-01/prepared.csv", "dt=2026-01-01/written.csv"} {
		u, err := d.Stage(childContext(), "child", name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(u, strings.Repeat("x", 1<<20)); err != nil {
			return err
		}
		if strings.Contains(name, "prepared") {
			if _, err := u.Prepare(childContext()); err != nil {
				return err
			}
		}
	}
	fmt.Println("staged")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// What a killed process staged is found with its run and its names.
func TestLeftoversOfKilledProcess(t *testing.T) {
	root := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), stageEnv+"="+root)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "staged\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	d := open(t, root)
	held, err := d.Holders(t.Context())
	if err != nil || len(held) != 1 || held[0].RunID != "child" {
		t.Errorf("while it lives: held by %+v, %v", held, err)
	}
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	held, err = d.Holders(t.Context())
	if err != nil || len(held) != 0 {
		t.Errorf("after its death: held by %+v, %v", held, err)
	}
	left, err := d.Staged(t.Context())
	if err != nil || len(left) != 2 {
		t.Fatalf("left over are %+v, %v", left, err)
	}
	found := map[string]bool{}
	for _, l := range left {
		if l.Run != "child" || l.Bytes > 1<<20 || l.Bytes < 1<<19 { // the last of it may have been in memory
			t.Errorf("left over is %+v", l)
		}
		found[l.Name] = true
		must(t, d.Abort(t.Context(), load.Prepared{Name: l.Name, Staged: l.Staged}))
	}
	if !found["dt=2026-01-01/prepared.csv"] || !found["dt=2026-01-01/written.csv"] {
		t.Errorf("left over are %+v", left)
	}
	// The lease file stays without a lock; whoever takes it next removes it.
	lease, err := d.Acquire(t.Context(), "", load.Holder{RunID: "mine"})
	must(t, err)
	must(t, lease.Release(t.Context()))
	if all := names(t, root); len(all) > 0 {
		t.Errorf("left are %v", all)
	}
}
