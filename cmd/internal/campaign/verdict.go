package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/campaign/model"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/pgserver"
)

// settle is how far a range without an end stays behind the clock.
const settle = time.Minute

// judge tells what is wrong after a step.
func (l *life) judge(s *step, outcomes []*outcome) error {
	for _, o := range outcomes {
		if err := errors.Join(l.mayEnd(s, o), l.key.unsaid(o), apiKey(pgserver.Password).unsaid(o)); err != nil {
			return err
		}
	}
	if err := l.overspent(s, outcomes[0]); err != nil {
		return err
	}
	last := outcomes[0]
	if len(outcomes) == 2 {
		if second := outcomes[1]; last.code != 0 || second.code == 0 && l.def.wroteLast(second) {
			last = second
		}
		if last.code != 0 {
			return fmt.Errorf("two runs at once ended with %d and %d: one of them was to go on", outcomes[0].code, outcomes[1].code)
		}
	}
	if s.kind == stepExport {
		err := l.look(l.export, s, last)
		return errors.Join(err, l.def.untouched())
	}
	return errors.Join(l.look(l.def, s, last), l.export.untouched())
}

// wroteLast tells whether a process is the one whose run the definition's first
// output is of: two runs may both end well, one after the other.
func (d *definition) wroteLast(o *outcome) bool {
	after, err := d.Look(&d.outputs[0].Output)
	return err == nil && after.Manifest != nil && o.report != nil && after.Manifest.RunID == o.report.RunID
}

// mayEnd tells whether a process may have ended as it did.
func (l *life) mayEnd(s *step, o *outcome) error {
	for _, bad := range []string{"panic:", "goroutine ", "this is a bug", "WARNING: DATA RACE"} {
		if strings.Contains(o.stderr, bad) {
			return fmt.Errorf("standard error holds %q", bad)
		}
	}
	switch {
	case o.killed && s.killed(), o.stopped && s.stopped(o.code), o.code == 0:
		return nil
	case o.code == 75 && (s.cloudy() || s.twin || s.restless):
		return nil
	case o.code == 75 && s.perDay > 0 && s.perDay-l.spent(o)-o.requests < 40:
		return nil // a run does not begin what it has too few requests for
	case o.code == 65 && l.breaks() && l.mayRefuse(s) && broken.MatchString(o.stderr):
		return nil // it says what the service does, instead of writing other results than were asked for
	case o.code == 65 && l.miscounts() && (s.changed() || l.def.unfinished != none) && broken.MatchString(o.stderr):
		return nil // a change made wrong headers agree once, so that they were believed, perhaps by the run before
	}
	for _, d := range l.damages {
		if d.explains(o.code) {
			return nil
		}
	}
	return fmt.Errorf("it ended with %d (killed: %t, signalled: %t), which nothing explains", o.code, o.killed, o.stopped)
}

// spent is how many requests of the day before a process are in its budget.
func (l *life) spent(o *outcome) (n int) {
	for _, earlier := range l.sent {
		if earlier.at.After(o.began.Add(-24 * time.Hour)) {
			n += earlier.requests
		}
	}
	return n
}

// overspent makes sure that a process, or two at once, kept to the budget of a day.
func (l *life) overspent(s *step, o *outcome) error {
	if s.kind == stepExport {
		return nil // it has its own
	}
	requests := 0
	for _, q := range l.service.form.Log() {
		if q.Fault != formservice.FaultReset { // a lost connection has the same request come twice
			requests++
		}
	}
	allowed := max(0, s.perDay-l.spent(o))
	l.sent = append(l.sent, sent{o.began, requests})
	if s.perDay > 0 && requests > allowed {
		return fmt.Errorf("it sent %d requests, and %d were left of the day", requests, allowed)
	}
	return nil
}

// broken is how a run says that the service breaks its specification.
var broken = regexp.MustCompile(`ignores |does not keep the order|formetl doctor`)

// mayRefuse tells whether a step may end because of what the service ignores.
func (l *life) mayRefuse(s *step) bool { return !l.copes() || s.kind == stepRange }

