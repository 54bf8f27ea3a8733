package yeartest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
)

// verdict is what the test knows of a dataset after a run.
type verdict struct {
	w             *world
	r             *run
	before, after *dataset
	did           bool // the run brought the form to its end
	entries       []formReport
	origin        origin
	own           span // the run's own range: see judge
	checked       span // what the dataset is held to
	begins        bool // the run read everything
	knew          bool // the run knew what had changed, so it is held to everything
	zone          *time.Location
}

// judge looks at a dataset after a run, and tells what is wrong with it. The
// run's own range begins at the watermark less the lookback; or before that,
// where the run before resumed from an earlier one: what was changed since that
// one began is to be picked up too. A run that knew what had changed is held to
// all that the dataset is to hold, of any age.
func (w *world) judge(r *run, d *dataset) (*verdict, error) {
	v := &verdict{w: w, r: r, before: d, did: r.did(d.form.name), entries: r.report.of(d.form.name), zone: w.people.zone}
	after, changed, err := d.look(v.zone)
	if err != nil {
		return nil, err
	}
	v.after, v.origin = after, w.originOf(r, d)
	v.own.to = after.manifest.Watermark.Time
	if v.did {
		v.own.to = maxTime(v.own.to, v.asked(r.told))
	}
	v.begins = d.manifest.Watermark.IsZero() || slices.Contains(r.flags, "--full")
	v.knew = v.did && w.way.follows() && v.entries[len(v.entries)-1].knew()
	if !v.begins {
		v.own.from = d.manifest.Watermark.Add(-lookback)
		if !d.fresh.IsZero() && d.fresh.Before(d.manifest.Watermark.Time) {
			v.own.from = d.fresh.Add(-lookback)
		}
	}
	if v.checked = v.own; v.knew {
		v.checked.from = time.Time{}
	}
	if v.did || changed {
		after.fresh = after.manifest.Watermark.Time
		if v.origin.start != r.start {
			after.fresh = v.asked(v.origin.told)
		}
		err = errors.Join(v.watermark(), v.states(), v.complete())
	}
	return v, err
}

// originOf tells since when what a run committed may have been read: that of a
// run that resumes from another is that one's beginning.
func (w *world) originOf(r *run, d *dataset) origin {
	own := origin{r.start, r.told, r.told.Add(r.took)}
	entries := r.report.of(d.form.name)
	if len(entries) == 0 && d.pending != nil {
		return *d.pending // it may have resumed from something, and could not tell
	}
	for _, e := range entries {
		if e.Continued == "" {
			continue
		}
		if earlier := d.pipeline.find(e.Continued); earlier != nil && earlier.origins[d.form.name] != nil {
			return *earlier.origins[d.form.name]
		}
		if d.pending != nil {
			return *d.pending
		}
	}
	return own
}

// find gives the run of an id, which begins with its time; nil for none.
func (p *pipeline) find(id string) *run {
	const layout = "20060102T150405Z"
	if len(id) < len(layout) {
		return nil
	}
	at, err := time.Parse(layout, id[:len(layout)])
	if err != nil {
		return nil
	}
	for _, r := range slices.Backward(p.recent) {
		if after := at.Sub(r.told); after > -time.Second && after <= r.took+time.Second {
			return r
		}
	}
	return nil
}

// watermark tells what is wrong with the watermark: it never falls, and never
// passes the end of the range that the clock gave the run.
func (v *verdict) watermark() error {
	was, is := v.before.manifest.Watermark.Time, v.after.manifest.Watermark.Time
	least, most := v.asked(v.r.told), v.asked(v.r.told.Add(v.r.took+time.Second))
	if least.After(most) { // the clock is set back right now
		least, most = most, least
	}
	if end := v.asked(v.origin.ended.Add(time.Second)); end.After(most) {
		most = end // what it took over was read up to then
	}
	if begun := v.asked(v.origin.told); begun.Before(least) {
		least = begun // what it took over was read then, and may have been edited since
	}
	switch {
	case is.Before(was):
		return fmt.Errorf("the watermark fell from %s to %s", was, is)
	case is.After(most) && is.After(was):
		return fmt.Errorf("the watermark is %s, beyond %s, which was now less the settling time", is, most)
	case v.did && is.Before(least):
		return fmt.Errorf("the watermark is %s, and should be %s", is, least)
	}
	return nil
}

