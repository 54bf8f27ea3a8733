package needs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// PostgresPassword is that of the role loader, which connects by TCP. Tests look for it in all
// that formetl writes.
const PostgresPassword = "canary-Pg7pass:/word"

// Postgres is a PostgreSQL of the tests, in a folder of its own. Over its Unix socket
// everybody is let in. Over TCP the role loader needs PostgresPassword.
type Postgres struct {
	Bin  string // folder of its programs
	Dir  string // folder of its socket
	Port int
	CA   string // file with the certificate that it shows

	server Server
	failed error
	number int
	mu     sync.Mutex
}

// PostgresMain runs the tests of a package with a server, which ends with them. The server is
// started also where no test needs it, so a package whose tests need none should not call it.
func PostgresMain(m *testing.M) (*Postgres, func() int) {
	FilesInMemory()
	p, _ := OpenPostgres() // Database tells what failed
	return p, func() int {
		defer p.Stop()
		return m.Run()
	}
}

// OpenPostgres starts a server, which Stop ends.
func OpenPostgres() (*Postgres, error) {
	p := &Postgres{}
	p.failed = p.start()
	return p, p.failed
}

func (p *Postgres) start() (err error) {
	if p.Bin, err = binFolder(); err != nil {
		return err
	}
	if p.Dir, err = os.MkdirTemp("", "pg"); err != nil {
		return err
	}
	port, err := FreePort(context.Background())
	if err != nil {
		return err
	}
	p.Port, _ = strconv.Atoi(port)
	key := filepath.Join(p.Dir, "server.key")
	p.CA = filepath.Join(p.Dir, "server.crt")
	if err := Certify(p.CA, key); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		for _, file := range []string{p.Dir, p.CA, key} {
			if err := os.Chown(file, nobody, nobody); err != nil {
				return err
			}
		}
	}
	data := filepath.Join(p.Dir, "data")
	if err := p.Command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C").Run(); err != nil {
		return fmt.Errorf("initdb in %s: %w (it runs as user %d where the tests run as root, and must be let into the folder)", data, err, nobody)
	}
	rules := "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(rules), 0o600); err != nil {
		return err
	}
	p.server = Server{Address: net.JoinHostPort(host, port), signal: "QUIT", prepare: p.prepare, command: []string{
		filepath.Join(p.Bin, "postgres"), "-D", data, "-k", p.Dir, "-c", "fsync=off", "-c", "max_connections=500",
		"-c", "listen_addresses=" + host, "-p", port, "-c", "ssl=on", "-c", "ssl_cert_file=" + p.CA, "-c", "ssl_key_file=" + key,
	}}
	if err := p.Restart(); err != nil {
		return err
	}
	return p.Run("postgres", "CREATE ROLE loader LOGIN PASSWORD '"+PostgresPassword+"'")
}

// Restart starts the server, again if it runs. It is stopped as by a crash.
func (p *Postgres) Restart() error {
	if err := p.server.Restart(context.Background()); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; { // it listens before it has recovered
		ready := exec.Command(filepath.Join(p.Bin, "pg_isready"), "-q", "-h", p.Dir, "-p", fmt.Sprint(p.Port), "-t", "5") //nolint:noctx // bounded by the deadline
		if ready.Run() == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("PostgreSQL did not become ready within a minute")
		}
	}
}

// Command is a program of the server's, run as its user.
func (p *Postgres) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.Bin, name), args...) //nolint:noctx // it is short
	p.prepare(cmd)
	return cmd
}

// prepare lets a program run as the server's user, in a folder that this one may enter.
func (p *Postgres) prepare(cmd *exec.Cmd) {
	cmd.Dir, cmd.SysProcAttr = p.Dir, asNobody()
}

// Stop ends the server and removes its folder.
func (p *Postgres) Stop() {
	p.server.Stop()
	if p.Dir != "" {
		_ = os.RemoveAll(p.Dir)
	}
}

// Run runs a script as the superuser.
func (p *Postgres) Run(database, script string) error {
	_, err := p.Query(database, script)
	return err
}

// Query runs a script as the superuser, and gives what psql printed.
func (p *Postgres) Query(database, script string) (string, error) {
	cmd := exec.Command(filepath.Join(p.Bin, "psql"), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", p.Dir, "-p", fmt.Sprint(p.Port), "-U", "postgres", "-d", database) //nolint:noctx // it is short
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

// Database makes a database of its own for a test, with the schema forms of the role
// loader, and gives its name. It ends the test where there is no PostgreSQL.
func (p *Postgres) Database(t testing.TB) string {
	t.Helper()
	if errors.Is(p.failed, errNone) {
		Missing(t, "PostgreSQL", "apt-get install postgresql, 15 or newer")
	}
	if p.failed != nil {
		t.Fatal(p.failed)
	}
	name, err := p.Create()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// Create makes a database as Database does.
func (p *Postgres) Create() (name string, err error) {
	p.mu.Lock()
	p.number++
	name = fmt.Sprintf("test%d", p.number)
	p.mu.Unlock()
	return name, errors.Join(p.Run("postgres", "CREATE DATABASE "+name), p.Run(name, "CREATE SCHEMA forms AUTHORIZATION loader; CREATE SCHEMA formetl AUTHORIZATION loader"))
}

// DSN is the connection string of the role loader, over TCP. options stand behind the "?".
func (p *Postgres) DSN(database, options string) string { return p.DSNAt(p.Port, database, options) }

// DSNAt is DSN by another port, such as that of a proxy.
func (p *Postgres) DSNAt(port int, database, options string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("loader", PostgresPassword), Host: fmt.Sprintf("127.0.0.1:%d", port), Path: database, RawQuery: options}
	return u.String()
}

// Bouncer starts a PgBouncer in front of the server for one test, and returns its port. Its
// settings are lines of its file, such as "pool_mode = session".
func (p *Postgres) Bouncer(t testing.TB, settings ...string) (port int) {
	t.Helper()
	program := "/usr/sbin/pgbouncer" // where Debian has it, off the path of many users
	if _, err := os.Stat(program); err != nil {
		program = Program(t, "pgbouncer", "apt-get install pgbouncer")
	}
	free, err := FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[databases]\n* = host=%s port=%d user=loader\n[pgbouncer]\nlisten_addr = %s\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\n", p.Dir, p.Port, host, free)
	text += strings.Join(settings, "\n") + "\n"
	file := filepath.Join(p.Dir, "bouncer-"+free+".ini")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // it runs as another user
		t.Fatal(err)
	}
	bouncer := &Server{Address: net.JoinHostPort(host, free), command: []string{program, "-q", file}, signal: "KILL", prepare: p.prepare}
	if err := bouncer.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bouncer.Stop)
	port, _ = strconv.Atoi(free)
	return port
}