// look judges the outputs of a definition after a process of it.
func (l *life) look(d *definition, s *step, o *outcome) error {
	// A run that is stopped while it finishes another one's commit says so.
	torn := o.killed || strings.Contains(o.stderr, "it is recorded, and the next run finishes it")
	f := model.Facts{Start: o.start, End: o.end, Oldest: o.start, Good: o.code == 0 && !o.killed, Torn: torn, Twin: s.twin}
	if d.unfinished != none {
		f.Oldest = d.unfinished
	}
	reads := s.reads() && !strings.Contains(o.stderr, "there are no dead letters")
	if reads {
		d.facts(s, o, &f)
		d.undated = d.undated || f.Undated
		f.Undated = f.Undated || !f.Good && d.undated // it may have finished the commit of another one
	} else {
		f.Good = false // it commits nothing of its own, but may finish what was recorded
		f.Undated = d.undated
	}
	since := d.since()
	if d.unfinished != none {
		since = time.Time{} // it may finish an earlier commit first, with a watermark of its own
	}
	problems := make([]error, 0, len(d.outputs))
	for _, out := range d.outputs {
		if reads && (!f.Good || s.twin) { // what it commits may be replaced before anybody looks
			out.read(d.from, f.AskedFrom, f.AskedToLatest)
		}
		problems = append(problems, d.lookAt(l.people.form, out, f, reads))
	}
	if err := errors.Join(append(problems, l.marks(d, s, o, f))...); err != nil {
		return err
	}
	switch {
	case f.Good, !reads && o.code == 0 && s.kind == stepClean:
		d.unfinished, d.narrowed, d.undated, d.unread = none, nil, false, time.Time{}
	case d.unfinished == none && reads:
		d.unfinished = o.start
	}
	if d.unfinished != none && reads {
		d.unread = later(d.unread, d.settled(o))
	}
	if d.unfinished != none && s.kind == stepRange {
		d.narrowed = append(d.narrowed, s.span())
	}
	if f.Good {
		return errors.Join(d.reported(s, o), l.method(d, s, o), d.lookedBack(s, o, since))
	}
	return nil
}

// since is where the next incremental run is to begin that does not know what changed, by
// the wall clock of the account; zero where an output has no watermark.
func (d *definition) since() (since time.Time) {
	if d.beginning() {
		return since
	}
	for i, out := range d.outputs {
		if mark := out.last.Manifest.Watermark.Time; i == 0 || mark.Before(since) {
			since = mark
		}
	}
	return later(since.Add(-time.Duration(d.lookback)*time.Hour), d.from)
}

// lookedBack makes sure that a run that did not know what had changed read the lookback.
func (d *definition) lookedBack(s *step, o *outcome, since time.Time) error {
	if !d.incremental || s.kind != stepRun || since.IsZero() {
		return nil
	}
	for _, r := range o.report.Forms {
		if r.Changes != nil && r.Changes.Method != model.MethodChanges && r.Range.From.After(since) {
			return fmt.Errorf("it read the range %s, and the lookback begins at %s", r.Range, since.Format(time.DateTime))
		}
	}
	return nil
}

// ahead is how far the service's header Date is ahead of the clock of a step's machine.
func (l *life) ahead(s *step) time.Duration { return l.service.form.Faults.DateHeaderOff - s.skew }

// present are the earliest and the latest watermark that clocks let a process come to. It
// does not pass the service's clock, where that is known to be behind by more than a minute.
// An answer may have been on its way for long, so that its header Date was old.
func (l *life) present(s *step, o *outcome) (earliest, latest time.Time) {
	behind := min(0, l.ahead(s)+time.Second) // the header has no fractions of a second
	if l.service.form.Faults.NoDateHeader || behind >= -time.Minute {
		behind = 0
	}
	zone := l.people.zone
	began, ended := wall(o.began.Add(behind), zone), wall(o.began.Add(o.took+behind), zone)
	earliest = wall(o.began.Add(min(0, l.ahead(s))), zone)
	if other := wall(o.began, zone).Add(min(0, l.ahead(s))); other.Before(earliest) {
		earliest = other // clocks were changed in between
	}
	// Dates of answers are cut to seconds, and on a busy machine they are on their way for some.
	return earliest.Add(-settle - o.took - 5*time.Second), later(began, ended).Add(-settle + time.Second)
}

