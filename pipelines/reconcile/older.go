package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
)

// Ids never change, but dates may. A result that was begun a year ago and is
// finished today moves from an old part to one that this run writes. Every part
// keeps the set of its ids. A part is stale if it holds an id that this run
// read in another window. The run reads it again and replaces it in the same
// commit. So each id is in a dataset only once.

// settleStale finds older parts that hold an id which this run read in another
// window, and reads them again. It repeats this until no such part is left.
func (c *Reconciler) settleStale(ctx context.Context) error {
	for {
		ids := c.uncompared()
		if ids.IsEmpty() {
			return nil
		}
		hits, err := c.Parts.Holding(ctx, ids, c.Replaced())
		if err != nil {
			return err
		}
		c.compared.Or(ids)
		if err := c.readHits(ctx, hits); err != nil {
			return err
		}
		if err := c.settleDuplicates(ctx); err != nil {
			return err
		}
	}
}

// uncompared returns the ids that were read and not yet compared with older parts.
func (c *Reconciler) uncompared() *roaring64.Bitmap {
	if c.Full {
		return roaring64.New() // all parts are replaced
	}
	ids := c.readIDs()
	ids.AndNot(&c.compared)
	return ids
}

// readHits reads the older parts in hits again.
func (c *Reconciler) readHits(ctx context.Context, hits []Held) error {
	if err := c.readOlder(ctx, spansOf(hits), "a result of it has another date now"); err != nil {
		return err
	}
	return c.readUndatedOf(ctx, hits)
}

// mostCells is how many partitions a span may have that is read without a count.
const mostCells = 8

// planOlder divides a span outside the run's range into windows and inserts them
// into the run's windows. It returns the new windows that may hold results. A run
// that continues the datasets knows about how many results there are. So it asks
// for no count if there are few.
func (c *Reconciler) planOlder(ctx context.Context, w extract.Window, why string) ([]*reading.Window, error) {
	r := &reading.Older{Window: w}
	c.older = append(c.older, r)
	at := slices.IndexFunc(c.Windows, func(is *reading.Window) bool {
		return is.Undated != nil || !is.Planned.Window.From.IsZero() && !is.Planned.Window.From.Before(w.To)
	})
	if at < 0 {
		at = len(c.Windows)
	}
	count, cuts, held := c.Reader.Counter(), []time.Time(nil), interval.ResultsIn(w, manifestsOf(c.Parts))
	if c.isSmall(w, held) {
		count, cuts = nil, cutsOf(w, held)
	}
	plan, todo, err := c.plan(ctx, w, r, at, at, count, cuts...)
	if err != nil {
		return nil, err
	}
	r.Counts = append(r.Counts, plan.Total)
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "an older part is read again",
		slog.String("window", w.String()), slog.Int64("results", held), slog.String("reason", why))
	return todo, nil
}

// cutsOf returns the times at which a window of so many results is cut, so that each
// piece holds about as many as reading.StaleTarget. They are whole days or hours.
func cutsOf(w extract.Window, results int64) (cuts []time.Time) {
	pieces := results / reading.StaleTarget
	if w.From.IsZero() || pieces < 2 {
		return nil
	}
	length := w.To.Sub(w.From) / time.Duration(pieces)
	unit := 24 * time.Hour
	if length < unit {
		unit = time.Hour
	}
	length = max(unit, length.Round(unit))
	for at := w.From.Truncate(unit).Add(length); at.Before(w.To); at = at.Add(length) {
		cuts = append(cuts, at)
	}
	return cuts
}

// isSmall tells whether a window of whole parts needs no count to be divided,
// because the datasets hold few results of it.
func (c *Reconciler) isSmall(w extract.Window, held int64) bool {
	if c.Changes == nil || !c.Changes.Continues || held > extract.DefaultTarget {
		return false
	}
	unit := c.Reader.Def.FinestUnit()
	if w.From.IsZero() { // it may be undivided where it is one part of each dataset
		return !slices.ContainsFunc(manifestsOf(c.Parts), func(m *load.Manifest) bool {
			return slices.ContainsFunc(m.Parts, func(p load.Part) bool {
				return !p.Undated && windowOf(p).Overlaps(w) && windowOf(p) != w
			})
		})
	}
	return unit.Spans(w.From, w.To) <= mostCells
}

// A part outside the run's range is stale if the service named a changed result of
// it, or if its object is damaged. The run reads all such parts again.

