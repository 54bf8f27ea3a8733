package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// settle is how far a range without an end stays behind the clock.
const settle = time.Minute

// judge tells what is wrong after a step.
func (l *life) judge(s *step, p *process) error {
	if err := errors.Join(l.mayEnd(s, p), l.unsaid("standard output", p.stdout.Bytes()), l.unsaid("standard error", p.stderr.Bytes())); err != nil {
		return err
	}
	return l.follow(s, p)
}

// broken is how a run says that the service breaks its specification.
var broken = regexp.MustCompile(`ignores |does not keep the order|formetl doctor`)

// mayEnd tells whether a process may have ended as it did.
func (l *life) mayEnd(s *step, p *process) error {
	for _, bad := range []string{"panic:", "goroutine ", "this is a bug", "WARNING: DATA RACE"} {
		if strings.Contains(p.stderr.String(), bad) {
			return fmt.Errorf("standard error holds %q", bad)
		}
	}
	switch {
	case p.code == 0, p.killed() && s.mayKill(), p.stopped.Load() && s.mayStop(p.code):
		return nil
	case p.code == 75 && (s.cloudy() || s.restless):
		return nil
	case p.code == 65 && l.breaks() && broken.MatchString(p.stderr.String()):
		return nil // it says what the service does, instead of writing other results than were asked for
	}
	return fmt.Errorf("it ended with %d (signalled: %t), which nothing explains", p.code, p.stopped.Load())
}

