package console

import (
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// percent is how far a large heap may grow beyond its live part before it is collected. A run
	// holds a few large blocks for long (a row group, the parts of its uploads) beside short-lived
	// batches. Go's default of 100 lets these grow to the size of the blocks. The blocks hold no
	// pointers, so a collection takes a few milliseconds. A part of 2 GB written to S3 took 199 MB
	// resident at 50 percent and 175 to 178 MB at 25, with 21 s of CPU in each case.
	percent = 25
	// untouched is the size in bytes of a block that is never used. A small heap grows by a quarter
	// of this size before it is collected. With 64 MB an export to Parquet takes 7 percent less
	// CPU, but a part of 312 MB written to S3 up to 196 MB of memory instead of 187.
	untouched = 32 << 20
	// ofLimit is the part of a control group's memory limit that Go's memory may take, in
	// percent. The rest is for what Go does not count, such as the program's text.
	ofLimit = 90
)

// TuneCollector sets when Go's garbage collector runs. A run keeps a few megabytes alive, and
// large blocks while it encodes: with Go's default it would collect a heap of 4 MB a hundred
// times a second. So the heap holds a block that is never used, which takes addresses and no
// memory, and grows by a quarter of its size. Where the process has a limit of memory (a control
// group of Linux), the collector works harder before the limit is reached.
//
// Settings in the environment (GOGC, GOMEMLIMIT) take precedence. restore frees the block
// and sets the collector back to its earlier settings.
func TuneCollector(lookup func(string) (string, bool)) (restore func()) {
	return tuneCollector(lookup, memlimit.FromCgroup)
}

// tuneCollector is TuneCollector; group returns the limit of the control group in bytes.
func tuneCollector(lookup func(string) (string, bool), group memlimit.Provider) (restore func()) {
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
	before, block := debug.SetGCPercent(percent), make([]byte, untouched)
	return func() {
		runtime.KeepAlive(block)
		debug.SetGCPercent(before)
		debug.SetMemoryLimit(limit)
	}
}
