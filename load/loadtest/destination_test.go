package loadtest_test

import (
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
)

func TestMemory(t *testing.T) {
	loadtest.Destination(t, func(*testing.T) loadtest.Place {
		m := loadtest.NewMemory()
		return loadtest.Place{Open: func() load.Destination { return m.Fresh() }, Names: m.Names}
	})
}

func TestMemoryCountsStaged(t *testing.T) {
	m := loadtest.NewMemory()
	u, err := m.Stage(t.Context(), "run1", "a.csv")
	if err != nil {
		t.Fatal(err)
	}
	p, err := u.Prepare(t.Context())
	if err != nil || m.Staged() != 1 {
		t.Fatalf("%d staged, %v", m.Staged(), err)
	}
	if err := m.Abort(t.Context(), p); err != nil || m.Staged() != 0 {
		t.Fatalf("%d staged, %v", m.Staged(), err)
	}
}
