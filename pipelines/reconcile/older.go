package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/reading"
)

// Ids never change, but dates may. A result that was begun a year ago and is
// finished today moves from an old part to one that this run writes. Every part
// keeps the set of its ids. A part is stale if it holds an id that this run
// read in another window. The run reads it again and replaces it in the same
// commit. So each id is in a dataset only once.

// rereadStale finds older parts that hold an id which this run read in another
// window, and reads them again. It repeats this until no such part is left.
func (c *Reconciler) rereadStale(ctx context.Context) error {
	for {
		ids := c.uncompared()
		if ids.IsEmpty() {
			return nil
		}
		c.compared = c.compared.Union(ids)
		if err := c.readConcerned(ctx, nil, ids, stale{}, "the date of one of its results changed"); err != nil {
			return err
		}
		if err := c.rereadDuplicates(ctx); err != nil {
			return err
		}
	}
}

// uncompared returns the ids that were read and not yet compared with older parts.
func (c *Reconciler) uncompared() idset.Set {
	if c.Full {
		return idset.Set{} // all parts are replaced
	}
	return c.readIDs().Without(c.compared)
}

// planOlder divides a span outside the run's range into windows and inserts them
// into the run's windows. It returns the new windows that may hold results. A run
// that continues the datasets knows roughly how many results the span has. So it asks
// for no count if they are few.
func (c *Reconciler) planOlder(ctx context.Context, w extract.Window, why string) ([]*reading.Window, error) {
	r := &reading.Older{Window: w}
	c.older = append(c.older, r)
	at := slices.IndexFunc(c.Windows, func(is *reading.Window) bool {
		return is.Undated != nil || !is.Planned.Window.From.IsZero() && !is.Planned.Window.From.Before(w.To)
	})
	if at < 0 {
		at = len(c.Windows)
	}
	count, cuts, held := c.Reader.Counter(), []time.Time(nil), reading.ResultsIn(w, manifestsOf(c.Parts))
	if c.isSmall(w, held) {
		count, cuts = nil, cutsOf(w, held)
	}
	plan, todo, err := c.plan(ctx, w, r, at, at, count, cuts...)
	if err != nil {
		return nil, err
	}
	r.Counts = append(r.Counts, plan.Total)
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "an older part is read again",
		slog.String("window", w.Dates()), slog.Int64("results", reading.ResultsIn(w, wholeOf(c.Parts))), slog.String("reason", why))
	return todo, nil
}

// cutsOf returns the times at which a window with this number of results is cut, so that each
// piece holds about reading.StaleTarget results. The times are whole days or hours.
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
	if !c.Changes.continues() || held > extract.DefaultTarget {
		return false
	}
	if w.From.IsZero() { // such a window stays undivided if it is one part of each dataset
		return !slices.ContainsFunc(manifestsOf(c.Parts), func(m *load.Manifest) bool {
			return slices.ContainsFunc(m.Parts, func(p load.Part) bool {
				return !p.Undated && windowOf(p).Overlaps(w) && windowOf(p) != w
			})
		})
	}
	return c.Reader.IsSmall(w, held)
}

// A part outside the run's range is stale if the service named a result of the part as
// changed, or if the part's object is damaged. The run reads all stale parts again.

// readStale reads the parts again that are known to be stale before anything else is
// compared. It also reads the spans in which the changed results are now.
func (c *Reconciler) readStale(ctx context.Context) error {
	if c.Full {
		return nil // all parts are replaced
	}
	var named []extract.Change
	if c.Changes != nil && c.Interval.Continues {
		named = c.Changes.Named
	}
	s := c.broken(ctx)
	if err := c.readOlder(ctx, s.spans, "it, or an uploaded file of it, is damaged or missing"); err != nil {
		return err
	}
	c.addUnknown(&s)
	return c.readConcerned(ctx, named, idsOf(named), s, "one of its results changed, or may have changed")
}