// asked is the end of the range of a run that begins at an instant.
func (v *verdict) asked(told time.Time) time.Time {
	return v.w.people.wall(told).Add(-settle)
}

// since is the earliest moment that the rows of a span may tell of.
func (v *verdict) since(s span) moment {
	if !v.did {
		return v.origin.start
	}
	if v.knew && v.entries[len(v.entries)-1].Continued == "" {
		return v.r.start
	}
	for _, e := range v.entries {
		if e.Continued == "" && !s.from.Before(e.Range.From.Time) && !s.to.After(e.Range.To.Time) {
			return v.r.start
		}
	}
	if v.own.from.Before(s.to) || v.before.pending == nil {
		return v.origin.start
	}
	return v.before.pending.start // a commit that was finished before the run's own
}

// states makes sure of every row that was read by the run, or should have been:
// it is a state that its result had meanwhile, in the part of its date.
func (v *verdict) states() error {
	for _, p := range v.after.parts {
		if !p.fresh && !v.checked.meets(p.Part) && (!v.knew || !p.Undated) {
			continue
		}
		if v.after.manifest.staleAt(p.Span) && !p.fresh {
			continue
		}
		since := v.since(span{p.From.Time, p.To.Time})
		for _, r := range p.rows {
			h := v.after.form.results[r.id]
			ok := slices.ContainsFunc(h, func(s state) bool {
				return s.During(since, v.r.end) && s.Is == r.text && p.Holds(s.Date)
			})
			if _, there := h.Current(); !ok && !there && !p.fresh && (len(v.after.manifest.Changes.Stale) > 0 || v.after.form.deletedSince(v.r.start)) {
				continue // counts tell of deletions in a run without stale parts and without further deletions
			}
			if !ok {
				return fmt.Errorf("%s, read since moment %d and up to %d, holds result %d as\n  %s\nwhich was%s", p.Path, since, v.r.end, r.id, r.text, told(h))
			}
		}
	}
	return nil
}

// complete makes sure that every result is there that was in the run's own
// range all the time.
func (v *verdict) complete() error {
	look := func(ids map[int64]bool) error {
		for id := range ids {
			h := v.after.form.results[id]
			s, _ := h.Current()
			if second := (readback.Span{From: readback.WallTime{Time: s.Date}, To: readback.WallTime{Time: s.Date.Add(time.Second)}}); v.after.manifest.staleAt(second) {
				continue
			}
			since := v.since(span{s.Date, s.Date.Add(time.Second)})
			if v.after.rows[id] == nil && h.Throughout(since, func(s state) bool { return v.checked.holds(s.Date) }) {
				return fmt.Errorf("result %d is missing; from moment %d to %d, and from %s to %s, it was%s", id, since, v.r.end, v.checked.from, v.checked.to, told(h))
			}
		}
		return nil
	}
	if v.checked.from.IsZero() {
		for _, ids := range v.after.form.days {
			if err := look(ids); err != nil {
				return err
			}
		}
		return nil
	}
	for day := dayOf(v.checked.from); day.Before(v.checked.to); day = day.AddDate(0, 0, 1) {
		if err := look(v.after.form.days[day]); err != nil {
			return err
		}
	}
	return nil
}

// told lists the states of a result, for people.
func told(h states) string {
	if len(h) == 0 {
		return " never there"
	}
	text := ""
	for _, s := range h {
		text += fmt.Sprintf("\n  from %d up to %d, dated %s: %s", s.From, s.To, s.Date.Format(wallLayout), s.Is)
	}
	return text
}

// equal tells what a dataset lacks, or has too much of, to be all that the
// service holds.
func (d *dataset) equal() error {
	n := 0
	for id, h := range d.form.results {
		s, ok := h.Current()
		if !ok {
			continue
		}
		n++
		if r := d.rows[id]; r == nil || r.text != s.Is {
			return fmt.Errorf("in the end result %d is %+v, and should be%s", id, r, told(h))
		}
	}
	if n != len(d.rows) {
		return fmt.Errorf("in the end there are %d rows for %d results", len(d.rows), n)
	}
	return nil
}

// mayEnd tells whether a run may end as it did.
func (r *run) mayEnd(spent bool) bool {
	switch {
	case r.killed:
		return r.fault != "" || r.killAt > 0
	case r.outage != inReach:
		return r.code == 75 || r.code == 0 && r.outageAt > 0 // it came too late
	case r.code == 75:
		return r.storm > 0 || spent
	}
	return r.code == 0
}
