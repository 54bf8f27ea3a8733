package needs

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

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