// marks makes sure of the watermarks of datasets: they go on, they do not pass the clocks,
// and a run that read everything anew comes up to the present.
func (l *life) marks(d *definition, s *step, o *outcome, f model.Facts) error {
	earliest, latest := l.present(s, o)
	for _, out := range d.outputs {
		if !s.reads() {
			out.mark = time.Time{} // it may have been reset
		}
		if !out.Dataset() || out.last == nil || out.last.Manifest == nil || out.damaged {
			continue
		}
		mark, before := out.last.Manifest.Watermark.Time, out.mark
		out.mark = mark
		if !s.reads() {
			continue
		}
		switch out.latest = later(out.latest, latest); {
		case mark.Before(before):
			return fmt.Errorf("the watermark of %s fell from %s to %s", &out.Output, before.Format(time.DateTime), mark.Format(time.DateTime))
		case mark.After(out.latest):
			return fmt.Errorf("the watermark of %s is %s, and clocks had come to %s", &out.Output, mark.Format(time.DateTime), out.latest.Format(time.DateTime))
		case f.Good && f.Follows && d.unfinished == none && mark.Before(earliest):
			return fmt.Errorf("the watermark of %s is %s, and clocks had come to %s", &out.Output, mark.Format(time.DateTime), earliest.Format(time.DateTime))
		}
	}
	return nil
}

// later is the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// facts are what is known of what a process read.
func (d *definition) facts(s *step, o *outcome, f *model.Facts) {
	if o.report != nil {
		for _, r := range o.report.Forms {
			if r.Error != "" {
				continue // it committed nothing, or not everything
			}
			f.Unproven = f.Unproven || r.Verified == nil || !r.Verified.Match || r.Verified.Method != model.MethodChanges
			reading := model.Reading{Span: r.Range, Continued: r.Continued != "" || r.Kept > 0 || !f.Good}
			if f.Good && !d.counted() && !r.Range.To.IsZero() { // counts may agree by chance, and the next run reads it
				reading.Unread = d.unread
			}
			f.Ranges = append(f.Ranges, reading)
		}
	}
	from, to := d.from, d.to
	if s.kind == stepRange {
		from, to = s.from, s.to
	}
	everything := from.IsZero() && to.IsZero()
	switch s.kind {
	case stepFull:
		f.Replaces, f.Undated = true, everything
	case stepReplay:
		// It reads the windows of rejected results. A single file is made anew, whole, and
		// a rejected result without a date lies in no window: for both it reads everything.
		rejected := slices.ContainsFunc(d.outputs, (*output).rejectsUndated)
		f.Undated = everything && (rejected || !d.datasets())
		f.Replaces = f.Undated && d.incremental
	default:
		f.Undated = everything && (!d.incremental || d.beginning())
	}
	f.From, f.Follows = d.from, d.incremental && (s.kind == stepRun || f.Replaces)
	f.AskedFrom, f.AskedTo, f.AskedToLatest = from, to, to
	if to.IsZero() {
		f.Open = true
		f.AskedTo = wall(o.began.Add(-settle), d.Zone)
		f.AskedToLatest = d.settled(o)
	}
}

// settled is the time before which a process could take results to be complete.
func (d *definition) settled(o *outcome) time.Time {
	return wall(o.began.Add(o.took-settle), d.Zone).Add(time.Second)
}

// datasets tells whether the definition has no single files.
func (d *definition) datasets() bool {
	return !slices.ContainsFunc(d.outputs, func(o *output) bool { return !o.Dataset() })
}

// rejectsUndated tells whether the dead letters of a dataset name a result without a date.
func (o *output) rejectsUndated() bool { return o.last != nil && o.last.RejectsUndated() }

// beginning tells whether a run of the definition reads as the first one does:
// an output has no watermark.
func (d *definition) beginning() bool {
	for _, out := range d.outputs {
		if out.last == nil || out.last.Manifest == nil || out.last.Manifest.Watermark.IsZero() {
			return true
		}
	}
	return false
}

// lookAt judges one output.
func (d *definition) lookAt(form *model.Form, out *output, f model.Facts, reads bool) error {
	before := out.last
	if before == nil {
		before = &model.Look{}
	}
	after, err := d.Look(&out.Output)
	if after != nil {
		out.last = after
	}
	switch {
	case out.damaged && !f.Good:
		return nil // nobody promised anything of it
	case err != nil:
		return err
	case !reads && after.Manifest != nil && before.Manifest != nil && after.Manifest.RunID == before.Manifest.RunID:
		return out.kept(before, after)
	}
	f.Blind = out.blind
	if err := d.Judge(&out.Output, form, before, after, f); err != nil {
		return err
	}
	for _, name := range after.Orphans() {
		if f.Good && !out.damaged && !slices.Contains(before.Orphans(), name) {
			return fmt.Errorf("a run that ended well leaves %s at %s, which belongs to no part", name, &out.Output)
		}
	}
	out.damaged = false
	if f.Good {
		out.learn(before, after, f)
	}
	return out.gapless(d.from, after, f)
}