// readStale reads the parts again that are known to be stale before anything else
// is compared. With them it reads the places that changed results are in now.
func (c *Reconciler) readStale(ctx context.Context) error {
	if c.Full {
		return nil // all parts are replaced
	}
	spans, ids := c.staleBefore(ctx), roaring64.New()
	if c.Interval.Continues {
		ids = named(c.Changes)
	}
	hits, err := c.Parts.Holding(ctx, ids, c.Replaced())
	if err != nil {
		return err
	}
	spans = append(spans, spansOf(hits)...)
	if spans, err = c.addHinted(ctx, spans, hits); err != nil {
		return err
	}
	if err := c.readOlder(ctx, spans, "a result of it changed, or it is damaged"); err != nil {
		return err
	}
	return c.readUndatedOf(ctx, hits)
}

// staleBefore returns the spans that are stale whatever the service named: those of
// damaged parts. If too much changed to know which parts are stale, it returns all parts.
func (c *Reconciler) staleBefore(ctx context.Context) (spans []extract.Window) {
	for _, d := range c.Parts.Datasets() {
		for _, p := range d.Damaged {
			c.Reader.Log.LogAttrs(ctx, slog.LevelWarn, "a part is missing or has another size; it is made again", slog.String("part", p.Path))
			if !p.Undated {
				spans = append(spans, windowOf(p))
			}
		}
	}
	if c.Changes != nil && c.Changes.AllStale {
		for _, m := range wholeOf(c.Parts) {
			_, kept := c.Replaced().Divide(m)
			for _, p := range kept {
				if !p.Undated {
					spans = append(spans, windowOf(p))
				}
			}
		}
	}
	return spans
}

// spansOf returns the times of the parts that hold dated results.
func spansOf(hits []Held) (spans []extract.Window) {
	for _, h := range hits {
		if !h.Undated {
			spans = append(spans, windowOf(h.Part))
		}
	}
	return spans
}

func windowOf(p load.Part) extract.Window { return extract.Window{From: p.From.Time, To: p.To.Time} }

// addHinted adds the places that changed results are probably in now. The date
// by which the service filters is not known. So the place is confirmed by a count
// if a part elsewhere holds the result, because then it may have stayed there.
func (c *Reconciler) addHinted(ctx context.Context, spans []extract.Window, hits []Held) ([]extract.Window, error) {
	if c.Changes == nil || !c.Changes.Continues {
		return spans, nil // all other time is read, or is no part of the dataset
	}
	for _, change := range c.Changes.Named {
		if len(change.Dates) == 0 {
			continue
		}
		at, ok := c.placeOf(change.Dates[0])
		if !ok || slices.Contains(spans, at) {
			continue
		}
		if slices.ContainsFunc(hits, func(h Held) bool { return h.IDs.Contains(uint64(change.ID)) }) { //nolint:gosec // ids are not negative
			there, err := c.Reader.Holds(ctx, at, extract.IDRange{Min: change.ID, Max: change.ID})
			if err != nil {
				return nil, err
			}
			if !there {
				continue
			}
		}
		spans = append(spans, at)
	}
	return spans, nil
}

// readNamed reads everything again that results which changed may concern: what
// holds them, and the place of their date.
func (c *Reconciler) readNamed(ctx context.Context, named []extract.Change) error {
	ids := idsOf(named)
	hits, err := c.Parts.Holding(ctx, ids, c.Replaced())
	if err != nil {
		return err
	}
	spans := spansOf(hits)
	again := map[*reading.Window]bool{}
	for _, w := range c.Windows {
		again[w] = w.Undated != nil && w.IDs != nil && w.IDs.Intersects(ids)
	}
	for _, s := range c.timeline() {
		dated := slices.ContainsFunc(named, func(change extract.Change) bool { return len(change.Dates) > 0 && s.Window.Holds(change.Dates[0]) })
		switch {
		case s.window != nil:
			again[s.window] = dated || s.window.IDs != nil && s.window.IDs.Intersects(ids)
		case dated:
			spans = append(spans, s.Window)
		}
	}
	windows := slices.DeleteFunc(slices.Clone(c.Windows), func(w *reading.Window) bool { return !again[w] })
	if err := c.readAgain(ctx, windows, "a result of it changed", c.Reader.Forget); err != nil {
		return err
	}
	if err := c.readOlder(ctx, spans, "a result of it changed"); err != nil {
		return err
	}
	return c.readUndatedOf(ctx, hits)
}

