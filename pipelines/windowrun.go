package pipelines

import (
	"context"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// windowRun is one window of a run and what was read of it.
type windowRun struct {
	planned extract.Planned
	older   *olderRange    // that it belongs to; nil for the run's own range
	undated *undatedWindow // what it holds of the results without a date; nil for a window of time
	// counts are the service's counts of the window so far: the planner's, if
	// it made one, and those of the verification.
	counts    []int64
	group     windowGroup
	disagreed int // times that the verification found it at odds with its count

	// The first window's beginning is read before the schema is known.
	head  []*page.Page
	pages *extract.WindowReader

	done   bool // read whole, or known to be empty
	number int  // of its last reading in the run, 0 for none
	tries  int
	reading
}

// undatedWindow is what the window of the results without a date holds.
type undatedWindow struct {
	ranges []extract.UndatedRange
	only   *roaring64.Bitmap // the results that it may hold; nil for any
}

// reading is what was read of a window. It is in the checkpoint; what stands
// here are the sums over its pieces.
type reading struct {
	chains   []checkpoint.Chain // in order of time
	taken    bool               // an earlier run read some of it
	ids      *roaring64.Bitmap  // of rows and rejects; nil before the window was read
	stats    transform.Stats    // but for Seen
	rejects  []transform.Reject
	replaced int64
	readAt   time.Time // when its oldest piece was asked for
}

// windowGroup is windows that follow each other and that the planner counted
// as one.
type windowGroup struct {
	windows []*windowRun
	count   int64
}

// name shows the window to people.
func (w *windowRun) name() string {
	if w.undated != nil {
		return undatedName
	}
	return w.planned.Window.String()
}

// extracted is how many results were read: rows and rejects.
func (r *reading) extracted() int64 { return r.stats.Rows + r.stats.Rejected }

// add takes a piece in, behind the others of its chain. A chain is begun where
// there is none of the piece's window.
func (r *reading) add(p checkpoint.Piece) {
	at := slices.IndexFunc(r.chains, func(c checkpoint.Chain) bool { return c.Window == p.Window })
	if at < 0 {
		at = slices.IndexFunc(r.chains, func(c checkpoint.Chain) bool { return c.Window.From.After(p.Window.From) })
		if at < 0 {
			at = len(r.chains)
		}
		r.chains = slices.Insert(r.chains, at, checkpoint.Chain{Window: p.Window})
	}
	r.chains[at].Pieces = append(r.chains[at].Pieces, p)
	if r.ids == nil {
		r.ids = roaring64.New()
	}
	r.ids.Or(p.IDs)
	r.stats.Add(p.Stats)
	r.rejects = append(r.rejects, p.Rejects...)
	r.replaced += p.Replaced
	if r.readAt.IsZero() || p.ReadAt.Before(r.readAt) {
		r.readAt = p.ReadAt
	}
}

// pieces are all pieces of the reading.
func (r *reading) pieces() (all []checkpoint.Piece) {
	for _, c := range r.chains {
		all = append(all, c.Pieces...)
	}
	return all
}

// holdsTwice tells whether two chains hold one id: a result moved within the
// window while it was read.
func (r *reading) holdsTwice() bool { return uint64(r.extracted()) != r.ids.GetCardinality() } //nolint:gosec // counts are not negative

// rowIDs are the ids of the window's rows from one number up to another, of
// which there is at least one.
func (r *reading) rowIDs(from, to int64) *roaring64.Bitmap {
	ids := r.ids.Clone()
	for _, reject := range r.rejects {
		ids.Remove(uint64(reject.ResultID)) //nolint:gosec // ids are not negative
	}
	if from == 0 && to == r.stats.Rows {
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

// counted notes a count of the window.
func (w *windowRun) counted(n int64) { w.counts = append(w.counts, n) }

// plausible tells whether what was read lies between the window's counts.
// Where those differ, results come and go while they are read, and one that
// went is in neither count: so the counts may be missed by as many as they
// differ by. Where they agree there is no such excuse.
func (w *windowRun) plausible() bool { return plausible(w.counts, w.extracted()) }

func plausible(counts []int64, n int64) bool {
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

// eachBatch gives the rows of a window in ascending order of id. A batch is
// valid during the call.
func (f *formRun) eachBatch(ctx context.Context, w *windowRun, visit func(arrow.RecordBatch) error) error {
	err := f.checkpoint.RowsOf(ctx, w.chains, visit)
	if err != nil {
		return err
	}
	return nil
}

// seenIn sums up what the rows of windows were seen to hold, in order of time.
func (f *formRun) seenIn(ctx context.Context, windows []*windowRun) (map[schemas.Source]transform.Seen, error) {
	var sum transform.Stats
	for _, w := range windows {
		for _, p := range w.pieces() {
			seen, err := f.checkpoint.Seen(ctx, p)
			if err != nil {
				return nil, err
			}
			sum.Add(transform.Stats{Seen: seen})
		}
	}
	return sum.Seen, nil
}
