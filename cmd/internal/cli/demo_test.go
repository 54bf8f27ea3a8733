package cli

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestDemoProposesWhatWorks types every command that the demo proposes, in its
// order, into a shell.
func TestDemoProposesWhatWorks(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // its shell is another
	}
	dir := t.TempDir()
	demo := command(t, dir, "", "demo", "--results", "200", "--dir", "a demo's")
	if code := demo.code(t, demo.Run()); code != 0 {
		t.Fatalf("it ended with %d: %s", code, &demo.stderr)
	}
	_, proposals, _ := strings.Cut(demo.stdout.String(), "Try next:\n")
	ran := 0
	for line := range strings.Lines(proposals) {
		p := shell(t, dir, strings.TrimSpace(line))
		if code := p.code(t, p.Run()); code != 0 {
			t.Errorf("%sended with %d: %s", line, code, &p.stderr)
		}
		ran++
	}
	if ran < 3 {
		t.Errorf("only %d commands ran of\n%s", ran, proposals)
	}
}

// shell prepares a line as it is typed. The process is that of its last command.
func shell(t *testing.T, dir, line string) *child {
	t.Helper()
	p := command(t, dir, "")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exec "+line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.Dir, p.Env, &p.stdout, &p.stderr
	p.Cmd = cmd
	return p
}
