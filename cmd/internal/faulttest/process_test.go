package faulttest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/s3server"
)

// Exit codes of contract.md that are met here.
const (
	exitOK         = 0
	exitCantCreate = 73
	exitIO         = 74
	exitTemporary  = 75
	exitTerminated = 143
)

// patience is how long a process may take before a test gives up on it. It is
// no measurement: a slow machine only takes longer to fail.
func patience() time.Duration {
	if large() {
		return 15 * time.Minute
	}
	return 3 * time.Minute
}

// apiKey opens the test services, and must never be seen.
const apiKey = "faulttest-api-key-5b1f09"

// process is formetl as a process of its own.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	secrets        []string
	began          time.Time
}

// result is how a process ended.
type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// formetl prepares the program in a folder. The environment is made anew, so
// that the machine's own settings do not matter; env comes last and wins.
func formetl(t testing.TB, dir string, env []string, args ...string) *process {
	t.Helper()
	return command(t, dir, env, append([]string{program}, args...)...)
}

// command prepares formetl, or what starts it.
func command(t testing.TB, dir string, env []string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, args[0], args[1:]...), secrets: []string{apiKey, s3server.SecretKey}}
	p.Dir, p.Stdout, p.Stderr = dir, &p.stdout, &p.stderr
	p.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, ".cache"), "TZ=UTC",
		"FORMETL_API_KEY=" + apiKey, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=" + s3server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3server.SecretKey,
	}, env...)
	return p
}

// start begins the process.
func (p *process) start(t testing.TB) {
	t.Helper()
	p.began = time.Now()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}

// end waits for the process, and checks that it shows no secret.
func (p *process) end(t testing.TB) result {
	t.Helper()
	err := p.Wait()
	r := result{stdout: p.stdout.String(), stderr: p.stderr.String(), took: time.Since(p.began)}
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("%v: %v", p.Args, err)
		}
		r.code = exit.ExitCode()
	}
	for _, secret := range p.secrets {
		if strings.Contains(r.stdout+r.stderr, secret) {
			t.Errorf("%v shows a secret:\n%s%s", p.Args, r.stdout, r.stderr)
		}
	}
	return r
}

// run runs formetl to its end.
func run(t testing.TB, dir string, env []string, args ...string) result {
	t.Helper()
	p := formetl(t, dir, env, args...)
	p.start(t)
	return p.end(t)
}

// oneError gives the error that a command ended with. It holds that there is
// one, on one line, besides records of the log and a hint.
func (r result) oneError(t testing.TB) string {
	t.Helper()
	var errors []string
	for line := range strings.Lines(r.stderr) {
		text, told := strings.CutPrefix(line, "formetl: ")
		switch {
		case told && !strings.HasPrefix(text, "hint: "):
			errors = append(errors, strings.TrimSpace(text))
		case !told && !strings.HasPrefix(line, "time="):
			t.Errorf("a line is neither an error nor a record: %s", line)
		}
	}
	if len(errors) != 1 {
		t.Errorf("ended with %d and %d errors instead of one:\n%s", r.code, len(errors), r.stderr)
	}
	return strings.Join(errors, "\n")
}

// wantError holds how a command failed, and what its error says.
func (r result) wantError(t testing.TB, code int, says ...string) {
	t.Helper()
	text := r.oneError(t)
	if r.code != code {
		t.Errorf("ended with %d, want %d:\n%s", r.code, code, r.stderr)
	}
	for _, say := range says {
		if !strings.Contains(text, say) {
			t.Errorf("%q is not said: %s", say, text)
		}
	}
	t.Logf("%d after %s: %s", r.code, r.took.Round(time.Millisecond), text)
}

// wantOK holds that a command did what it was told.
func (r result) wantOK(t testing.TB) {
	t.Helper()
	if r.code != exitOK {
		t.Fatalf("ended with %d:\n%s", r.code, r.stderr)
	}
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.WriteFile(path, []byte(text), 0o600)
	if err == nil {
		err = os.Chmod(path, 0o644) //nolint:gosec // another user reads it too
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}
