package reconcile

import (
	"context"
	"log/slog"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
)

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
