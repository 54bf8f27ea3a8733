package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/reading"
)

// wantsUndated tells whether results without a date are read. They are if the run has no
// bounds, if one of them got a date, or if a dataset that is replaced as a whole holds some.
func (c *Reconciler) wantsUndated() bool {
	if c.Interval.Everything() || c.datedNow {
		return true
	}
	return c.Full && slices.ContainsFunc(manifestsOf(c.Parts), func(m *load.Manifest) bool {
		return m != nil && slices.ContainsFunc(m.Parts, func(p load.Part) bool { return p.Undated })
	})
}

// ReadUndated looks for results without a date if the run needs them. It reads
// them as a separate window, which comes last.
func (c *Reconciler) ReadUndated(ctx context.Context) error {
	if !c.wantsUndated() {
		return nil
	}
	if c.Interval.Unbounded() {
		return nil // results without a date are in the run's only window
	}
	if c.Reader.Countless != "" { // all results are asked for once more, without bounds of dates
		return c.addUndated(ctx, reading.Undated{Ranges: []extract.UndatedRange{{Mixed: true}}, Started: true})
	}
	held := reading.Results(reading.OfRange(c.Windows))
	total, err := c.countAll(ctx)
	if err != nil || c.counted.read == total && held == total {
		return err // all results lie in the range
	}
	count := c.Reader.Counter()
	datedNow, err := count(ctx, extract.Window{From: extract.Epoch})
	if err != nil {
		return err
	}
	in := c.counted.read
	if in == extract.Unknown {
		in = held
	}
	n := max(0, total-datedNow)
	switch {
	case in != held:
		n = extract.Unknown // results come and go, so the counts' difference proves nothing
	case datedNow != in: // results came or went, or lie outside the range
		before := total
		if total, err = count(ctx, extract.Window{}); err != nil {
			return err
		}
		if total != before {
			n = extract.Unknown
		}
	}
	ranges, n, err := extract.UndatedRanges(ctx, c.Reader.Client, c.Reader.Name, total, n)
	if err != nil {
		return err
	}
	if n == extract.Unknown {
		n = max(0, total-datedNow) // proveUndated counts again
	}
	if total > in+n && c.Interval.Endless() {
		if err := c.lookAhead(ctx); err != nil {
			return err
		}
	}
	if len(ranges) == 0 {
		// A result may have got its date after counted.read and counted.since were asked for.
		c.counted.read, c.counted.since = extract.Unknown, nil
		return nil
	}
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "results without a date are read", slog.Int64("results", n), slog.Int("id_ranges", len(ranges)))
	c.Reader.Expect(n)
	// Where neither counts nor changes would show that a result got a date, its dates tell.
	return c.addUndated(ctx, reading.Undated{Ranges: ranges, Started: !c.Verifies() && c.Changes == nil}, n)
}

// counted holds what the service was asked for once all windows were read.
type counted struct {
	own   int64            // count of Interval.Asked, or extract.Unknown if not asked for
	read  int64            // count of Interval.Read, or extract.Unknown if not asked for
	since []extract.Change // what changed since the run began, newest first; nil if not asked for
	reads int64            // Reader.Reads when read and since were asked for
}

// countAll asks for the number of all results of the form, and then of the range if the run
// compares the range with a count anyway: in this order a result that goes between the two
// counts does not make them equal. If the run asks again what changed, countAll asks for that
// at the same time.
func (c *Reconciler) countAll(ctx context.Context) (total int64, err error) {
	group, asking := errgroup.WithContext(ctx)
	c.counted.read, c.counted.since, c.counted.reads = extract.Unknown, nil, c.Reader.Reads()
	group.Go(func() (err error) {
		if total, err = c.Reader.Counter()(asking, extract.Window{}); err != nil || !c.Verifies() || c.Changes.continues() {
			return err
		}
		c.counted.read, err = c.Reader.Counter()(asking, c.Interval.Read)
		return err
	})
	if c.comparesChanges() {
		group.Go(func() (err error) {
			c.counted.since, err = c.Changes.Since(asking, c.Reader.Form)
			if _, failed := errors.AsType[*extract.FeedError](err); failed {
				return nil // follow asks again, and decides on the error
			}
			return err
		})
	}
	return total, group.Wait()
}

