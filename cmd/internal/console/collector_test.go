package console

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// limited and unlimited are processes with and without a control group's limit.
func limited() (uint64, error)   { return 4_000_000_000, nil }
func unlimited() (uint64, error) { return 0, memlimit.ErrNoLimit }

func TestTune(t *testing.T) {
	before, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(before)
	for _, c := range []struct {
		name  string
		env   map[string]string
		tuned bool
		limit int64
	}{
		{"nothing said", nil, true, 3_600_000_000},
		{"empty is nothing", map[string]string{"GOGC": "", "GOMEMLIMIT": ""}, true, 3_600_000_000},
		{"GOGC", map[string]string{"GOGC": "100"}, false, 3_600_000_000},
		{"GOMEMLIMIT", map[string]string{"GOMEMLIMIT": "1GiB"}, false, limit},
	} {
		restore := tuneCollector(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }, limited)
		if got := debug.SetMemoryLimit(-1); got != c.limit {
			t.Errorf("%s: the limit is %d, not %d", c.name, got, c.limit)
		}
		now := debug.SetGCPercent(100)
		if tuned := now != 100; tuned != c.tuned {
			t.Errorf("%s: the collector works at %d %%", c.name, now)
		}
		restore()
		if got := debug.SetGCPercent(100); got != 100 {
			t.Errorf("%s: %d %% after it ended", c.name, got)
		}
		if got := debug.SetMemoryLimit(-1); got != limit {
			t.Errorf("%s: the limit is %d after it ended", c.name, got)
		}
	}
}

// TestSmallHeap: the block keeps a small heap from being collected, and takes no memory.
func TestSmallHeap(t *testing.T) {
	restore := tuneCollector(func(string) (string, bool) { return "", false }, unlimited)
	defer restore()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 6 {
		sink = make([]byte, 1<<20)
	}
	if runtime.ReadMemStats(&after); after.NumGC != before.NumGC {
		t.Errorf("%d collections for 6 MB", after.NumGC-before.NumGC)
	}
}

var sink []byte