// stale is what of the datasets has to be read again.
type stale struct {
	spans   []extract.Window
	undated bool // the results without a date too
}

func (s *stale) add(p load.Part) {
	if p.Undated {
		s.undated = true
	} else {
		s.spans = append(s.spans, windowOf(p))
	}
}

// broken returns what is stale whatever the service named: damaged parts, and those of results
// whose uploaded files could not be fetched.
func (c *Reconciler) broken(ctx context.Context) (s stale) {
	for _, d := range c.Parts.Datasets() {
		for _, p := range d.Damaged {
			c.Reader.Log.LogAttrs(ctx, slog.LevelWarn, "a part is damaged or missing; it is read from the service and written again, without results that the service has deleted", slog.String("path", d.Path), slog.String("part", p.Path))
			s.add(p)
		}
		if d.Manifest == nil {
			continue
		}
		for _, p := range d.Manifest.Parts {
			if p.Unfetched {
				c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "some uploaded files of a part were not fetched; they are asked for again", slog.String("part", p.Path))
				s.add(p)
			}
		}
	}
	return s
}

// addUnknown adds all parts of which is not known whether they are stale, because too much changed.
func (c *Reconciler) addUnknown(s *stale) {
	if c.Changes == nil || !c.Changes.UndatedStale { // which AllStale implies
		return
	}
	for _, m := range wholeOf(c.Parts) {
		_, kept := c.Replaced().Divide(m)
		for _, p := range kept {
			if c.Changes.AllStale || p.Undated {
				s.add(p)
			}
		}
	}
}

func windowOf(p load.Part) extract.Window { return extract.Window{From: p.From.Time, To: p.To.Time} }

// readNamed reads again the windows and parts that hold one of the results named as changed,
// and the span in which the date of each lies now.
func (c *Reconciler) readNamed(ctx context.Context, named []extract.Change) error {
	const why = "one of its results changed"
	ids := idsOf(named)
	windows := slices.DeleteFunc(slices.Clone(c.Windows), func(w *reading.Window) bool {
		dated := w.Undated == nil && slices.ContainsFunc(named, func(change extract.Change) bool {
			return len(change.Dates) > 0 && w.Planned.Window.Holds(change.Dates[0])
		})
		return !dated && (w.IDs == nil || !w.IDs.Intersects(ids))
	})
	if err := c.readAgain(ctx, windows, why, c.Reader.Forget); err != nil {
		return err
	}
	return c.readConcerned(ctx, named, ids, stale{}, why)
}

// readConcerned reads what is stale and the parts that hold one of the ids. It also reads the spans in
// which the results named as changed probably are now. The date by which the service filters
// is not known. So the service is asked whether a result is in such a span if a part elsewhere
// holds the result, because it may have stayed there.
func (c *Reconciler) readConcerned(ctx context.Context, named []extract.Change, ids idset.Set, s stale, why string) error {
	hits, err := c.Parts.Holding(ctx, ids, c.Replaced())
	if err != nil {
		return err
	}
	held := idset.Set{}
	for _, h := range hits {
		held = held.Union(h.IDs)
		s.add(h.Part)
	}
	for _, change := range named {
		if !c.Changes.Continues || len(change.Dates) == 0 {
			continue // without a date no span is known; otherwise the run reads all time of the dataset
		}
		at, ok := c.placeOf(change.Dates[0])
		if !ok || slices.Contains(s.spans, at) {
			continue
		}
		if held.Contains(change.ID) {
			there, err := c.Reader.Holds(ctx, at, extract.IDRange{Min: change.ID, Max: change.ID})
			if err != nil {
				return err
			}
			if !there {
				continue
			}
		}
		s.spans = append(s.spans, at)
	}
	if err := c.readOlder(ctx, s.spans, why); err != nil || !s.undated || c.wantsUndated() {
		return err
	}
	return c.readKnownUndated(ctx)
}