// follow judges the definition's outputs after a process, and remembers what the judgement
// of later ones needs.
func (l *life) follow(s *step, p *process) error {
	d := l.def
	f := d.facts(s, p)
	since := d.since()
	problems := make([]error, 0, len(d.outputs))
	for _, o := range d.outputs {
		problems = append(problems, l.judgeOutput(d, o, f, p))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	resumed := d.unfinished != never
	switch {
	case f.good, s.kind == stepClean && p.code == 0:
		d.unfinished, d.narrowed, d.undated = never, nil, false
	case f.reads:
		if !resumed {
			d.unfinished = p.start
		}
		if s.kind == stepRange {
			d.narrowed = append(d.narrowed, s.span)
		}
	}
	if !f.good {
		return nil
	}
	if p.report == nil {
		return errors.New("it ended well and wrote no report")
	}
	for _, r := range p.report.Forms {
		asked := r.Changes != nil && r.Changes.Method == load.MethodChanges
		switch unsorted := l.service.form.Faults.Value("ignore-sort") == "true" || d.byLookback; {
		case r.Error != "":
			return fmt.Errorf("it ended well, and the report says %q", r.Error)
		case d.counted() && !s.changed() && (r.Verified == nil || !r.Verified.Match):
			return errors.New("it ended well, and the report is not verified")
		case unsorted && (r.Verified != nil && r.Verified.Method == load.MethodChanges || asked && s.kind == stepRun):
			return errors.New("the report says that the service told what changed, and it was not, or cannot be, asked")
		case d.incremental && s.kind == stepRun && !resumed && !since.IsZero() && !asked && r.Range.From.After(since):
			return fmt.Errorf("it read from %s on, and the lookback begins at %s", r.Range.From, since.Format(time.DateTime))
		}
	}
	return nil
}

// judgeOutput judges one output.
func (l *life) judgeOutput(d *definition, o *output, f facts, p *process) error {
	before := cmp.Or(o.last, &look{})
	after, err := d.lookAt(o)
	o.last = after
	if err != nil {
		return err
	}
	if err := (&judge{facts: f, d: d, o: o, before: before, after: after, all: l.people.results}).judge(); err != nil {
		return err
	}
	for _, name := range after.needless(o) {
		if f.good && !slices.Contains(before.needless(o), name) {
			return fmt.Errorf("a run that ended well leaves %s at %s, which belongs to no part", name, o)
		}
	}
	if !o.dataset() {
		return nil
	}
	if after.manifest != nil && f.good {
		switch was, is := before.manifest, after.manifest.Changes; {
		case f.replaces:
			o.blind = never
		case f.follows && was != nil && (was.Changes == nil || was.Changes.KnownTo.IsZero()) && is != nil && is.Method != load.MethodChanges:
			o.blind = f.end
		}
	}
	return o.watermark(d, f, p)
}

// watermark makes sure that the watermark of a dataset goes on, that it passes neither the
// clock nor time that nobody read, and that a run that read everything anew brings it up to
// the present.
func (o *output) watermark(d *definition, f facts, p *process) error {
	if !f.good { // what it commits may be replaced before anybody looks
		o.read(d, p, f.asked.From, f.latest)
	}
	for _, r := range f.ranges {
		o.read(d, p, r.From, r.To)
	}
	m := o.last.manifest
	if m == nil {
		return nil
	}
	o.read(d, p, m.Range.From.Time, m.Range.To.Time)
	mark, was := m.Watermark.Time, o.mark
	o.mark = mark
	switch brief := mark.Format(time.DateTime); {
	case mark.After(o.reach):
		return fmt.Errorf("the watermark of %s is %s, and without a gap it was read up to %s", o, brief, o.reach.Format(time.DateTime))
	case f.reads && mark.Before(was):
		return fmt.Errorf("the watermark of %s fell from %s to %s", o, was.Format(time.DateTime), brief)
	case f.good && f.follows && d.unfinished == never && mark.Before(f.asked.To.Add(-5*time.Second)):
		return fmt.Errorf("the watermark of %s is %s, and the run read up to %s", o, brief, f.asked.To.Format(time.DateTime))
	}
	return nil
}

// read notes that a process may have read a range of a dataset, up to what was settled then.
func (o *output) read(d *definition, p *process, from, to time.Time) {
	o.reach = extract.Later(o.reach, d.from)
	if !from.After(o.reach) {
		o.reach = extract.Later(o.reach, extract.Earlier(to, d.settled(p)))
	}
}

// settled is the time before which a process could take results to be complete.
func (d *definition) settled(p *process) time.Time {
	return wall(p.began.Add(p.took-settle), d.zone).Add(time.Second)
}

// facts are what is known of what a process did.
func (d *definition) facts(s *step, p *process) facts {
	// A run that is stopped while it finishes another one's commit says so.
	torn := p.killed() || strings.Contains(p.stderr.String(), "; the next run does the rest")
	f := facts{start: p.start, end: p.end, oldest: p.start, reads: s.reads(), good: s.reads() && p.code == 0, torn: torn}
	if d.unfinished != never {
		f.oldest = d.unfinished
	}
	if !f.reads { // it commits nothing of its own, but may finish what was recorded
		f.undated = d.undated
		return f
	}
	if p.report != nil {
		for _, r := range p.report.Forms {
			if r.Error == "" { // else it committed nothing, or not everything
				f.unproven = f.unproven || r.Verified == nil || !r.Verified.Match || r.Verified.Method != load.MethodChanges
				f.ranges = append(f.ranges, reading{spanOf(r.Range), r.Continued != "" || r.Kept > 0 || !f.good})
			}
		}
	}
	f.asked = extract.Window{From: d.from, To: d.to}
	if s.kind == stepRange {
		f.asked = s.span
	}
	f.replaces = s.kind == stepFull
	f.follows = d.incremental && (s.kind == stepRun || f.replaces)
	f.undated = f.asked == extract.Window{} && (f.replaces || !d.incremental || d.beginning())
	d.undated = d.undated || f.undated
	f.undated = f.undated || !f.good && d.undated // it may have finished the commit of another one
	if f.latest = f.asked.To; f.latest.IsZero() {
		f.open = true
		f.asked.To = wall(p.began.Add(-settle), d.zone)
		f.latest = d.settled(p)
	}
	return f
}

// since is where the next incremental run is to begin that does not know what changed, by
// the wall clock of the account; zero where an output has no watermark.
func (d *definition) since() (since time.Time) {
	if d.beginning() {
		return since
	}
	for i, o := range d.outputs {
		if mark := o.last.manifest.Watermark.Time; i == 0 || mark.Before(since) {
			since = mark
		}
	}
	return extract.Later(since.Add(-time.Duration(d.lookback)*time.Hour), d.from)
}

// beginning tells whether a run of the definition reads as the first one does:
// an output has no watermark.
func (d *definition) beginning() bool {
	return slices.ContainsFunc(d.outputs, func(o *output) bool {
		return o.last == nil || o.last.manifest == nil || o.last.manifest.Watermark.IsZero()
	})
}
