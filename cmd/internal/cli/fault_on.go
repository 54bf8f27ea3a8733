//go:build formetl_faults

package cli

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// faultPoint kills the process, as nothing can be caught, when a run comes to
// the point that FORMETL_FAULT names: "parts", or "parts:3" for the third time
// that it comes there. It is compiled in by the tag formetl_faults, for the
// crash tests.
func faultPoint(lookup func(string) (string, bool)) func(string) {
	text, ok := lookup("FORMETL_FAULT")
	if !ok {
		return nil
	}
	name, times, _ := strings.Cut(text, ":")
	left, err := strconv.Atoi(times)
	if err != nil {
		left = 1
	}
	var mu sync.Mutex
	return func(point string) {
		if point != name {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal may come a moment later
		}
	}
}
