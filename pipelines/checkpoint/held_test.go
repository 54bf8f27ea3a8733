package checkpoint

import (
	"errors"
	"testing"

	"github.com/formetl/formetl/load/loadtest"
)

func alwaysHeld() error { return nil }

// TestLostLease: a checkpoint at a destination belongs to who has the lease, so
// that a run which lost it neither writes nor removes anything.
func TestLostLease(t *testing.T) {
	lost := errors.New("lost")
	var held error
	c := OpenAt(loadtest.NewMemory(), "memory", "key", func() error { return held })
	if err := c.Begin(t.Context(), Header{RunID: "run1", Runs: []string{"run1"}}); err != nil {
		t.Fatal(err)
	}
	held = lost
	if err := c.Begin(t.Context(), Header{RunID: "run1", Runs: []string{"run1"}}); !errors.Is(err, lost) {
		t.Errorf("begin: %v", err)
	}
	if err := c.Close(t.Context(), false); !errors.Is(err, lost) {
		t.Errorf("close: %v", err)
	}
	if found, err := c.Found(t.Context()); err != nil || found == nil || found.RunID != "run1" {
		t.Errorf("%+v, %v", found, err)
	}
}
