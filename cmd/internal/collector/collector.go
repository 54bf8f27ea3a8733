// Package collector sets when Go's garbage collector runs, for a process that
// holds little for long and allocates much.
//
// A run keeps a few megabytes alive, and large blocks while it encodes. With Go's
// default it would collect a heap of 4 MB a hundred times a second. So the heap
// has a floor below which it is not collected. Above the floor it may grow by a
// quarter of what lives, and by at least 6 MB. Where the process has a limit of
// memory (a control group of Linux), the collector works harder before the limit is
// reached.
//
// What the environment says of the collector (GOGC, GOMEMLIMIT) is left as it is.
//
// Begin reading with Tune.
package collector

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// percent is how far a large heap may grow beyond what lives before it is
	// collected. A run holds a few large blocks for long (a row group, the parts of
	// its uploads) beside short-lived batches, which Go's default of 100 lets grow to
	// the same size. These blocks hold no pointers, so a collection takes a few
	// milliseconds. A part of 2 GB written to S3 took 199 MB resident at 50 percent
	// and 175 to 178 MB at 25, for 21 s of CPU in each.
	percent = 25
	// leastGrowth is by how many bytes the heap may always grow.
	leastGrowth = 6 << 20
	// floor is the size up to which the heap is not collected.
	floor = 24 << 20
	// leastHeap is what the runtime takes for the least heap at 100 percent. It
	// scales with the percentage.
	leastHeap = 4 << 20
	// ofLimit is the part of a control group's limit that the process may take, in
	// percent. The rest is for what Go does not count, such as the program's text.
	ofLimit = 90
)

// Tune sets the collector up, unless the environment says how it is to work. It
// returns a function that ends its work and restores what was set before.
func Tune(lookup func(string) (string, bool)) (restore func()) {
	return tune(lookup, memlimit.FromCgroup)
}

// tune does the work of Tune. group returns the limit of the control group in bytes.
func tune(lookup func(string) (string, bool), group memlimit.Provider) (restore func()) {
	set := func(name string) bool { v, _ := lookup(name); return v != "" }
	if set("GOMEMLIMIT") {
		return func() {}
	}
	limit := debug.SetMemoryLimit(-1)
	if most, err := group(); err == nil {
		debug.SetMemoryLimit(int64(most / 100 * ofLimit)) //nolint:gosec // below the largest int64
	}
	if set("GOGC") {
		return func() { debug.SetMemoryLimit(limit) }
	}
	k := &keeper{live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}}
	k.now = k.wanted()
	before := debug.SetGCPercent(k.now)
	k.watch()
	return func() {
		k.ended.Store(true)
		debug.SetGCPercent(before)
		debug.SetMemoryLimit(limit)
	}
}

// keeper keeps the floor. After each collection it sets the percentage anew, by
// what lives then.
type keeper struct {
	live  []metrics.Sample // of the heap, then of what else is scanned
	now   int              // the percentage that is set
	ended atomic.Bool
}

// watch has the percentage adjusted after the next collection, and so on. A
// marker that nothing refers to is found dead by each collection.
func (k *keeper) watch() {
	runtime.AddCleanup(&marker{}, func(k *keeper) {
		if !k.ended.Load() {
			k.adjust()
			k.watch()
		}
	}, k)
}

// marker holds a pointer, because small values without one share memory and die together.
type marker struct{ _ *byte }

func (k *keeper) adjust() {
	if next := k.wanted(); next != k.now {
		debug.SetGCPercent(next)
		k.now = next
	}
}

// wanted returns the percentage for what lives now.
func (k *keeper) wanted() int {
	metrics.Read(k.live)
	live := k.live[0].Value.Uint64()
	return percentFor(live, live+k.live[1].Value.Uint64()+k.live[2].Value.Uint64())
}

// percentFor returns the percentage with which the heap grows to the floor, by
// leastGrowth or by `percent`, whichever is most. live is what lives of the heap in
// bytes, and scanned what the runtime takes the percentage of: live, the stacks and
// the globals.
func percentFor(live, scanned uint64) int {
	const most = 100 * floor / leastHeap
	growth := max(floor, live+leastGrowth) - live
	return int(min(max(100*growth/max(scanned, 1), percent), most)) //nolint:gosec // at most `most`
}