// datedIDs returns the ids that the windows with a date hold.
func (c *Reconciler) datedIDs() idset.Set {
	return idset.Union(idsIn(slices.DeleteFunc(readWindows(c.Windows), func(w *reading.Window) bool { return w.Undated != nil }))...)
}

// addUndated reads results without a date as the run's last window. counts are the service's
// counts of them so far.
func (c *Reconciler) addUndated(ctx context.Context, u reading.Undated, counts ...int64) error {
	u.Read, u.Dated = c.Interval.Read, c.datedIDs()
	if !c.Changes.continues() {
		u.LeftOut = idset.Set{}
	}
	w := &reading.Window{Planned: extract.Planned{Count: extract.Unknown}, Undated: &u, Counts: counts}
	c.Windows = append(c.Windows, w)
	return c.Reader.Read(ctx, []*reading.Window{w})
}

// readLeftOut asks for results that were left out of the window of results without a date
// (see reading.Undated.LeftOut), and that no window with a date holds. It reads again the
// windows in which the service finds them. If it finds them in none, the service does not go
// by the dates that they show, and the results without a date are read again, with those.
// readLeftOut returns true if it read anything.
func (c *Reconciler) readLeftOut(ctx context.Context) (again bool, err error) {
	w := undatedWindow(c.Windows)
	if w == nil || w.Undated.LeftOut == nil {
		return false, nil
	}
	leftOut := w.Undated.LeftOut.Without(c.datedIDs())
	if leftOut.IsEmpty() {
		return false, nil
	}
	if leftOut = leftOut.Without(c.explained); !leftOut.IsEmpty() {
		if again, err := c.askFor(ctx, leftOut); err != nil || again {
			return again, err
		}
	}
	w.Undated.LeftOut = nil
	if err := c.readAgain(ctx, []*reading.Window{w}, "some of these results seem to have a date, but the service finds them at none", c.Reader.Forget); err != nil {
		return true, err
	}
	return true, c.rereadDuplicates(ctx)
}

// undatedWindow returns the window of the results without a date, or nil.
func undatedWindow(windows []*reading.Window) *reading.Window {
	if n := len(windows); n > 0 && windows[n-1].Undated != nil {
		return windows[n-1]
	}
	return nil
}

// proveUndated compares the number of results without a date that were read with the
// service's count of them. It counts again only if the last count does not agree. Then results
// have come, gone, or got a date. The windows with a date (the proof dated) are proven first,
// also after readLeftOut read any of them again.
func (c *Reconciler) proveUndated(ctx context.Context, dated *proof) error {
	w := undatedWindow(c.Windows)
	if w == nil || w.Undated.Only != nil {
		return nil
	}
	for {
		leftOut, err := c.readLeftOut(ctx)
		n := w.Counts[len(w.Counts)-1]
		if err != nil || !leftOut && w.Results() == n {
			return err
		}
		var total int64
		if !leftOut {
			var still bool
			if total, n, still, err = c.countUndated(ctx, dated.counted()); err != nil {
				return err
			}
			w.Counts = append(w.Counts, n)
			switch {
			case w.Results() == n && still:
				return nil
			case w.Results() != n && w.Still.Disagrees(n, w.Results()):
				return &VerifyError{Counted: n, Extracted: w.Results(), Undated: true, Untold: !c.Reader.CountsAgreed()}
			case len(w.Counts) > reading.Rereads && w.Plausible():
				return nil
			case w.Results() > n && !w.Undated.Started:
				// A result may have got a date, while its new window holds one that was deleted.
				w.Undated.Started, w.Undated.LeftOut = true, idset.Set{}
			}
		}
		if err := c.again(); err != nil {
			return err
		}
		if err := c.prove(ctx, dated); err != nil {
			return err
		}
		if leftOut {
			continue
		}
		if w.Undated.Ranges, _, err = extract.UndatedRanges(ctx, c.Reader.Client, c.Reader.Name, total, n); err != nil {
			return err
		}
		if err := c.readAgain(ctx, []*reading.Window{w}, whyCounted, c.Reader.Forget); err != nil {
			return err
		}
		if err := c.rereadDuplicates(ctx); err != nil {
			return err
		}
	}
}

