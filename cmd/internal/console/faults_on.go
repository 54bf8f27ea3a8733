//go:build formetl_faults

package console

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/formetl/formetl/pipelines"
)

// FaultPoint kills the process by SIGKILL when a run comes to the point that
// FORMETL_FAULT names: "parts", or "parts:3" for the third time there. It is
// nil without the variable, and without the build tag formetl_faults.
func FaultPoint(lookup func(string) (string, bool)) func(string) {
	text, ok := lookup("FORMETL_FAULT")
	if !ok {
		return nil
	}
	name, times, _ := strings.Cut(text, ":")
	remaining, err := strconv.Atoi(times)
	if err != nil {
		remaining = 1
	}
	var mu sync.Mutex
	return func(point string) {
		if point != name {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if remaining--; remaining != 0 {
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the process ends here
	}
}

// TestHooks sets what tests of the real program choose by variables of the environment: the point
// at which the process kills itself, the instant at which its clock begins (FORMETL_NOW, in
// RFC 3339), and the least and longest pause between two attempts and the patience with a service
// (FORMETL_BACKOFF, as in "1ms,5ms,1s"). A run whose clock is set does not wait for the clock of
// the service. Only the build tag formetl_faults compiles TestHooks in.
func TestHooks(lookup func(string) (string, bool), o *pipelines.Options) (err error) {
	o.At = FaultPoint(lookup)
	if text, ok := lookup("FORMETL_NOW"); ok {
		began, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("FORMETL_NOW: %w; give an instant like 2026-01-31T12:00:00Z", err)
		}
		started := time.Now()
		o.Now = func() time.Time { return began.Add(time.Since(started)) }
		o.Wait = func(context.Context, time.Duration) error { return nil }
	}
	text, ok := lookup("FORMETL_BACKOFF")
	if !ok {
		return nil
	}
	into := []*time.Duration{&o.Client.BackoffMin, &o.Client.BackoffMax, &o.Client.Patience}
	for i, d := range strings.SplitN(text, ",", len(into)) {
		if *into[i], err = time.ParseDuration(d); err != nil {
			return fmt.Errorf("FORMETL_BACKOFF: %w; give the least and the longest pause, and the patience, as in 1ms,5ms,1s", err)
		}
	}
	return nil
}
