package worker_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// shared is what TestMain makes for all tests; they only read it.
var shared struct {
	worker, formetl string // the programs
	buckets         *needs.S3
	temporal        *needs.Server
	dir             string
}

// The tests of this package worker_test have formetl-worker as a real program, with a Temporal
// server, an S3 server and the test service, and with workers that are killed and paused. Begin
// reading with world_test.go.

// TestMain builds the programs and starts the servers, where there are any.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if !needs.Temporal().There() || !needs.S3There() {
		return m.Run() // each test notes that it is left out
	}
	needs.FilesInMemory()
	together(6) // most of it is waiting for the heartbeats of the dead
	dir, err := os.MkdirTemp("", "formetl-worker-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		shared.dir = dir
		err = prepare(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.buckets.Stop()
	defer shared.temporal.Stop()
	return m.Run()
}

func prepare(ctx context.Context, dir string) (err error) {
	if shared.worker, err = build(dir, "formetl-worker"); err != nil {
		return err
	}
	if shared.formetl, err = build(dir, "formetl"); err != nil {
		return err
	}
	data := filepath.Join(dir, "buckets")
	if err := os.MkdirAll(data, 0o750); err != nil {
		return err
	}
	if shared.buckets, err = needs.StartS3(ctx, needs.Versitygw(), data, nil); err != nil {
		return err
	}
	if shared.temporal, err = needs.StartTemporal(ctx, dir); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(data, bucket), 0o750) // a folder is a bucket
}

// build builds a program as it is shipped, with fault points.
func build(dir, name string) (string, error) {
	program := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-tags", "formetl_faults", "-o", program, "../../"+name) //nolint:noctx // it ends by itself
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", name, err, out)
	}
	return program, nil
}

// need ends a test where a server is missing.
func need(t testing.TB) {
	t.Helper()
	needs.Temporal().Require(t)
	needs.RequireS3(t)
}

// together lets so many tests of this package run at once, unless -parallel says how many. They
// mostly wait for other processes, and go test lets no more of them run than there are
// processors.
func together(tests int) {
	const name = "test.parallel"
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == name })
	if !asked {
		_ = flag.Set(name, strconv.Itoa(tests)) // fails for what is no number only
	}
}
