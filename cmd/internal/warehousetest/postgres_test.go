package warehousetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	_ "time/tzdata" // as in cmd/formetl

	"github.com/formetl/formetl/load/loadtest/needs"
)

// nobody runs the server where the tests run as root, which PostgreSQL refuses.
const nobody = 65534

// server is a PostgreSQL of the tests: on a Unix socket, in a folder of its own.
type server struct {
	bin, dir string
	process  *exec.Cmd
	failed   error
	number   int
	mu       sync.Mutex
}

// shared is the server of all tests of the package.
var shared = &server{}

func TestMain(m *testing.M) {
	needs.FilesInMemory()
	runtime.LockOSThread() // the server is to die with this thread, whatever ends the tests
	shared.failed = shared.start()
	code := m.Run()
	shared.stop()
	os.Exit(code)
}

func (s *server) start() (err error) {
	if s.bin, err = postgresBin(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	if os.Geteuid() == 0 {
		if err := os.Chown(s.dir, nobody, nobody); err != nil {
			return err
		}
	}
	if err := s.command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C").Run(); err != nil {
		return fmt.Errorf("initdb in %s: %w (it runs as user %d where the tests run as root, and must be let into the folder)", data, err, nobody)
	}
	s.process = s.command("postgres", "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off")
	if err := s.process.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if exec.Command(filepath.Join(s.bin, "pg_isready"), "-q", "-h", s.dir, "-t", "5").Run() == nil { //nolint:noctx // bounded by the deadline
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("PostgreSQL did not become ready within a minute")
		}
	}
}

// command runs a program of the server's as its user; it dies with the tests.
func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...) //nolint:noctx // stopped by stop
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd
}

func (s *server) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT)
		_ = s.process.Wait()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// errNoPostgres says that there is nothing to test with.
var errNoPostgres = errors.New("PostgreSQL is not installed")

// postgresBin is the folder of initdb and postgres, which Debian keeps off the
// path.
func postgresBin() (string, error) {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for i := len(folders) - 1; i >= 0; i-- {
		if _, err := os.Stat(filepath.Join(folders[i], "initdb")); err == nil {
			return folders[i], nil
		}
	}
	if file, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(file), nil
	}
	return "", errNoPostgres
}

// database makes a database of its own for a test and gives its name.
func database(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"gzip", "zstd"} { // the statements call them
		needs.Program(t, name, "apt-get install "+name)
	}
	if errors.Is(shared.failed, errNoPostgres) {
		needs.Missing(t, "PostgreSQL", "apt-get install postgresql, 15 or newer")
	}
	if shared.failed != nil {
		t.Fatal(shared.failed)
	}
	shared.mu.Lock()
	shared.number++
	name := fmt.Sprintf("test%d", shared.number)
	shared.mu.Unlock()
	psql(t, "postgres", "CREATE DATABASE "+name)
	return name
}

// psql runs a script as the README tells, and gives what it printed.
func psql(t *testing.T, database, script string) string {
	t.Helper()
	out, err := tryPsql(t, database, script)
	if err != nil {
		t.Fatalf("%v\n%s", err, numbered(script))
	}
	return out
}

func tryPsql(t *testing.T, database, script string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.bin, "psql"), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", shared.dir, "-U", "postgres", "-d", database, "-f", file)
	cmd.Env = append(os.Environ(), "PGTZ=Asia/Kolkata", "PGCLIENTENCODING=UTF8")
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("psql: %w\n%s", err, failure.String())
	}
	return out.String(), nil
}

func numbered(script string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(script) {
		n++
		if n > 80 {
			b.WriteString("…\n")
			break
		}
		fmt.Fprintf(&b, "%4d %s", n, line)
	}
	return b.String()
}
