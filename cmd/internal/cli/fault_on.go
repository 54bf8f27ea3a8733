//go:build formetl_faults

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/program"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
)

// testHooks sets what tests of the real program choose by variables: the point at
// which the process dies, the instant at which its clock begins (FORMETL_NOW, in
// RFC 3339), and its pauses between attempts. A run whose clock is set does not wait
// for the clock of the service. The build tag formetl_faults compiles it in.
func testHooks(lookup func(string) (string, bool), o *pipelines.Options) (err error) {
	o.At = program.FaultPoint(lookup)
	if text, ok := lookup("FORMETL_NOW"); ok {
		began, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("FORMETL_NOW: %w; give an instant like 2026-01-31T12:00:00Z", err)
		}
		started := time.Now()
		o.Now = func() time.Time { return began.Add(time.Since(started)) }
		o.Wait = func(context.Context, time.Duration) error { return nil }
	}
	return testBackoff(lookup, &o.Client)
}

// testBackoff takes the least and the longest pause between two attempts, and
// how long a service is waited for, from FORMETL_BACKOFF, as in "1ms,5ms,1s".
func testBackoff(lookup func(string) (string, bool), o *account.ClientOptions) (err error) {
	text, ok := lookup("FORMETL_BACKOFF")
	if !ok {
		return nil
	}
	into := []*time.Duration{&o.BackoffMin, &o.BackoffMax, &o.Patience}
	for i, d := range strings.SplitN(text, ",", len(into)) {
		if *into[i], err = time.ParseDuration(d); err != nil {
			return fmt.Errorf("FORMETL_BACKOFF: %w; give the least and the longest pause, and the patience, as in 1ms,5ms,1s", err)
		}
	}
	return nil
}
