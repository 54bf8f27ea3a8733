package cli

import "runtime/debug"

// gcPercent is how far the heap may grow beyond what lives before it is
// collected.
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
