package reconcile

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
)

// PointVerified is the point that reading.Form.At is told of once what was read
// agrees with the counts.
const PointVerified = "verified"

// Parts are the datasets that the run writes, as earlier runs left them.
type Parts interface {
	// Manifests are those of the datasets, nil for one that no run committed.
	Manifests() []*load.Manifest
	// Holding are the parts that stay and hold one of the ids.
	Holding(ctx context.Context, ids *roaring64.Bitmap, r Replaced) ([]load.Part, error)
	// UndatedIDs are the ids of the parts of results without a date. The error
	// wraps load.ErrIDs where they are not known.
	UndatedIDs(ctx context.Context) (*roaring64.Bitmap, error)
}

// Reconciler brings the windows of a run to agree.
type Reconciler struct {
	Reader   *reading.Reader
	Interval interval.Interval
	Plan     *extract.Plan
	Parts    Parts
	Full     bool // everything is replaced
	Files    bool // an output holds what was asked for alone, not whole parts
	Trusted  bool // counts must vouch for what an earlier run read
	// Windows are those of the plan, in order of time; windows are added and
	// divided while they are reconciled.
	Windows []*reading.Window

	Verified *load.Verified // of the windows of Interval.Read; nil before Reconcile
	Work     Work

	own          int64             // what the service counts in Interval.Asked, extract.Unknown where it was not asked
	older        []*reading.Older  // parts that are read again because a result of them moved
	compared     *roaring64.Bitmap // ids that were looked for in older parts
	undatedMoved bool              // a result that was undated has a date now
}

// Work is what was read besides the windows of the plan, each once.
type Work struct {
	Reread  int  // windows that were read again
	Older   int  // windows of older parts
	Undated bool // results without a date were looked for
}

// Reconcile brings what was read to agree with itself, with older parts, and
// with the service's counts.
func (c *Reconciler) Reconcile(ctx context.Context) error {
	c.compared = roaring64.New()
	for {
		if err := c.settleDuplicates(ctx); err != nil {
			return err
		}
		if err := c.readOlder(ctx); err != nil {
			return err
		}
		if err := c.verify(ctx); err != nil {
			return err
		}
		if c.freshIDs().IsEmpty() {
			return nil
		}
	}
}

// Verifies tells whether what is read is compared with counts. The definition
// asks for that, or the run whose checkpoint is taken over relied on it.
func (c *Reconciler) Verifies() bool {
	return !c.Reader.Filtered() && (c.Reader.Def.Extract.Verify || c.Trusted)
}

// Replaced says which parts of a dataset a run takes the place of.
type Replaced struct {
	Read    extract.Window
	Older   []extract.Window
	Undated bool
	Full    bool
}

// Replaced says which parts the run takes the place of, so far.
func (c *Reconciler) Replaced() Replaced {
	r := Replaced{Read: c.Interval.Read, Undated: c.wantsUndated(), Full: c.Full}
	for _, o := range c.older {
		r.Older = append(r.Older, o.Window)
	}
	return r
}

// Divide divides the parts of a manifest, which may be nil, into those that the
// run takes the place of and those that stay.
func (r Replaced) Divide(m *load.Manifest) (old, kept []load.Part) {
	if m == nil {
		return nil, nil
	}
	if r.Full {
		return m.Parts, nil
	}
	old, rest, _ := load.Intersecting(m.Parts, load.Span(r.Read.From, r.Read.To))
	for _, w := range r.Older {
		var again []load.Part
		again, rest, _ = load.Intersecting(rest, load.Span(w.From, w.To))
		old = append(old, again...)
	}
	for _, p := range rest {
		if p.Undated && r.Undated {
			old = append(old, p)
		} else {
			kept = append(kept, p)
		}
	}
	return old, kept
}
