package reading

import (
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/transform"
)

// UndatedName stands for the window of the results without a date.
const UndatedName = "undated"

// Older is a span outside the run's range that is read again, whole parts of
// every dataset.
type Older struct {
	Window extract.Window
	Counts []int64 // the service's so far; extract.Unknown where it was not asked
}

// Window is one window of a run and what was read of it.
type Window struct {
	Planned extract.Planned
	Older   *Older   // that it belongs to; nil for the run's own range
	Undated *Undated // what it holds of the results without a date; nil for a window of time
	// Counts are the service's counts of the window so far: the planner's, if
	// it made one, and those of the verification.
	Counts    []int64
	Group     *Group // nil for results without a date
	Disagreed int    // times that the verification found it at odds with its count

	// The first window's beginning is read before the schema is known.
	head  []*page.Page
	pages *extract.WindowReader

	Done   bool  // read whole, or known to be empty
	Number int64 // of its last reading in the run, 0 for none
	Tries  int
	Reading
}

// Reading is what was read of a window: its pieces in the checkpoint, and the sums
// over them.
type Reading struct {
	Chains   []checkpoint.Chain // in order of time
	Taken    bool               // an earlier run read some of it
	IDs      *roaring64.Bitmap  // of rows and rejects; nil before the window was read
	Stats    transform.Stats    // but for Seen
	Rejects  []transform.Reject
	Replaced int64
	ReadAt   time.Time // when its oldest piece was asked for
}

// Group is windows that follow each other and that the planner counted
// as one.
type Group struct {
	Windows []*Window
	Count   int64
}

// Name shows the window to people.
func (w *Window) Name() string {
	if w.Undated != nil {
		return UndatedName
	}
	return w.Planned.Window.String()
}

// Results is how many results were read: rows and rejects.
func (r *Reading) Results() int64 { return r.Stats.Rows + r.Stats.Rejected }

// add takes a piece in, behind the others of its chain. A chain is begun where
// there is none of the piece's window.
func (r *Reading) add(p checkpoint.Piece) {
	at := slices.IndexFunc(r.Chains, func(c checkpoint.Chain) bool { return c.Window == p.Window })
	if at < 0 {
		at = slices.IndexFunc(r.Chains, func(c checkpoint.Chain) bool { return c.Window.From.After(p.Window.From) })
		if at < 0 {
			at = len(r.Chains)
		}
		r.Chains = slices.Insert(r.Chains, at, checkpoint.Chain{Window: p.Window})
	}
	r.Chains[at].Pieces = append(r.Chains[at].Pieces, p)
	if r.IDs == nil {
		r.IDs = roaring64.New()
	}
	r.IDs.Or(p.IDs)
	r.Stats.Add(p.Stats)
	r.Rejects = append(r.Rejects, p.Rejects...)
	r.Replaced += p.Replaced
	if r.ReadAt.IsZero() || p.ReadAt.Before(r.ReadAt) {
		r.ReadAt = p.ReadAt
	}
}

// Pieces are all pieces of the reading.
func (r *Reading) Pieces() (all []checkpoint.Piece) {
	for _, c := range r.Chains {
		all = append(all, c.Pieces...)
	}
	return all
}

// holdsTwice tells whether two chains hold the same id, because a result moved
// within the window while it was read.
func (r *Reading) holdsTwice() bool { return uint64(r.Results()) != r.IDs.GetCardinality() } //nolint:gosec // counts are not negative

// RowIDs are the ids of the window's rows from one number up to another, of
// which there is at least one.
func (r *Reading) RowIDs(from, to int64) *roaring64.Bitmap {
	ids := r.IDs.Clone()
	for _, reject := range r.Rejects {
		ids.Remove(uint64(reject.ResultID)) //nolint:gosec // ids are not negative
	}
	if from == 0 && to == r.Stats.Rows {
		return ids
	}
	// Rows are written by ascending id, so the n-th row has the n-th id.
	least, _ := ids.Select(uint64(from))  //nolint:gosec // counts are not negative
	most, _ := ids.Select(uint64(to - 1)) //nolint:gosec // as above
	between := roaring64.New()
	between.AddRange(least, most+1)
	between.And(ids)
	return between
}

// Plausible tells whether what was read is possible by the window's counts, see
// the function Plausible.
func (w *Window) Plausible() bool { return Plausible(w.Counts, w.Results()) }

// Plausible tells whether a number of results lies between counts of them, give or
// take as many as those differ by. Where counts differ, results came and went
// meanwhile, and one that came and went is in neither count. Where they agree, the
// number must be theirs.
func Plausible(counts []int64, n int64) bool {
	if len(counts) == 0 {
		return false
	}
	least, most := slices.Min(counts), slices.Max(counts)
	return least-(most-least) <= n && n <= most+(most-least)
}

// gap is a part of a window that is still to be read: the results of a span of
// time whose ids lie above one.
type gap struct {
	window extract.Window
	after  int64
}

// gaps are what chains leave of a window, in order of time.
func gaps(w extract.Window, chains []checkpoint.Chain) (left []gap) {
	at, begun := w.From, false
	for _, c := range chains {
		if c.Window.From.After(at) {
			left = append(left, gap{extract.Window{From: at, To: c.Window.From}, checkpoint.First})
		}
		if !c.Complete() {
			left = append(left, gap{c.Window, c.Through()})
		}
		at, begun = c.Window.To, true
	}
	if !begun || !at.IsZero() && (w.To.IsZero() || at.Before(w.To)) {
		left = append(left, gap{extract.Window{From: at, To: w.To}, checkpoint.First})
	}
	return left
}
