package reading

import (
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/transform"
)

// UndatedName is the name of the window of results without a date.
const UndatedName = "undated"

// Standstill tells whether the service's count and the number of results read stand still,
// though they do not agree. The zero value has seen no disagreement.
type Standstill struct {
	counted, results int64 // the last count, and how many results had been read
	times            int   // how often in a row this count and this number read did not agree
}

// Rereads is how often a window is read again while its count stands still, before that is an
// error. It is also how often counts may move before a number between them is accepted.
const Rereads = 3

// Disagrees notes a count that does not agree with how many results were read. It returns
// true once neither number has changed over more than Rereads readings.
func (s *Standstill) Disagrees(counted, results int64) bool {
	if s.counted != counted || s.results != results {
		*s = Standstill{counted: counted, results: results}
	}
	s.times++
	return s.times > Rereads
}

// Agrees notes that the count and what was read agree: disagreements are counted from zero
// again.
func (s *Standstill) Agrees() { *s = Standstill{} }

// Older is a span outside the run's range that is read again. It consists of
// whole parts of every dataset.
type Older struct {
	Window extract.Window
	Counts []int64 // the service's counts so far; extract.Unknown if none was asked for
}

// Window is one window of a run, with what was read of it.
type Window struct {
	Planned extract.Planned
	Older   *Older   // the older span of the window; nil in the run's own range
	Undated *Undated // set for the window of results without a date; nil for others
	// Counts are the service's counts of the window so far. The first one is
	// the planner's, if it counted the window.
	Counts    []int64
	Group     *Group // windows counted together; nil for results without a date
	Disagreed int    // how many verifications found a count other than the number read
	Still     Standstill

	countsBefore int // how many Counts there were when the window was last read
	// Summed means that one count covers all of a dataset, including this window, which is
	// not counted by itself.
	Summed bool

	// begun holds the stretches whose first pages were read before the schema was known.
	begun []*stretch

	Done   bool  // the window was read completely, or is known to be empty
	Number int64 // position of the window's last reading in the run, 0 for none
	Tries  int
	Reading
}

// Reading is what was read of a window: its pieces in the checkpoint, and the
// sums over them.
type Reading struct {
	Chains   []checkpoint.Chain // in order of time
	Taken    bool               // an earlier run read some of it
	IDs      idset.Set          // ids of rows and rejected results; nil before the reading
	Stats    transform.Stats    // sums without Seen, which the function Stats reads
	Rejects  []transform.Reject
	Replaced int64
	ReadAt   time.Time // when the oldest of the pieces was requested
}

// Group is a sequence of adjacent windows that the planner counted together.
type Group struct {
	Windows []*Window
	Count   int64
	ended   bool // all windows were read, see Reader.endsGroup
}

// OfRange tells whether the window is one of the run's range: not of an older part, and not
// that of results without a date.
func (w *Window) OfRange() bool { return w.Older == nil && w.Undated == nil }

// OfRange returns the windows that are of the run's range. Counts over the range do not
// include older windows and the window of results without a date.
func OfRange(windows []*Window) []*Window {
	return slices.DeleteFunc(slices.Clone(windows), func(w *Window) bool { return !w.OfRange() })
}

// counted returns the service's last count of the window, or extract.Unknown.
func (w *Window) counted() int64 {
	if n := len(w.Counts); n > 0 {
		return w.Counts[n-1]
	}
	return extract.Unknown
}

// inGroup tells whether the window is compared with a count together with its group or the
// whole dataset, and not by itself. A window that is read again is compared by itself.
func (w *Window) inGroup() bool {
	return w.counted() == extract.Unknown && w.Tries < 2 && (w.Summed || w.Group != nil && w.Group.Count != extract.Unknown)
}

// tails returns the ids of a window that were not requested, although it was read: those above
// the last results of its stretches. It is empty where the window, or the group that was
// counted with it, holds as many results as were counted.
func (w *Window) tails() []gap {
	if w.Undated != nil || w.reached() {
		return nil
	}
	return w.unasked()
}

// unasked returns all gaps of a window: the ids that were not requested.
func (w *Window) unasked() []gap { return gaps(w.Planned.Window, w.Chains, checkpoint.Chain.Gaps) }

// unread returns what is still to be read of a window: the gaps in which results are expected,
// which leaves out the tails.
func (w *Window) unread() []gap {
	return gaps(w.Planned.Window, w.Chains, checkpoint.Chain.Unread)
}

