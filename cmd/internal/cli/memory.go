package cli

import "runtime/debug"

// gcPercent is how far the heap may grow beyond what lives before it is
// collected. A run holds a few large blocks that live long (a row group, the
// parts of its uploads) beside batches that come and go, and Go's default of
// 100 lets the second reach the size of the first. A part of 307 MB written to
// S3 took 203 to 224 MB resident at 100, 169 to 186 at 50 and 155 to 158 at
// 25, for the same CPU within what a machine varies by (1.8 to 2.3 s): these
// blocks hold no pointers, so that a collection takes a millisecond or two.
//
// It is no bound of the memory: several uploads at once live on more, and
// under a soft limit (debug.SetMemoryLimit) they would have half the CPU go to
// collections that free nothing.
const gcPercent = 50

// collectSooner sets gcPercent, unless the environment says how the collector
// is to work.
func collectSooner(lookup func(string) (string, bool)) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if v, _ := lookup(name); v != "" {
			return
		}
	}
	debug.SetGCPercent(gcPercent)
}
