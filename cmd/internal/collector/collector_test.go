package collector

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

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
		restore := tune(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }, limited)
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

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live, scanned uint64
		want          int
	}{
		{0, 0, 600},                         // the least heap is at the floor
		{1 << 20, 2 << 20, 600},             // as above
		{8 << 20, 8 << 20, 200},             // 8 MB grow by 16 MB
		{8 << 20, 10 << 20, 160},            // the same, with 2 MB of stacks
		{20 << 20, 20 << 20, 30},            // beyond the floor, by 6 MB
		{24 << 20, 24 << 20, percent},       // by a quarter
		{100 * floor, 100 * floor, percent}, // as above
	} {
		if got := percentFor(c.live, c.scanned); got != c.want {
			t.Errorf("%d and %d bytes: %d %%, not %d", c.live, c.scanned, got, c.want)
		}
	}
}

// The percentage follows what lives: large memory lowers it to the usual one,
// and it rises again when the memory is given back.
func TestFollowsHeap(t *testing.T) {
	restore := tune(func(string) (string, bool) { return "", false }, unlimited)
	defer restore()
	becomes := func(fits func(int) bool) bool {
		for range 200 {
			runtime.GC()
			time.Sleep(10 * time.Millisecond)
			now := debug.SetGCPercent(percent)
			debug.SetGCPercent(now)
			if fits(now) {
				return true
			}
		}
		return false
	}
	large := make([]byte, 2*floor)
	if !becomes(func(now int) bool { return now == percent }) {
		t.Error("a large heap may still grow by more")
	}
	runtime.KeepAlive(large)
	if !becomes(func(now int) bool { return now > 4*percent }) {
		t.Error("a small heap has no floor")
	}
}
