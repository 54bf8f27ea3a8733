// Package needs holds what a test needs besides Go, and what it costs: programs, and
// servers of S3, Temporal and PostgreSQL (with PgBouncer before it), which it installs and
// runs as processes that end with the test. Only tests and their tools import it. Begin
// reading with Program and Long; for a server with GoProgram.Start.
//
// `go test ./...` is to be green in minutes on a machine that has Go and
// nothing else. So a test whose program is missing is skipped there, and a test
// that is slow or takes long is skipped or runs in a short version. .ci/run sets
// FORMETL_TEST_PROGRAMS=1, with which a missing program is a failure, and slow
// tests run. With FORMETL_TEST_ALL=1 it is one too, and every test runs in full.
//
// A program in Go is built once, by `go install MODULE@VERSION` into a folder of the
// user's cache. That is done where every program is asked for; else tests use
// what was built before, or are left out.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Variables of the environment. Each counts if it is set.
const (
	allVariable      = "FORMETL_TEST_ALL"
	ProgramsVariable = "FORMETL_TEST_PROGRAMS" // asks for every program that tests call, and for slow tests
)

// All tells whether every test is asked for, in full.
func All() bool { return os.Getenv(allVariable) != "" }

// Programs tells whether every program that tests call is to be there.
func Programs() bool { return os.Getenv(ProgramsVariable) != "" || All() }

// Program returns the path of a program that the test calls. Install says how
// to get it.
func Program(t testing.TB, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, install)
	}
	return path
}

// Missing ends the test, because what it needs is not there. Install says how
// to get that.
func Missing(t testing.TB, what, install string) {
	t.Helper()
	if Programs() {
		t.Fatalf("%s is missing: %s", what, install)
	}
	t.Skipf("%s is missing: %s", what, install)
}

// Slow ends a test that takes a second of a processor or more, unless .ci/run asks for it or
// every test is asked for. What it shows as a whole, quicker tests show in part.
func Slow(t testing.TB) {
	t.Helper()
	if !Programs() {
		t.Skip("is slow: ", ProgramsVariable, "=1 asks for it")
	}
}

// Rounds is how often a slow test does the same with other values: so many times where Slow
// lets it run, else few.
func Rounds(usual, few int) int {
	if Programs() {
		return usual
	}
	return few
}

// Long ends a test that takes long, unless every test is asked for.
func Long(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("takes long: ", allVariable, "=1 asks for it")
	}
}

// Count is how much of something a test does: full if every test is asked for,
// else short.
func Count(full, short int) int {
	if All() {
		return full
	}
	return min(full, short)
}

// Sample returns all of a test's cases if every test is asked for, else so many
// of them at equal distances, the first and the last among them.
func Sample[T any](all []T, short int) []T {
	n := Count(len(all), short)
	sample := make([]T, 0, n)
	for i := range n {
		sample = append(sample, all[i*(len(all)-1)/max(1, n-1)])
	}
	return sample
}
