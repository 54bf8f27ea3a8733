package faulttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	// The program is built by TestMain, which the cache of `go test` does not
	// see: without this import a result would outlive a change of the program.
	_ "github.com/formetl/formetl/cmd/internal/cli"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/s3server"
	"github.com/formetl/formetl/load/loadtest/toxiproxy"
)

// What TestMain made; the tests read it.
var (
	program string           // formetl
	server  *s3server.Server // nil where it is not there
	network *toxiproxy.Proxy // likewise
)

// TestMain builds formetl as it is released, without the race detector, and
// starts one S3 server, in which each test has a bucket of its own, and one
// toxiproxy, in which each has a forward of its own.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	needs.FilesInMemory()
	dir, err := os.MkdirTemp("", "formetl-faults-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = os.Chmod(dir, 0o755) //nolint:gosec // the program is run as another user too
	}
	if err == nil {
		program = filepath.Join(dir, "formetl")
		build := exec.CommandContext(context.Background(), "go", "build", "-o", program, "github.com/formetl/formetl/cmd/formetl")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err == nil {
		err = os.Chmod(program, 0o755) //nolint:gosec // as above
	}
	if err == nil && there() {
		if server, err = startServer(dir); err == nil {
			defer server.Stop()
			network, err = toxiproxy.Start(context.Background())
		}
		if err == nil {
			defer network.Stop()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "formetl cannot be tested against faults here:", err)
		return 1
	}
	return m.Run()
}

// startServer starts versitygw.
func startServer(dir string) (*s3server.Server, error) {
	data := filepath.Join(dir, "s3")
	if err := os.Mkdir(data, 0o750); err != nil {
		return nil, err
	}
	return s3server.Start(context.Background(), s3server.Versitygw(), data, nil)
}

// there tells whether tests have a real server, and lines that can be spoiled.
func there() bool { return s3server.There() && toxiproxy.Program().There() }

// needServer ends a test that needs a real server, or a line that can be spoiled,
// where they are not there.
func needServer(t *testing.T) {
	t.Helper()
	s3server.Need(t)
	toxiproxy.Program().Need(t)
}

const largeVariable = "FORMETL_TEST_LARGE"

// large tells whether tests that take minutes are run too.
func large() bool { return os.Getenv(largeVariable) != "" }
