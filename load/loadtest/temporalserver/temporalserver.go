// Package temporalserver installs a real Temporal server and starts it as a process. Only
// tests import it. Building it takes five minutes of a processor.
package temporalserver

import (
	"context"
	"path/filepath"

	"github.com/formetl/formetl/load/loadtest/testserver"
)

// Server is a server that is running or was stopped.
type Server = testserver.Server

// Program is the server's program.
func Program() testserver.Program {
	return testserver.Program{Name: "temporal", Module: "github.com/temporalio/cli/cmd/temporal", Version: "v1.5.1"}
}

// Start installs the server if needed, starts it with its data in dir, and waits until it
// listens.
func Start(ctx context.Context, dir string) (*Server, error) {
	return Program().Start(ctx, nil, func(host, port string) []string {
		return []string{
			"server", "start-dev", "--headless", "--ip", host, "--port", port, "--log-level", "error",
			"--db-filename", filepath.Join(dir, "temporal.db"), "--disable-config-file",
		}
	})
}
