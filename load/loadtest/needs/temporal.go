package needs

import (
	"context"
	"path/filepath"
)

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
