package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas/plain"
)

// Counts can agree while a result is lost: it moves from a window that is still to
// be read to one that was read, and a result that was read is deleted. So the run
// keeps the ids that it must find: those of windows that were read once more, those
// of parts that it replaces, and those that the service named as changed. An id
// that is in no window in the end is asked for.

// rereadMissing asks the service for expected ids that no window holds, and reads the windows
// again in which these results are now. It returns true if the run must compare again.
func (c *Reconciler) rereadMissing(ctx context.Context) (again bool, err error) {
	if c.Interval.Unbounded() {
		c.weak = true
		return false, nil // there is only one window
	}
	if again, err := c.checkChanges(ctx); err != nil || again {
		return again, err
	}
	if w := undatedWindow(c.Windows); w != nil && w.Undated.LeftOut != nil {
		// Results left out of the window of those without a date.
		c.expected = c.expected.Union(w.Undated.LeftOut)
	}
	missing, err := c.missing(ctx)
	if err != nil {
		return false, err
	}
	if missing.IsEmpty() {
		return c.readLeftOut(ctx)
	}
	// A run that does not continue the datasets knows too little of what is not named.
	if unnamed := missing.Without(c.Changes.ids()); c.Changes.continues() && !unnamed.IsEmpty() {
		cut, err := c.cutOff(ctx, unnamed)
		if err != nil {
			return false, err
		}
		if asked, err := c.Reader.ReadTails(ctx, cut); err != nil || asked {
			return true, err
		}
		return true, c.explain(ctx, unnamed)
	}
	return c.askFor(ctx, missing)
}

// cutOff returns the windows whose highest id is below a missing result that a part of their
// time held. A page may have cut the result off, and one count of all results, made before
// another result came, does not show that.
func (c *Reconciler) cutOff(ctx context.Context, missing idset.Set) (windows []*reading.Window, err error) {
	for _, w := range readWindows(c.Windows) {
		if w.Undated != nil || w.IDs.IsEmpty() || w.IDs.Max() >= missing.Max() {
			continue
		}
		held, err := c.Parts.IDs(ctx, func(d Dataset) []load.Part {
			if d.Child || d.Manifest == nil {
				return nil
			}
			return slices.DeleteFunc(slices.Clone(d.Manifest.Parts), func(p load.Part) bool { return p.Undated || !windowOf(p).Overlaps(w.Planned.Window) })
		})
		if err != nil && !errors.Is(err, idset.ErrDamaged) {
			return nil, err
		}
		if held = held.Intersect(missing); err != nil || !held.IsEmpty() && held.Max() > w.IDs.Max() {
			windows = append(windows, w)
		}
	}
	return windows, nil
}

// explain asks the service once more what changed. A missing result that the service does not
// name then did not move: it was deleted. The count is asked for again only if something else
// changed since. A result deleted after the count may hide an earlier deletion, which the next
// run finds.
func (c *Reconciler) explain(ctx context.Context, unnamed idset.Set) error {
	more, err := c.readMore(ctx)
	if err == nil && more > 0 {
		err = c.recount(ctx, c.proofOfAll())
	}
	c.explained = c.explained.Union(unnamed.Without(c.Changes.ids()))
	return err
}

// missing returns the ids that were expected, that no window holds and that are not explained:
// not known to be deleted or outside the range.
func (c *Reconciler) missing(ctx context.Context) (idset.Set, error) {
	missing := c.expected
	if c.Changes.continues() {
		replaced, err := c.replacedIDs(ctx)
		if err != nil {
			return nil, err
		}
		missing = idset.Union(missing, replaced, c.Changes.ids())
	}
	return missing.Without(c.readIDs()).Without(c.explained), nil
}

func (c *Reconciler) readIDs() idset.Set {
	return idset.Union(idsIn(readWindows(c.Windows))...)
}

// replacedIDs returns the ids in the parts that the run replaces. If the ids of a part are not
// known, it returns none and sets weak.
func (c *Reconciler) replacedIDs(ctx context.Context) (idset.Set, error) {
	replaced := c.Replaced()
	ids, err := c.Parts.IDs(ctx, func(d Dataset) []load.Part {
		if d.Child {
			return nil
		}
		parts, _ := replaced.Divide(d.Manifest)
		return parts
	})
	if errors.Is(err, idset.ErrDamaged) {
		c.weak = true
		return idset.Set{}, nil
	}
	return ids, err
}

