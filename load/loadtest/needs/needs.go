// Package needs holds what a test needs besides Go, and what it costs. Only
// tests and their tools import it. Begin reading with Program and Long.
//
// `go test ./...` is to be green in minutes on a machine that has Go and
// nothing else. So a test whose program is missing is left out there, and a
// test that takes long runs in a short version. With FORMETL_TEST_ALL=1, as
// .ci/run sets it, everything runs, and a missing program is a failure.
//
// Nothing is left out in silence. Each test program notes what it leaves out,
// and package transform/untested, which `go test ./...` reports last, prints all notes.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Variable asks for every test in full, if it is set.
const Variable = "FORMETL_TEST_ALL"

// All tells whether every test is asked for, in full.
func All() bool { return os.Getenv(Variable) != "" }

// Program returns the path of a program that the test calls. Install says how
// to get it.
func Program(t testing.TB, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, install)
	}
	note(nil)
	return path
}

// Missing ends the test, because what it needs is not there. Install says how
// to get that.
func Missing(t testing.TB, what, install string) {
	t.Helper()
	if All() {
		t.Fatalf("%s is missing, and %s asks for every test: %s", what, Variable, install)
	}
	leaveOut(t, what+" is missing ("+install+")")
}

// Long ends a test that takes long, unless every test is asked for.
func Long(t testing.TB) {
	t.Helper()
	if All() {
		return
	}
	leaveOut(t, takesLong)
}

// leaveOut notes a test down and ends it. No test is skipped in another way.
func leaveOut(t testing.TB, why string) {
	t.Helper()
	note(&Note{Test: t.Name(), What: why, Whole: true})
	t.Skip(why, "; ", Variable, "=1 asks for every test")
}

const takesLong = "takes long"

// Count is how much of something a test does: full if every test is asked for,
// else short.
func Count(t testing.TB, full, short int) int {
	t.Helper()
	if All() || full <= short {
		return full
	}
	note(&Note{Test: t.Name(), What: takesLong})
	return short
}

// Sample returns all of a test's cases if every test is asked for, else so many
// of them, the first and the last among them.
func Sample[T any](t testing.TB, all []T, short int) []T {
	t.Helper()
	return spread(all, Count(t, len(all), short))
}

// spread returns n of a list at equal distances.
func spread[T any](all []T, n int) []T {
	if n == len(all) {
		return all
	}
	sample := make([]T, 0, n)
	for i := range n {
		sample = append(sample, all[i*(len(all)-1)/max(1, n-1)])
	}
	return sample
}

// Partly notes that a test runs without a part of what it could do. How says
// what would add that part.
func Partly(t testing.TB, what, how string) {
	t.Helper()
	note(&Note{Test: t.Name(), What: what + " is not asked for (" + how + ")"})
}