// gapless makes sure that the watermark of a dataset that begins at a time lies behind no
// time that nobody read.
func (o *output) gapless(begin time.Time, after *model.Look, f model.Facts) error {
	if after.Manifest == nil {
		return nil
	}
	for _, r := range append(f.Ranges, model.Reading{Span: after.Manifest.Range}) {
		o.read(begin, r.From.Time, r.To.Time)
	}
	if mark := after.Manifest.Watermark; mark.After(o.reach) {
		return fmt.Errorf("the watermark of %s is %s, and without a gap it was read up to %s", &o.Output, mark, o.reach.Format(time.DateTime))
	}
	return nil
}

// read notes that a range may have been read of a dataset that begins at a time.
func (o *output) read(begin, from, to time.Time) {
	if o.reach.Before(begin) {
		o.reach = begin
	}
	if !from.After(o.reach) && to.After(o.reach) {
		o.reach = to
	}
}

// learn notes whether a run knew what had changed before its lookback.
func (o *output) learn(before, after *model.Look, f model.Facts) {
	switch was, is := before.Manifest, after.Manifest.Changes; {
	case f.Replaces:
		o.blind = none
	case f.Follows && was != nil && (was.Changes == nil || was.Changes.KnownTo.IsZero()) && is != nil && is.Method != model.MethodChanges:
		o.blind = f.End
	}
}

// kept makes sure that data were left alone. Look has made sure that the parts
// are what the manifest says; what a dead run had superseded may go.
func (o *output) kept(before, after *model.Look) error {
	same := after.SameData(before)
	if after.Manifest != nil && before.Manifest != nil {
		same = slices.Equal(after.Manifest.Parts, before.Manifest.Parts)
	}
	if !same {
		return fmt.Errorf("the data of %s are others than before, and nobody wrote to them", &o.Output)
	}
	return nil
}

// untouched makes sure that a definition's outputs are as they were.
func (d *definition) untouched() error {
	for _, out := range d.outputs {
		if out.last == nil || out.damaged {
			continue
		}
		after, err := d.Look(&out.Output)
		if err == nil {
			err = out.kept(out.last, after)
		}
		if err != nil {
			return fmt.Errorf("by somebody else: %w", err)
		}
	}
	return nil
}

// reported makes sure that a run that ended well says so, and that it was verified where
// nothing changed meanwhile.
func (d *definition) reported(s *step, o *outcome) error {
	if o.report == nil {
		return errors.New("it ended well and wrote no report")
	}
	for _, r := range o.report.Forms {
		if r.Error != "" {
			return fmt.Errorf("it ended well, and the report says %q", r.Error)
		}
		if counted := d.counted() && !s.changed(); counted && (r.Verified == nil || !r.Verified.Match) {
			return fmt.Errorf("it ended well, and the report of the range %s is not verified", r.Range)
		}
	}
	return nil
}

// method makes sure that a run says honestly how it found what had changed. Where
// the service does not sort, nobody may say that it told; where it does, a run
// that continues a dataset must have used it.
func (l *life) method(d *definition, s *step, o *outcome) error {
	tells := l.tells(d)
	for _, r := range o.report.Forms {
		verified, found, why := "", "", ""
		if r.Verified != nil {
			verified = r.Verified.Method
		}
		if r.Changes != nil {
			found, why = r.Changes.Method, r.Changes.Reason
		}
		unsorted := l.service.form.Faults.IgnoreSort || d.byLookback
		if unsorted && (verified == model.MethodChanges || found == model.MethodChanges && s.kind == stepRun) {
			return fmt.Errorf("the report says that it was verified by %q and changes were found by %q, and the service was not, or cannot be, asked", verified, found)
		}
		quiet := !s.changed() && s.kind == stepRun && !strings.Contains(why, "more than ") // changes than it reads
		// Changes of one second may fill a small page, and more than that.
		quiet = quiet && (l.service.form.Faults.PageCap == 0 || !strings.Contains(why, "changed while the feed"))
		quiet = quiet && why != "" // else the manifest knew no moment
		// A run that resumes may have taken over what was deleted since.
		quiet = quiet && !strings.Contains(why, "is gone now")
		// What a range of its own left out does not count as changed since.
		quiet = quiet && (!d.ranged || !strings.Contains(why, "does not name it"))
		if d.incremental && quiet && tells && found == "lookback" {
			return fmt.Errorf("the service sorts, and changes were found by %q: %s", found, why)
		}
	}
	d.ranged = s.kind == stepRange || d.ranged && s.kind != stepRun && s.kind != stepFull
	return nil
}
