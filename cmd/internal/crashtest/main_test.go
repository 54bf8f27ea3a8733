package crashtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// shared is what TestMain makes for all tests; they only read it.
var shared struct {
	program string    // formetl, with its fault points
	buckets *needs.S3 // nil where it is not there
	dir     string
}

// TestMain builds formetl, and starts versitygw where it is there.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if !needs.Programs() {
		return m.Run() // each test notes that it is left out
	}
	needs.FilesInMemory()
	dir, err := os.MkdirTemp("", "formetl-crash-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		shared.dir = dir
	}
	if err == nil {
		shared.program, err = build(dir)
	}
	if err == nil && needs.S3There() {
		if shared.buckets, err = startServer(filepath.Join(dir, "shared")); err == nil {
			defer shared.buckets.Stop()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds the program as it is shipped, with fault points. It is a
// process of its own, so the race detector of the tests is not for it.
func build(dir string) (string, error) {
	program := filepath.Join(dir, "formetl")
	cmd := exec.Command("go", "build", "-tags", "formetl_faults", "-o", program, "../../formetl") //nolint:noctx // it ends by itself
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build formetl: %w\n%s", err, out)
	}
	return program, nil
}

// startServer starts versitygw over a folder, which it makes.
func startServer(dir string) (*needs.S3, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	return needs.StartS3(context.Background(), needs.Versitygw(), dir, nil)
}
