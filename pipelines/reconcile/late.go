package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
)

// A range without an end ends a moment ago, by our clock and in the definition's zone. If
// one of them is wrong, the newest results lie after it, and a count of the range agrees
// all the same. So the range is counted without its end.

// LateError reports results that are dated later than now. The run reads them if its
// range ends at Beyond.
type LateError struct {
	Results     int64
	Now, Beyond time.Time // wall-clock time of the definition's zone
}

// Error says how many results there are.
func (e *LateError) Error() string {
	return fmt.Sprintf("%d results are dated later than now, which is %s by this machine's clock and the definition's timezone", e.Results, e.Now.Format(extract.WireTime))
}

// late counts the results after the run's range. The error is a *LateError if some
// are dated later than now.
func (c *Reconciler) late(ctx context.Context) (int64, error) {
	n, err := c.Reader.Counter()(ctx, extract.Window{From: c.Interval.Read.To})
	if err != nil || n == 0 {
		return n, err
	}
	return n, c.lookAhead(ctx)
}

// lookAhead looks for results that are dated later than now. The error is a *LateError if
// there are some. It does not look beyond a range that was extended for them.
func (c *Reconciler) lookAhead(ctx context.Context) error {
	now := load.Wall(c.Reader.Now().In(c.Reader.Def.Source.Zone)).Time
	if c.Interval.Read.To.After(now) {
		return nil
	}
	count := c.Reader.Counter()
	n, err := count(ctx, extract.Window{From: now.Add(interval.ClockLeeway)})
	if err != nil || n == 0 {
		return err
	}
	e := &LateError{Results: n, Now: now}
	for ahead := interval.WidestZone + time.Hour; n > 0; ahead *= 8 {
		e.Beyond = now.Add(ahead)
		if n, err = count(ctx, extract.Window{From: e.Beyond}); err != nil {
			return err
		}
	}
	return e
}
