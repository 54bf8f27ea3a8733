package some

import (
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

func TestProgram(t *testing.T) {
	needs.Program(t, "no-such-program", "it cannot be had")
	t.Error("it ran without its program")
}

func TestLong(t *testing.T) {
	needs.Long(t)
}

func TestSample(t *testing.T) {
	t.Logf("%d cases", len(needs.Sample(t, []int{1, 2, 3, 4, 5}, 2)))
}

func TestThere(t *testing.T) {
	if path := needs.Program(t, "go", "see go.dev"); path == "" {
		t.Error("it has no path")
	}
}
