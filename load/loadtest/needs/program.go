package needs

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"testing"
)

// GoProgram is a program that `go install` builds.
type GoProgram struct {
	Name    string
	Module  string // path of its main package
	Version string
}

// There tells whether tests have the program: it was built before, or every
// program is asked for.
func (p GoProgram) There() bool {
	cache, err := os.UserCacheDir()
	if err != nil {
		return Programs()
	}
	_, final, name := p.places(cache)
	_, err = os.Stat(filepath.Join(final, name))
	return err == nil || Programs()
}

// Require ends a test that needs the program where there is none.
func (p GoProgram) Require(t testing.TB) {
	t.Helper()
	if !p.There() {
		Missing(t, p.Name, ProgramsVariable+"=1 builds it")
	}
}

// places are the folder of all programs, the program's own, and its file there.
func (p GoProgram) places(cache string) (home, final, name string) {
	home = filepath.Join(cache, "formetl-test")
	name = path.Base(p.Module)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return home, filepath.Join(home, p.Name+"-"+url.PathEscape(p.Version)), name
}

// Path returns the path of the program's file in the user's cache folder. It
// builds the program if it is missing. A finished build is renamed into place,
// so that two tests may build at the same time.
func (p GoProgram) Path(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home, final, name := p.places(cache)
	if _, err := os.Stat(filepath.Join(final, name)); err == nil {
		return filepath.Join(final, name), nil
	}
	if err := os.MkdirAll(home, 0o750); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(home, "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	fmt.Fprintf(os.Stderr, "building %s@%s into %s, once\n", p.Module, p.Version, final)
	install := exec.CommandContext(ctx, "go", "install", p.Module+"@"+p.Version)
	install.Dir = temp // outside a module, so that the project's go.mod has no effect
	install.Env = append(os.Environ(), "GOBIN="+temp, "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot get %s@%s: %w\n%s", p.Module, p.Version, err, out)
	}
	if err := os.Rename(temp, final); err != nil {
		if _, there := os.Stat(filepath.Join(final, name)); there != nil {
			return "", err
		}
	}
	return filepath.Join(final, name), nil
}

// Temporal is the program of a Temporal server. Building it takes five minutes of a processor.
func Temporal() GoProgram {
	return GoProgram{Name: "temporal", Module: "github.com/temporalio/cli/cmd/temporal", Version: "v1.5.1"}
}

// StartTemporal installs a Temporal server if needed, starts it with its data in dir, and
// waits until it listens.
func StartTemporal(ctx context.Context, dir string) (*Server, error) {
	return Temporal().Start(ctx, nil, func(host, port string) []string {
		return []string{
			"server", "start-dev", "--headless", "--ip", host, "--port", port, "--log-level", "error",
			"--db-filename", filepath.Join(dir, "temporal.db"), "--disable-config-file",
		}
	})
}
