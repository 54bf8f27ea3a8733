// Package pgserver starts a PostgreSQL for tests. Begin reading with Main
// and Start.
package pgserver

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/testserver"
)

// nobody runs the server where the tests run as root, which PostgreSQL refuses.
const nobody = 65534

// Password is that of the role loader, which connects by TCP. Tests look for it in all that
// formetl writes.
const Password = "canary-Pg7pass:/word"

// Server is a PostgreSQL of the tests, in a folder of its own. Over its Unix socket
// everybody is let in. Over TCP the role loader needs Password.
type Server struct {
	Bin  string // folder of its programs
	Dir  string // folder of its socket
	Port int
	CA   string // file with the certificate that it shows

	process *exec.Cmd
	failed  error
	number  int
	mu      sync.Mutex
	ended   chan struct{} // of Open: closed by Stop
}

// Main runs the tests of a package with a server, which ends with them. The server is
// started also where no test needs it, so a package whose tests need none should not call it.
func Main(m *testing.M) (*Server, func() int) {
	needs.FilesInMemory()
	runtime.LockOSThread() // the server is to die with this thread, whatever ends the tests
	s := &Server{}
	s.failed = s.start()
	return s, func() int {
		defer s.Stop()
		return m.Run()
	}
}

// Open starts a server, which Stop ends.
func Open() (*Server, error) {
	s, started := &Server{ended: make(chan struct{})}, make(chan struct{})
	go func() {
		runtime.LockOSThread() // the server would die with a thread of others
		s.failed = s.start()
		close(started)
		<-s.ended
	}()
	<-started
	return s, s.failed
}

// Start starts a server for one test.
func Start(t testing.TB) *Server {
	t.Helper()
	s, _ := Open() // Database tells what failed
	t.Cleanup(s.Stop)
	return s
}

func (s *Server) start() (err error) {
	if s.Bin, err = binFolder(); err != nil {
		return err
	}
	if s.Dir, err = os.MkdirTemp("", "pg"); err != nil {
		return err
	}
	if s.Port, err = freePort(); err != nil {
		return err
	}
	s.CA = filepath.Join(s.Dir, "server.crt")
	if err := testserver.Certify(s.CA, s.key()); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		for _, file := range []string{s.Dir, s.CA, s.key()} {
			if err := os.Chown(file, nobody, nobody); err != nil {
				return err
			}
		}
	}
	data := filepath.Join(s.Dir, "data")
	if err := s.Command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C").Run(); err != nil {
		return fmt.Errorf("initdb in %s: %w (it runs as user %d where the tests run as root, and must be let into the folder)", data, err, nobody)
	}
	rules := "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(rules), 0o600); err != nil {
		return err
	}
	if err := s.Restart(); err != nil {
		return err
	}
	return s.Run("postgres", "CREATE ROLE loader LOGIN PASSWORD '"+Password+"'")
}

// Restart starts the server, again if it runs. It is stopped as by a crash.
func (s *Server) Restart() error {
	s.kill()
	s.process = s.Command("postgres", "-D", filepath.Join(s.Dir, "data"), "-k", s.Dir, "-c", "fsync=off", "-c", "max_connections=500",
		"-c", "listen_addresses=127.0.0.1", "-p", fmt.Sprint(s.Port), "-c", "ssl=on", "-c", "ssl_cert_file="+s.CA, "-c", "ssl_key_file="+s.key())
	if err := s.process.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		ready := exec.Command(filepath.Join(s.Bin, "pg_isready"), "-q", "-h", s.Dir, "-p", fmt.Sprint(s.Port), "-t", "5") //nolint:noctx // bounded by the deadline
		if ready.Run() == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("PostgreSQL did not become ready within a minute")
		}
	}
}

func (s *Server) key() string { return filepath.Join(s.Dir, "server.key") }

// Command is a program of the server's, run as its user; it dies with the tests.
func (s *Server) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.Bin, name), args...) //nolint:noctx // stopped by Stop
	cmd.Dir = s.Dir
	cmd.SysProcAttr = attributes()
	if os.Geteuid() == 0 {
		as(cmd.SysProcAttr, nobody)
	}
	return cmd
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	s.kill()
	if s.ended != nil {
		close(s.ended)
	}
	if s.Dir != "" {
		_ = os.RemoveAll(s.Dir)
	}
}

func (s *Server) kill() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT)
		_ = s.process.Wait()
	}
}

// Run runs a script as the superuser.
func (s *Server) Run(database, script string) error {
	_, err := s.Query(database, script)
	return err
}

// Query runs a script as the superuser, and gives what psql printed.
func (s *Server) Query(database, script string) (string, error) {
	cmd := exec.Command(filepath.Join(s.Bin, "psql"), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", s.Dir, "-p", fmt.Sprint(s.Port), "-U", "postgres", "-d", database) //nolint:noctx // it is short
	cmd.Env = append(os.Environ(), "PGTZ=UTC", "PGCLIENTENCODING=UTF8")
	cmd.Stdin = strings.NewReader(script)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %w\n%s", err, failure.String())
	}
	return string(out), nil
}

// errNone says that there is nothing to test with.
var errNone = errors.New("PostgreSQL is not installed")

// binFolder is the folder of initdb and postgres, which Debian keeps off the path.
func binFolder() (string, error) {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for i := len(folders) - 1; i >= 0; i-- {
		if _, err := os.Stat(filepath.Join(folders[i], "initdb")); err == nil {
			return folders[i], nil
		}
	}
	if file, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(file), nil
	}
	return "", errNone
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }() // nothing was sent
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Database makes a database of its own for a test, with the schema forms of the role
// loader, and gives its name. It ends the test where there is no PostgreSQL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	if errors.Is(s.failed, errNone) {
		needs.Missing(t, "PostgreSQL", "apt-get install postgresql, 15 or newer")
	}
	if s.failed != nil {
		t.Fatal(s.failed)
	}
	name, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// Create makes a database as Database does.
func (s *Server) Create() (name string, err error) {
	s.mu.Lock()
	s.number++
	name = fmt.Sprintf("test%d", s.number)
	s.mu.Unlock()
	return name, errors.Join(s.Run("postgres", "CREATE DATABASE "+name), s.Run(name, "CREATE SCHEMA forms AUTHORIZATION loader; CREATE SCHEMA formetl AUTHORIZATION loader"))
}

// DSN is the connection string of the role loader, over TCP. options stand behind the "?".
func (s *Server) DSN(database, options string) string { return s.DSNAt(s.Port, database, options) }

// DSNAt is DSN by another port, such as that of a proxy.
func (s *Server) DSNAt(port int, database, options string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("loader", Password), Host: fmt.Sprintf("127.0.0.1:%d", port), Path: database, RawQuery: options}
	return u.String()
}
