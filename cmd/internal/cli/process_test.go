package cli

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

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
)

// patience is how long a process may take before a test gives up on it. It
// is no measurement: a slow machine only takes longer to fail.
const patience = time.Minute

// child is formetl as a process of its own.
type child struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

// raceOptions spare each process the second that the race detector waits at
// its end; the goroutines that it waits for are those of main.
const raceOptions = "atexit_sleep_ms=0"

// command prepares formetl in a folder, with a key in its environment.
func command(t testing.TB, dir, key string, args ...string) *child {
	t.Helper()
	program, err := exec.LookPath("formetl") // installed by TestMain
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	p := &child{Cmd: exec.CommandContext(ctx, program, args...)}
	p.Dir, p.Stdout, p.Stderr = dir, &p.stdout, &p.stderr
	p.Env = append(environment(), "FORMETL_API_KEY="+key, "XDG_CACHE_HOME="+filepath.Join(dir, ".cache"), "HOME="+dir, "TZ=UTC", "GORACE="+raceOptions)
	return p
}

// environment is the test's own without formetl's variables.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FORMETL_") {
			env = append(env, v)
		}
	}
	return env
}

// inProcess runs a command in this process. Of its environment it sees the key alone, "" for none.
func inProcess(key string, args ...string) (code int, stdout, stderr string) {
	var out, told bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &told, func(name string) (string, bool) {
		if name != definition.KeyVariable || key == "" {
			return "", false
		}
		return key, true
	})
	return code, out.String(), told.String()
}

// code is the exit code that the process ended with.
func (p *child) code(t testing.TB, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%v: %v", p.Args, err)
	}
	return exit.ExitCode()
}

// service returns the flags that name a service of the tests.
func serviceArgs(url string) []string {
	return []string{"--base-url", url, "--account", formservice.DefaultAccount, "--timezone", "UTC", "--retries", "0"}
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
