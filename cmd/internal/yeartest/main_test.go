package yeartest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// Variables that ask for another course of events than the usual one.
const (
	seedVariable  = "FORMETL_YEAR_SEED"    // decides on everything that happens
	weeksVariable = "FORMETL_YEAR_WEEKS"   // so long, as one world
	sortVariable  = "FORMETL_YEAR_SORT"    // off: the service ignores fs_sort
	waysVariable  = "FORMETL_YEAR_CHANGES" // lookback: the definitions say so; else auto
	raceVariable  = "FORMETL_YEAR_RACE"    // set: formetl itself runs under the race detector, which ends it with 66
)

// program is formetl with its test hooks. TestMain builds it.
var program string

// TestMain builds formetl.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	needs.FilesInMemory()
	dir, err := os.MkdirTemp("", "formetl-year-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		program, err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds the program as it is shipped, with its test hooks. It is a
// process of its own, so the race detector of the tests does not reach it.
func build(dir string) (string, error) {
	file := filepath.Join(dir, "formetl")
	args := []string{"build", "-tags", "formetl_faults", "-o", file}
	if os.Getenv(raceVariable) != "" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "../../formetl")...) //nolint:noctx,gosec // it ends by itself; the arguments are ours
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build formetl: %w\n%s", err, out)
	}
	return file, nil
}

// number is a variable's value, or what is usual where it is not set.
func number(t *testing.T, variable string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
