package reconcile

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
)

// PointVerified is the point at which reading.Form.At is called once what was
// read agrees with the counts.
const PointVerified = "verified"

// Parts gives access to the datasets that the run writes, as earlier runs left them.
type Parts interface {
	// Manifests returns the manifests of the datasets, nil for a dataset that no run committed.
	Manifests() []*load.Manifest
	// Holding returns the parts that hold one of the ids and that r does not replace.
	Holding(ctx context.Context, ids *roaring64.Bitmap, r Replaced) ([]load.Part, error)
	// UndatedIDs returns the ids of all results in parts without a date. The
	// error wraps load.ErrIDs if they are not known.
	UndatedIDs(ctx context.Context) (*roaring64.Bitmap, error)
}

// Reconciler makes what a run read agree with itself, with older parts and with counts.
type Reconciler struct {
	Reader   *reading.Reader
	Interval interval.Interval
	Plan     *extract.Plan
	Parts    Parts
	Full     bool // the run replaces everything
	Files    bool // an output holds only what was asked for, not whole parts
	Trusted  bool // counts must confirm what an earlier run read
	// Windows are the windows of the plan, in order of time. Reconcile adds
	// windows and divides some.
	Windows []*reading.Window

	Verified *load.Verified // result for the windows of Interval.Read; nil before Reconcile
	Work     Work

	own          int64             // the service's count of Interval.Asked, or extract.Unknown if it was not asked
	older        []*reading.Older  // older spans that are read again because a result moved
	compared     *roaring64.Bitmap // ids that were already looked for in older parts
	undatedMoved bool              // a result that had no date has one now
}

// Work says what was read in addition to the windows of the plan.
type Work struct {
	Reread  int  // windows that were read again
	Older   int  // windows of older parts
	Undated bool // the run looked for results without a date
}

// Reconcile reads windows again until what was read agrees with itself, with
// older parts, and with the service's counts.
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

// Verifies tells whether what is read is compared with counts. That is so if
// the definition asks for it or Trusted is set, unless results are filtered.
func (c *Reconciler) Verifies() bool {
	return !c.Reader.Filtered() && (c.Reader.Def.Extract.Verify || c.Trusted)
}

// Replaced says which parts of a dataset a run replaces.
type Replaced struct {
	Read    extract.Window
	Older   []extract.Window
	Undated bool
	Full    bool
}

// Replaced returns which parts the run replaces so far.
func (c *Reconciler) Replaced() Replaced {
	r := Replaced{Read: c.Interval.Read, Undated: c.wantsUndated(), Full: c.Full}
	for _, o := range c.older {
		r.Older = append(r.Older, o.Window)
	}
	return r
}

// Divide divides the parts of a manifest, which may be nil. old are those that
// the run replaces, and kept are those that stay.
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