// checkChanges asks the feed of changes once more where that is needed. A run that reads
// everything needs to know what changed while it read. If the service does not tell that,
// checkChanges returns true, because the counts must be compared more thoroughly.
func (c *Reconciler) checkChanges(ctx context.Context) (again bool, err error) {
	if c.rechecked {
		return false, nil
	}
	c.rechecked = true
	asked := c.Changes
	switch {
	case asked == nil || !asked.Usable:
		c.weak = true
		return false, nil
	case c.Reader.Pages.Unstamped() > 0:
		problem := fmt.Sprintf("the service sent %s without %s", plain.Plural(c.Reader.Pages.Unstamped(), "result"), extract.UpdateMeta)
		if asked.Continues {
			return false, &extract.FeedError{Problem: problem}
		}
		c.weak = true
		asked.Void(c.Reader.Form, problem)
		return true, nil
	case asked.Continues:
		return false, c.checkNamed(ctx)
	case !c.comparesChanges():
		return false, nil
	}
	_, changed, err := c.askAgain(ctx)
	if err == nil && !c.Verifies() && !changed.IsEmpty() {
		// Without verification only this shows what a window lost because it was read up to an
		// outdated count. Any window may have: its count may be the difference of two counts, so
		// that a change before the window makes it wrong.
		again, err = c.Reader.ReadBehind(ctx, c.Windows)
	}
	if failed, ok := errors.AsType[*extract.FeedError](err); ok {
		asked.Usable, c.weak = false, true
		c.Reader.Log.LogAttrs(ctx, slog.LevelWarn, "the service does not tell what changed during the run; a result that changed meanwhile may be written as it was before, until a later run reads it", slog.String("reason", failed.Problem))
		return true, nil
	}
	return again, err
}

// comparesChanges tells whether the run asks what changed while it read everything.
func (c *Reconciler) comparesChanges() bool {
	return c.Changes != nil && c.Changes.Usable && !c.Changes.Continues && c.Reader.Pages.Unstamped() == 0 &&
		(reading.MayMiss(c.Plan) || len(c.Windows) > 1)
}

// checkNamed makes sure that the service named all new results. A run that continues
// the datasets knows all other results from the parts. If it read a new result that the feed
// did not name, it asks the feed once more, because the result may have come during the run.
// If the feed does not name the result then, the error is a *extract.FeedError, which says
// when that result changed if it is still there.
func (c *Reconciler) checkNamed(ctx context.Context) error {
	unnamed, err := c.unnamed(ctx)
	if err != nil || unnamed.IsEmpty() {
		return err
	}
	named, _, err := c.askAgain(ctx)
	if err != nil {
		return err
	}
	if unnamed = unnamed.Without(named); unnamed.IsEmpty() {
		return nil
	}
	id := unnamed.Min()
	e := &extract.FeedError{Problem: fmt.Sprintf("result %d was read and is gone when asked for again, and the list of changes did not name it", id)}
	found, err := c.changesIn(ctx, extract.Window{}, idset.Of(id))
	for _, change := range found {
		e.Problem = fmt.Sprintf("the service does not list the new result %d among the changes", id)
		if e.Newest = change.At; e.Newest.IsZero() {
			e.Problem = fmt.Sprintf("result %d has no %s", id, extract.UpdateMeta)
		}
	}
	return cmp.Or(err, error(e))
}

// askAgain asks what changed since the run began, and adds the results in changed to expected.
// named has these and results that changed shortly before the run began.
func (c *Reconciler) askAgain(ctx context.Context) (named, changed idset.Set, err error) {
	since := c.counted.since
	if since == nil || c.counted.reads != c.Reader.Reads() {
		if since, err = c.Changes.Since(ctx, c.Reader.Form); err != nil {
			return nil, nil, err
		}
	}
	named = idsOf(since)
	changed = idsOf(slices.DeleteFunc(slices.Clone(since), c.Changes.Saw))
	c.expected = c.expected.Union(changed)
	return named, changed, nil
}

// unnamed returns the ids that were read, that no replaced part holds and that the
// service did not name as changed. It leaves out rejected results, because the sets of ids of
// parts lack them, and windows after the watermark where new results need not be named.
func (c *Reconciler) unnamed(ctx context.Context) (idset.Set, error) {
	replaced, err := c.replacedIDs(ctx)
	if err != nil || c.weak {
		return idset.Set{}, err
	}
	var sets []idset.Set
	watermark := reading.LeastWatermark(manifestsOf(c.Parts))
	for _, w := range readWindows(c.Windows) {
		if w.Undated != nil || c.Changes.Unnamed(watermark) && w.Planned.Window.To.After(watermark) {
			continue
		}
		sets = append(sets, w.IDs.Without(checkpoint.RejectedIDs(w.Rejects)))
	}
	return idset.Union(sets...).Without(replaced).Without(c.Changes.ids()), nil
}