// countUndated counts the results that no window with a date can hold. From all
// results it subtracts those up to the range's end and those after it. This
// takes one more request than total and extract.CountUndated. But it agrees with the
// windows, however the service treats results before 1970 and however it treats
// undated results. still tells whether the counts can be believed: the range still holds
// `held` results, so none came between the counts that would hide one without a date.
func (c *Reconciler) countUndated(ctx context.Context, held int64) (total, undated int64, still bool, err error) {
	var counts []int64
	for _, w := range []extract.Window{{}, {To: c.Interval.Read.To}, {From: c.Interval.Read.To}} {
		n, err := c.count(ctx, w)
		if err != nil {
			return 0, 0, false, err
		}
		counts = append(counts, n)
	}
	still = counts[1] == held || !c.Interval.Read.From.IsZero()
	return counts[0], max(0, counts[0]-counts[1]-counts[2]), still, nil
}

// A result that gets a date leaves the part of results without a date. The ids
// in that part are known, so the run asks for its other results by id. It does
// not search for them by counts. New results without a date are found only by a
// run without bounds.

// readKnownUndated reads again the results in parts without a date that no window of
// this run holds. If the ids in these parts are not known, it looks for all results
// without a date.
func (c *Reconciler) readKnownUndated(ctx context.Context) error {
	c.datedNow = true
	only, err := c.Parts.IDs(ctx, func(d Dataset) []load.Part {
		if d.Manifest == nil {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(d.Manifest.Parts), func(p load.Part) bool { return !p.Undated })
	})
	if errors.Is(err, idset.ErrDamaged) {
		return c.ReadUndated(ctx)
	}
	if err != nil {
		return err
	}
	if only = only.Without(c.readIDs()); only.IsEmpty() {
		return nil
	}
	ranges := clusters(only)
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "results without a date are read again",
		slog.Int("results", only.Len()), slog.Int("id_ranges", len(ranges)), slog.String("reason", "one of them changed, or an output lacks it"))
	return c.addUndated(ctx, reading.Undated{Ranges: ranges, Only: only})
}

// clusterSpan is how many ids a range spans at most. Ids are whole numbers, so
// one request returns all its results (specification, section 8).
const clusterSpan = 100

// clusters returns ranges of ids that cover a set of ids. Each range spans at most clusterSpan
// ids, so that it takes one request.
func clusters(ids idset.Set) []extract.UndatedRange {
	var ranges []extract.UndatedRange
	for id := range ids.All() {
		if last := len(ranges) - 1; last >= 0 && id-ranges[last].IDs.Min < clusterSpan {
			ranges[last].IDs.Max = id
			continue
		}
		ranges = append(ranges, extract.UndatedRange{IDs: extract.IDRange{Min: id, Max: id}, Mixed: true})
	}
	return ranges
}

// A range that was given no end ends a moment ago, by our clock and in the definition's zone.
// If the clock or the zone is wrong, the newest results lie after that end, and a count of the
// range agrees all the same. So the range is counted without its end. Where more is counted
// than was read, as with a search, one request asks for results after now.

// LateError reports results that are dated later than now. A run whose range ends at Beyond
// reads them.
type LateError struct {
	Now, Beyond time.Time // both are wall-clock times of the definition's zone
}

// Error gives the present by this machine's clock, in the definition's zone.
func (e *LateError) Error() string {
	return fmt.Sprintf("some results are dated in the future: it is %s now by this machine's clock and the time zone of this run", e.Now.Format(extract.WireTime))
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
// there are some. It asks nothing if it was called before, or if the run's range already ends
// later than now.
func (c *Reconciler) lookAhead(ctx context.Context) error {
	now := load.Wall(c.Reader.Now().In(c.Reader.Def.Source.Zone)).Time
	if c.lookedAhead || c.Interval.Read.To.After(now) {
		return nil
	}
	c.lookedAhead = true
	there, err := c.Reader.Holds(ctx, extract.Window{From: now.Add(reading.ClockLeeway)}, extract.IDRange{})
	if err != nil || !there {
		return err
	}
	e := &LateError{Now: now}
	for _, e.Beyond = range []time.Time{now.Add(reading.WidestZone + time.Hour), now.AddDate(1, 0, 0), now.AddDate(30, 0, 0)} {
		if there, err = c.Reader.Holds(ctx, extract.Window{From: e.Beyond}, extract.IDRange{}); err != nil || !there {
			return cmp.Or(err, error(e))
		}
	}
	e.Beyond = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	return e
}