// reached tells whether the window, or the group that was counted with it, holds as many
// results as were counted.
func (w *Window) reached() bool {
	if !w.inGroup() {
		return w.Results() == w.counted()
	}
	if w.Summed {
		return true // assumed until the dataset is compared with its count
	}
	var n int64
	for _, is := range w.Group.Windows {
		n += is.Results()
	}
	return n == w.Group.Count
}

// Name returns the window's name for people.
func (w *Window) Name() string {
	if w.Undated != nil {
		return UndatedName
	}
	return w.Planned.Window.Dates()
}

// Results returns how many results were read, including rejected ones.
func (r *Reading) Results() int64 { return r.Stats.Rows + r.Stats.Rejected }

// add appends a piece to the chain of the piece's window. If there is no such
// chain, add begins one.
func (r *Reading) add(p checkpoint.Piece) {
	at := slices.IndexFunc(r.Chains, func(c checkpoint.Chain) bool { return c.Window == p.Window })
	if at < 0 {
		at = slices.IndexFunc(r.Chains, func(c checkpoint.Chain) bool { return c.Window.From.After(p.Window.From) })
		if at < 0 {
			at = len(r.Chains)
		}
		r.Chains = slices.Insert(r.Chains, at, checkpoint.Chain{Window: p.Window})
	}
	r.IDs = r.IDs.Union(p.IDs)
	p.Headings = nil
	r.Chains[at].Add(p)
	r.sum(p)
}

// sum adds what a piece holds to the sums of the reading, except for its ids.
func (r *Reading) sum(p checkpoint.Piece) {
	r.Stats.Add(p.Stats)
	r.Rejects = append(r.Rejects, p.Rejects...)
	r.Replaced += p.Replaced
	if r.ReadAt.IsZero() || p.ReadAt.Before(r.ReadAt) {
		r.ReadAt = p.ReadAt
	}
}

// Pieces returns all pieces of the reading.
func (r *Reading) Pieces() (all []checkpoint.Piece) {
	for _, c := range r.Chains {
		all = append(all, c.Pieces...)
	}
	return all
}

// holdsTwice tells whether two chains hold the same id. This happens if a
// result moves within the window while it is read.
func (r *Reading) holdsTwice() bool { return r.Results() != int64(r.IDs.Len()) }

// RowIDs returns the ids of the window's rows.
func (r *Reading) RowIDs() idset.Set { return r.IDs.Without(checkpoint.RejectedIDs(r.Rejects)) }

// Plausible tells whether the number of results read is consistent with the last count before
// the window was read and the counts after that. See the function Plausible.
func (w *Window) Plausible() bool { return Plausible(w.Counts[max(0, w.countsBefore-1):], w.Results()) }

// Plausible tells whether n results are consistent with the service's counts. n may lie outside
// the least and the greatest count by at most their difference. If counts differ, results
// came and went between them, and some may be in neither count. If the counts are equal, n
// must equal them.
func Plausible(counts []int64, n int64) bool {
	if len(counts) == 0 {
		return false
	}
	least, most := slices.Min(counts), slices.Max(counts)
	return least-(most-least) <= n && n <= most+(most-least)
}

// gap is a part of a window that is still to be read: the results in a span of
// time with the ids of a checkpoint.Gap.
type gap struct {
	window extract.Window
	checkpoint.Gap
}

// wholeOf returns the gap that is all of a window.
func wholeOf(w extract.Window) gap {
	return gap{w, checkpoint.Gap{After: checkpoint.First, Through: checkpoint.Last}}
}

// ids returns the bounds of a request for the gap.
func (g gap) ids() extract.IDRange {
	ids := extract.IDRange{Min: g.After + 1}
	if g.Through != checkpoint.Last {
		ids.Max = g.Through
	}
	return ids
}

// gaps returns the spans of a window that no chain covers, and the gaps that `of` gives for
// each chain, in order of time.
func gaps(w extract.Window, chains []checkpoint.Chain, of func(checkpoint.Chain) []checkpoint.Gap) (todo []gap) {
	at, begun := w.From, false
	for _, c := range chains {
		if c.Window.From.After(at) {
			todo = append(todo, wholeOf(extract.Window{From: at, To: c.Window.From}))
		}
		for _, g := range of(c) {
			todo = append(todo, gap{c.Window, g})
		}
		at, begun = c.Window.To, true
	}
	if !begun || !at.IsZero() && (w.To.IsZero() || at.Before(w.To)) {
		todo = append(todo, wholeOf(extract.Window{From: at, To: w.To}))
	}
	return todo
}
