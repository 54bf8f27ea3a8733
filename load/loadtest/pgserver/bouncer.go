package pgserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// Bouncer starts a PgBouncer in front of the server for one test, and returns its port. Its
// settings are lines of its file, such as "pool_mode = session".
func (s *Server) Bouncer(t testing.TB, settings ...string) (port int) {
	t.Helper()
	program := "/usr/sbin/pgbouncer" // where Debian has it, off the path of many users
	if _, err := os.Stat(program); err != nil {
		program = needs.Program(t, "pgbouncer", "apt-get install pgbouncer")
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[databases]\n* = host=%s port=%d user=loader\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n", s.Dir, s.Port, port)
	for _, line := range settings {
		text += line + "\n"
	}
	file := filepath.Join(s.Dir, fmt.Sprintf("bouncer-%d.ini", port))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // it runs as another user
		t.Fatal(err)
	}
	cmd := s.Command("pgbouncer", "-q", file)
	cmd.Path, cmd.Err = program, nil
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second) //nolint:noctx // bounded
		if err == nil {
			_ = conn.Close() // it was only tried
			return port
		}
		if time.Now().After(deadline) {
			t.Fatalf("PgBouncer does not listen: %v", err)
		}
	}
}
