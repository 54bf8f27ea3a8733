package reading

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
)

// PartTarget is how many results a part of an incremental run holds at most, by the
// service's counts. If a result of a part changes, the whole part is read again, at one
// request for each page.
const PartTarget = 1000

// StaleTarget is about how many results a part holds once one of its results has
// changed. Other results of that time may change too, and then cost fewer requests.
const StaleTarget = 200

// NewPlan divides a span of time into windows of the form's results. It returns an error if
// reading them takes more requests than max_requests allows. It logs a warning if the
// plan takes far more requests than its results need. Without a counter the plan
// asks for no counts. No window crosses one of the cuts.
func (f Form) NewPlan(ctx context.Context, i Interval, span extract.Window, count extract.Counter, cuts ...time.Time) (*extract.Plan, error) {
	r := f.Range(i, span)
	r.Cuts = append(r.Cuts, cuts...)
	plan, err := f.Divide(ctx, r, count)
	if err != nil {
		return nil, err
	}
	if err := f.TooCostly(plan); err != nil {
		return nil, err
	}
	if costly := CostlyText(plan); costly != "" {
		f.Log.LogAttrs(ctx, slog.LevelWarn, costly)
	}
	return plan, nil
}

// Divide divides a range into windows. Without a counter it asks for no counts. If the
// service gives no usable counts, it may ask where the results begin.
func (f Form) Divide(ctx context.Context, r extract.Range, count extract.Counter) (*extract.Plan, error) {
	r.Uncounted = r.Uncounted || count == nil
	if f.Countless != "" {
		r.HasResult = func(ctx context.Context, w extract.Window) (bool, error) { return f.Holds(ctx, w, extract.IDRange{}) }
	}
	return extract.NewPlan(ctx, r, count)
}

// Range says how to divide a span of time. The span is cut at the bounds of
// what was asked for, and at the start of the next run.
func (f Form) Range(i Interval, span extract.Window) extract.Range {
	r := extract.Range{
		Window: span, Period: f.Def.Extract.Window, Partition: f.Def.FinestUnit(), PageSize: int(f.PageSize()), Most: int64(f.Def.Source.Requests.MaxRequests),
	}
	switch {
	case f.Def.Extract.Incremental:
		r.Target, r.Finer = PartTarget, true // a part is never smaller than a window
	case !f.Def.HasUndivided():
		r.Target = math.MaxInt // a window may be of any size, because goroutines share it
	}
	r.Unverified = f.Filtered() || !f.Def.Extract.Verify
	if i.Asked != i.Read {
		r.Cuts = append(r.Cuts, i.Asked.From, i.Asked.To)
	}
	r.Cuts = append(r.Cuts, i.Next)
	r.Endless = i.Endless() && span == i.Read && !span.From.IsZero()
	// Without verification, fixed windows of a bounded range need no count.
	r.Uncounted = !f.Def.Extract.Verify && !r.Period.Auto() && !r.Window.From.IsZero()
	return r
}

// MayMiss tells whether a run may miss results that come or move while it reads the
// plan's windows. In a single window of few results it misses none, because it reads
// the window by ascending ids within seconds.
func MayMiss(plan *extract.Plan) bool {
	return len(plan.Windows) > 1 || plan.Total > extract.DefaultTarget
}

// TooCostly returns an error if a plan needs more requests than
// are allowed, including those for planning. Otherwise it returns nil.
func (f Form) TooCostly(plan *extract.Plan) error {
	return plan.TooCostly(int64(f.Def.Source.Requests.MaxRequests))
}

// CostlyText returns a warning if a plan takes far more requests than its
// results need. Otherwise it returns "".
func CostlyText(plan *extract.Plan) string {
	cost, fair := plan.Cost(), plan.Fair()
	if cost <= fair {
		return ""
	}
	remedy := "set window: auto, or read a shorter range"
	if plan.Range.Period.Auto() {
		remedy = "read a shorter range, or choose a larger partition, such as month instead of day, and run once with --full"
	}
	if plan.Total == extract.Unknown {
		return fmt.Sprintf("the plan needs at least %d requests, one for each window of %s, however few results there are; %s", cost, plan.Range.Period, remedy)
	}
	return fmt.Sprintf("the plan needs about %d requests for %d results, though %d would be enough, because its %d windows (window: %s) hold few results each; %s",
		cost, plan.Total, fair, len(plan.Windows), plan.Range.Period, remedy)
}

// IsSmall tells whether a span with so many results is better read without a count, which would
// cost more than it saves. A span of more than a few partitions is none: each is a request.
func (f Form) IsSmall(span extract.Window, results int64) bool {
	const fewPartitions = 8
	return results <= extract.DefaultTarget && f.Def.FinestUnit().Spans(span) <= fewPartitions
}

// Windows returns the windows of a plan with their counts. Windows that share one
// count form a group.
func Windows(plan *extract.Plan) []*Window {
	windows := make([]*Window, 0, len(plan.Windows))
	groups := make([]Group, len(plan.Groups))
	for i, n := range plan.Groups {
		groups[i].Count = n
	}
	for _, p := range plan.Windows {
		group := &groups[p.Group]
		w := &Window{Planned: p, Done: p.Count == 0, Group: group}
		if p.Count != extract.Unknown {
			w.Counts = append(w.Counts, p.Count)
		}
		windows, group.Windows = append(windows, w), append(group.Windows, w)
	}
	return windows
}

// Counts remembers the service's counts for a plan, so that a run that resumes
// need not ask again. The zero value is empty. Several goroutines may use it at
// once.
type Counts struct{ known sync.Map } // maps extract.Window to checkpoint.Count

// Inherit adds the counts of an earlier run.
func (c *Counts) Inherit(list []checkpoint.Count) {
	for _, k := range list {
		c.known.Store(extract.Window{From: k.Window.From.Time, To: k.Window.To.Time}, k)
	}
}

// All returns all counts, those of this run and those of an earlier one, in
// order of time.
func (c *Counts) All() (list []checkpoint.Count) {
	for _, k := range c.known.Range {
		list = append(list, k.(checkpoint.Count))
	}
	slices.SortFunc(list, func(a, b checkpoint.Count) int {
		return cmp.Or(a.Window.From.Compare(b.Window.From.Time), a.Window.To.Compare(b.Window.To.Time))
	})
	return list
}

// Remembered returns a counter that calls count only once for each window.
func (c *Counts) Remembered(count extract.Counter, now func() time.Time) extract.Counter {
	if count == nil {
		return nil
	}
	return func(ctx context.Context, w extract.Window) (int64, error) {
		if k, ok := c.known.Load(w); ok {
			return k.(checkpoint.Count).N, nil
		}
		at := now().UTC()
		n, err := count(ctx, w)
		if err == nil {
			c.known.Store(w, checkpoint.Count{Window: load.Span(w.From, w.To), N: n, At: at})
		}
		return n, err
	}
}
