//go:build formetl_faults

package program

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// FaultPoint kills the process by SIGKILL when a run comes to the point that
// FORMETL_FAULT names: "parts", or "parts:3" for the third time there. Where
// FORMETL_SIGNAL is INT, TERM or HUP it sends that signal instead, and the run
// proceeds when the signal has arrived. It is nil without the variable, and without the
// build tag formetl_faults.
func FaultPoint(lookup func(string) (string, bool)) func(string) {
	text, ok := lookup("FORMETL_FAULT")
	if !ok {
		return nil
	}
	which, _ := lookup("FORMETL_SIGNAL")
	send, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[which]
	if !ok {
		send = syscall.SIGKILL
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
		if left--; left != 0 {
			return
		}
		arrived := make(chan os.Signal, 1)
		signal.Notify(arrived, send)
		defer signal.Stop(arrived)
		_ = syscall.Kill(os.Getpid(), send)
		<-arrived // SIGKILL never arrives: the process ends here
	}
}