// readOlder widens spans to whole parts, and reads those that the run has not read.
func (c *Reconciler) readOlder(ctx context.Context, spans []extract.Window, why string) error {
	before := c.sent()
	var todo []*reading.Window
	for _, w := range spans {
		w = reading.Widen(w, manifestsOf(c.Parts), false)
		if c.isRead(w) {
			continue
		}
		windows, err := c.planOlder(ctx, w, why)
		if err != nil {
			return err
		}
		todo = append(todo, windows...)
	}
	c.Older += len(todo)
	err := c.Reader.Read(ctx, todo)
	if c.planned > 0 { // first readings raise the budget for rereads, see again
		c.planned += c.sent() - before
	}
	return err
}

// readSpans reads spans again. Of the run's windows it reads what forget removes, and parts
// and gaps it reads as older spans.
func (c *Reconciler) readSpans(ctx context.Context, line []span, why string, forget func(context.Context, *reading.Window) error) error {
	var windows []*reading.Window
	var older []extract.Window
	for _, s := range line {
		if s.window != nil {
			windows = append(windows, s.window)
		} else {
			older = append(older, s.Window)
		}
	}
	if err := c.readAgain(ctx, windows, why, forget); err != nil {
		return err
	}
	return c.readOlder(ctx, older, why)
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
	line := c.timeline()
	at := slices.IndexFunc(line, func(s span) bool { return s.Holds(date) })
	if at < 0 || line[at].window != nil {
		return place, false
	}
	place = line[at].Window
	if unit := c.Reader.Def.FinestUnit(); line[at].gap && unit != extract.UnitNone {
		place = extract.Window{From: extract.Later(place.From, unit.Start(date)), To: extract.Earlier(place.To, unit.Next(date))}
	}
	return place, true
}

// span is a span of time that the datasets cover after this run: a window that the run reads, a
// part that it keeps, or a gap.
type span struct {
	extract.Window
	results int64           // number of results that are held in the span
	window  *reading.Window // the window that the run reads; nil for a kept part or a gap
	gap     bool            // set if neither a part nor a window covers the span
}

// datasetTime returns the time of all results that the datasets should hold.
func (c *Reconciler) datasetTime() extract.Window {
	return c.Interval.DatasetTime(c.Reader.Def, manifestsOf(c.Parts))
}

// timeline returns the spans of the first dataset that holds each result once; without such a
// dataset, the spans of the run's windows.
func (c *Reconciler) timeline() []span {
	for _, m := range wholeOf(c.Parts) {
		return c.timelineOf(m)
	}
	return c.timelineOf(nil)
}

// timelineOf returns the time of a dataset in order: the windows that the run
// reads, the parts that it keeps, and the gaps between them. Gaps are included only in a run
// that continues the datasets, because only there they belong to the datasets.
func (c *Reconciler) timelineOf(m *load.Manifest) (line []span) {
	whole := c.datasetTime()
	for _, w := range c.Windows {
		if w.Undated == nil && w.Planned.Window.Overlaps(whole) {
			line = append(line, span{Window: w.Planned.Window, results: w.Results(), window: w})
		}
	}
	_, kept := c.Replaced().Divide(m)
	for _, p := range kept {
		if w := windowOf(p); !p.Undated && w.Overlaps(whole) {
			// A part of several objects is one span.
			if n := len(line); n > 0 && line[n-1].window == nil && line[n-1].Window == w {
				line[n-1].results += p.Rows + p.Rejected
				continue
			}
			line = append(line, span{Window: w, results: p.Rows + p.Rejected})
		}
	}
	slices.SortStableFunc(line, func(a, b span) int { return a.From.Compare(b.From) })
	if !c.Changes.continues() {
		return line
	}
	at, filled := whole.From, make([]span, 0, len(line))
	for _, s := range append(line, span{Window: extract.Window{From: whole.To}}) {
		if at.Before(s.From) {
			filled = append(filled, span{Window: extract.Window{From: at, To: s.From}, gap: true})
		}
		filled, at = append(filled, s), s.To
	}
	return filled[:len(filled)-1]
}