// readUndatedOf reads the undated results again if one of the hits is a part of such.
func (c *Reconciler) readUndatedOf(ctx context.Context, hits []Held) error {
	if slices.ContainsFunc(hits, func(h Held) bool { return h.Undated }) && !c.wantsUndated() {
		return c.readKnownUndated(ctx)
	}
	return nil
}

// readOlder reads spans again that the run has not read.
func (c *Reconciler) readOlder(ctx context.Context, spans []extract.Window, why string) error {
	before := c.sent()
	var todo []*reading.Window
	for _, w := range spans {
		w = interval.Widen(w, manifestsOf(c.Parts), false)
		if c.isRead(w) {
			continue
		}
		windows, err := c.planOlder(ctx, w, why)
		if err != nil {
			return err
		}
		todo = append(todo, windows...)
	}
	c.Work.Older += len(todo)
	err := c.Reader.Read(ctx, todo)
	if c.planned > 0 { // they are no rereads, so that the budget of these grows with them
		c.planned += c.sent() - before
	}
	return err
}

// isRead tells whether the run reads the time of a span, which consists of whole parts.
func (c *Reconciler) isRead(w extract.Window) bool {
	return slices.ContainsFunc(c.Windows, func(is *reading.Window) bool {
		return is.Undated == nil && is.Planned.Window.Overlaps(w)
	})
}

// The time of a dataset consists of the windows that the run reads, the parts that it
// keeps, and the gaps between them.

// placeOf returns the part, or the gap between parts, that holds a date and that the
// run does not read. A gap ends at the boundaries of the finest partition.
func (c *Reconciler) placeOf(date time.Time) (place extract.Window, ok bool) {
	whole := c.whole()
	if !whole.Holds(date) {
		return place, false
	}
	place = whole
	if unit := c.Reader.Def.FinestUnit(); unit != extract.UnitNone {
		cell := extract.Window{From: unit.Start(date), To: unit.Next(date)}
		place = extract.Window{From: extract.Later(place.From, cell.From), To: extract.Earlier(place.To, cell.To)}
	}
	for _, s := range c.timeline() {
		switch {
		case s.gap:
		case s.Window.Holds(date):
			return s.Window, s.window == nil
		case s.To.After(date):
			place.To = extract.Earlier(place.To, s.From)
		default:
			place.From = extract.Later(place.From, s.To)
		}
	}
	return place, true
}

// span is a stretch of the datasets' time as it will be after this run.
type span struct {
	extract.Window
	results int64           // that are held there
	window  *reading.Window // that the run reads; nil for a kept part or a gap
	gap     bool            // no part and no window is there
}

// whole returns the time of all results that the datasets should hold.
func (c *Reconciler) whole() extract.Window {
	return c.Interval.Whole(c.Reader.Def, manifestsOf(c.Parts))
}

// timeline returns the spans of the first dataset; without one, those of the windows.
func (c *Reconciler) timeline() []span {
	for _, m := range wholeOf(c.Parts) {
		return c.timelineOf(m)
	}
	return c.timelineOf(nil)
}

// timelineOf returns the time of a dataset in order: the windows that the run
// reads, the parts that it keeps, and the gaps between them. Only a run that
// continues the datasets knows that gaps belong to them.
func (c *Reconciler) timelineOf(m *load.Manifest) (line []span) {
	whole := c.whole()
	for _, w := range c.Windows {
		if w.Undated == nil && w.Planned.Window.Overlaps(whole) {
			line = append(line, span{Window: w.Planned.Window, results: w.Results(), window: w})
		}
	}
	_, kept := c.Replaced().Divide(m)
	for _, p := range kept {
		if w := windowOf(p); !p.Undated && w.Overlaps(whole) {
			if n := len(line); n > 0 && line[n-1].window == nil && line[n-1].Window == w { // one part of several objects
				line[n-1].results += p.Rows + p.Rejected
				continue
			}
			line = append(line, span{Window: w, results: p.Rows + p.Rejected})
		}
	}
	slices.SortStableFunc(line, func(a, b span) int { return a.From.Compare(b.From) })
	if c.Changes == nil || !c.Changes.Continues {
		return line
	}
	var gaps []span
	at := whole.From
	for _, s := range line {
		if at.Before(s.From) {
			gaps = append(gaps, span{Window: extract.Window{From: at, To: s.From}, gap: true})
		}
		at = s.To
	}
	line = append(line, gaps...)
	slices.SortStableFunc(line, func(a, b span) int { return a.From.Compare(b.From) })
	return line
}
