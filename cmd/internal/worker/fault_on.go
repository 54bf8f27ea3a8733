//go:build formetl_faults

package worker

import (
	"os"
	"sync/atomic"
	"syscall"
)

// faultPoint kills the process with SIGKILL when a run comes to the point that
// FORMETL_FAULT names, for the first time. Tests of the real program use it.
func faultPoint(lookup func(string) (string, bool)) func(string) {
	name, ok := lookup("FORMETL_FAULT")
	if !ok {
		return nil
	}
	var came atomic.Bool
	return func(point string) {
		if point == name && !came.Swap(true) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal ends the process here
		}
	}
}
