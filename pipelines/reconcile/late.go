package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
)

// A range without an end ends a moment ago, by our clock and in the definition's zone. If
// one of them is wrong, the newest results lie after it, and a count of the range agrees
// all the same. So the range is counted without its end. Where more is counted than was
// read, as with a search, one request asks for results after now.

// LateError reports results that are dated later than now. The run reads them if its
// range ends at Beyond.
type LateError struct {
	Now, Beyond time.Time // wall-clock time of the definition's zone
}

// Error says what now is.
func (e *LateError) Error() string {
	return fmt.Sprintf("results are dated later than now, which is %s by this machine's clock and the definition's timezone", e.Now.Format(extract.WireTime))
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

// lateUncounted looks for results that are dated later than now, where nothing is compared
// with counts. It asks nothing if the form holds no more than was read.
func (c *Reconciler) lateUncounted(ctx context.Context) error {
	if !c.Interval.Endless() || c.Plan.Range.Endless && c.Plan.Total == reading.Results(reading.OfRange(c.Windows)) {
		return nil
	}
	return c.lookAhead(ctx)
}

// lookAhead looks for results that are dated later than now. The error is a *LateError if
// there are some. It does not look beyond a range that was extended for them.
func (c *Reconciler) lookAhead(ctx context.Context) error {
	now := load.Wall(c.Reader.Now().In(c.Reader.Def.Source.Zone)).Time
	if c.looked || c.Interval.Read.To.After(now) {
		return nil
	}
	c.looked = true
	there, err := c.Reader.Holds(ctx, extract.Window{From: now.Add(interval.ClockLeeway)}, extract.IDRange{})
	if err != nil || !there {
		return err
	}
	e := &LateError{Now: now}
	for _, e.Beyond = range []time.Time{now.Add(interval.WidestZone + time.Hour), now.AddDate(1, 0, 0), now.AddDate(30, 0, 0)} {
		if there, err = c.Reader.Holds(ctx, extract.Window{From: e.Beyond}, extract.IDRange{}); err != nil || !there {
			return cmp.Or(err, error(e))
		}
	}
	e.Beyond = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	return e
}
