// Package temporalserver installs a real Temporal server and starts it as a process. Only
// tests import it. Begin reading with Start.
//
// The server is built once, by `go install MODULE@VERSION` into a folder of the user's
// cache, which takes five minutes of a processor. That is done where every test is asked
// for; else tests use the server that was built before, or are left out.
package temporalserver

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/load/internal/testserver"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// Variable set to off leaves out every test that needs a Temporal server.
const Variable = "FORMETL_TEST_TEMPORAL"

// Server is a server that is running or was stopped.
type Server struct {
	Address string // host:port

	program string
	args    []string
	process *testserver.Process
}

func program() testserver.Program {
	return testserver.Program{Name: "temporal", Module: "github.com/temporalio/cli/cmd/temporal", Version: "v1.5.1"}
}

// There tells whether tests have the server: it was built before, or every program is
// asked for.
func There() bool {
	return os.Getenv(Variable) != "off" && (needs.Programs() || program().Built())
}

// Need ends a test that needs the server where there is none.
func Need(t testing.TB) {
	t.Helper()
	if !There() {
		needs.Missing(t, program().Name, needs.ProgramsVariable+"=1 builds it, unless "+Variable+" is off")
	}
}

// Start installs the server if needed, starts it with its data in dir, and waits until it
// listens.
func Start(ctx context.Context, dir string) (*Server, error) {
	path, err := program().Path(ctx)
	if err != nil {
		return nil, err
	}
	address, err := testserver.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	s := &Server{Address: address, program: path, args: []string{
		"server", "start-dev", "--headless", "--ip", host, "--port", port, "--log-level", "error",
		"--db-filename", filepath.Join(dir, "temporal.db"), "--disable-config-file",
	}}
	return s, s.start(ctx)
}

func (s *Server) start(ctx context.Context) (err error) {
	s.process, err = testserver.Start(ctx, s.Address, nil, s.program, s.args...)
	return err
}

// Stop kills the server with SIGKILL. Calling it twice is harmless.
func (s *Server) Stop() { s.process.Kill() }

// Restart kills the server with SIGKILL, unless it was stopped before, and starts it at
// the same address over the same data.
func (s *Server) Restart(ctx context.Context) error {
	s.Stop()
	return s.start(ctx)
}