// askFor asks the service for missing ids. It adds ids that are deleted or outside the range
// to explained. For the rest it reads the windows again in which the service finds them.
func (c *Reconciler) askFor(ctx context.Context, missing idset.Set) (again bool, err error) {
	after := c.Changes.laterThan(c.datasetTime().To)
	if err := c.keepLater(ctx, missing.Intersect(after)); err != nil {
		return false, err
	}
	time := c.Interval.Read
	if c.Interval.Continues {
		time = c.datasetTime()
	}
	found, err := c.changesIn(ctx, time, missing.Without(c.explained))
	if err != nil {
		return false, err
	}
	inside := idsOf(found)
	c.explained = c.explained.Union(missing).Without(inside)
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "results had left the dates where they were read; those not found again were deleted or left the range",
		slog.Int("results", missing.Len()), slog.Int("found_again", len(found)))
	outside := missing.Without(inside)
	c.outside = c.outside.Union(outside)
	if err := c.keepLater(ctx, outside.Without(after)); err != nil {
		return false, err
	}
	if again, err = c.readPlaces(ctx, found); err != nil || !c.Changes.continues() {
		return again, err
	}
	// A result that left the range since the count may hide one that was deleted before it.
	replaced, err := c.replacedIDs(ctx)
	if err != nil || !missing.Intersect(c.explained).Intersects(replaced) {
		return again, err
	}
	return true, c.recount(ctx, c.proofOfAll())
}

// changesIn asks for those results of a window that have one of the ids.
func (c *Reconciler) changesIn(ctx context.Context, w extract.Window, ids idset.Set) (found []extract.Change, err error) {
	seen := map[int64]bool{}
	for _, r := range clusters(ids) {
		err := c.Reader.Pages.Each(ctx, w, r.IDs, func(p *page.Page) error {
			for _, change := range extract.ChangesOf(p) {
				if ids.Contains(change.ID) && !seen[change.ID] {
					found, seen[change.ID] = append(found, change), true
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("looking for results that are in no window: %w", err)
		}
	}
	return found, nil
}

// keepLater notes in c.later the missing ids that lie after the range, and adds them to
// explained. The next run looks for them again, though the service may not name them then.
func (c *Reconciler) keepLater(ctx context.Context, missing idset.Set) error {
	if !c.Changes.continues() {
		return nil
	}
	changed, err := c.changesIn(ctx, extract.Window{From: c.datasetTime().To}, missing.Intersect(c.Changes.ids()))
	for _, change := range changed {
		c.later = append(c.later, change.ID)
	}
	c.explained = c.explained.Union(idsOf(changed))
	return err
}

// readPlaces reads again the spans in which the found results are now.
func (c *Reconciler) readPlaces(ctx context.Context, found []extract.Change) (again bool, err error) {
	line := c.timeline()
	var places []span
	read, ids := map[int]bool{}, idsOf(found)
	for _, change := range found {
		at := -1
		if len(change.Dates) > 0 {
			at = slices.IndexFunc(line, func(s span) bool { return s.Holds(change.Dates[0]) })
		}
		if read[at] {
			continue // the place is read again, which will show whether the result is there
		}
		if at, err = c.locate(ctx, line, at, change); err != nil {
			return false, err
		}
		if at < 0 {
			c.explained = c.explained.Union(idset.Of(change.ID))
			continue
		}
		if !read[at] {
			places = append(places, line[at])
		}
		read[at] = true
	}
	return len(places) > 0, c.readSpans(ctx, places, "the date of a result changed, and lies in it now", c.Reader.ForgetAround(ids))
}

// locate returns the index of the span of line that holds a changed result, or -1 if none
// does. hint is the index of the span that is asked first, or -1. If the result is not
// there, the line is halved by asking for the id.
func (c *Reconciler) locate(ctx context.Context, line []span, hint int, change extract.Change) (at int, err error) {
	asked := func(of []span) (bool, error) {
		return c.Reader.Holds(ctx, timeOf(of), extract.IDRange{Min: change.ID, Max: change.ID})
	}
	if hint >= 0 {
		if there, err := asked(line[hint : hint+1]); there || err != nil {
			return hint, err
		}
	}
	lo, hi := 0, len(line)
	for hi-lo > 1 {
		middle := (lo + hi) / 2
		lower, err := asked(line[lo:middle])
		switch {
		case err != nil:
			return -1, err
		case lower:
			hi = middle
		default:
			lo = middle
		}
	}
	if hi == lo || lo == hint { // the line is empty, or this span was asked first
		return -1, nil
	}
	if there, err := asked(line[lo:hi]); err != nil || !there {
		return -1, err
	}
	return lo, nil
}
