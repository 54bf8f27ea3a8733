package model

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
)

// Facts are what is known of a run when an output is judged.
type Facts struct {
	Start, End Moment
	// Oldest is the earliest moment of which rows may tell: that at which the
	// first run began that this one may have resumed from, or Start.
	Oldest  Moment
	Good    bool      // it ended with 0
	Torn    bool      // it was killed or says that a commit is recorded: that may be in the middle
	Ranges  []Reading // what it read; none where it could not say
	Undated bool      // results without a date belong to what it read
	// Follows tells that the run continued datasets, or replaced them. From is
	// where the time of their results begins.
	Follows  bool
	Replaces bool // the run replaced all parts
	Twin     bool // another run wrote too
	From     time.Time
	// Blind is the moment up to which nobody knew what had changed.
	Blind Moment
	// Unproven tells that a run did not ask the service what changed, or read all the same
	// other results than it counted. What comes meanwhile may then hide what goes.
	Unproven bool
	// Asked is the range that a single file has to hold. Its end may lie
	// anywhere from the one to the other, as the clock goes on. Open tells that no end
	// was asked for: then later results may be there too.
	AskedFrom, AskedTo, AskedToLatest time.Time
	Open                              bool
}

// Reading is a range that a run read.
type Reading struct {
	readback.Span
	Continued bool // with what an earlier run had read
	// Unread is the date from which on earlier runs left nothing to take over, or zero.
	Unread time.Time
}

// Judge tells what is wrong with an output after a run. before is what lay
// there before it, and after what the error of Look did not complain about.
func (d *Definition) Judge(o *Output, form *Form, before, after *Look, f Facts) error {
	if after.Manifest == nil {
		return d.withoutManifest(o, before, after, f)
	}
	if o.Dataset() && !after.Marked && !f.Torn && before.Marked {
		return fmt.Errorf("_SUCCESS of %s is gone, and nobody was killed", o)
	}
	if f.Good && o.Dataset() && !after.Marked {
		return fmt.Errorf("%s has no _SUCCESS after a run that ended well", o)
	}
	if !f.Good && after.Same(before, o) {
		return nil
	}
	for _, p := range after.Manifest.Parts {
		if o.Dataset() && o.DSN == "" && before.written(p) {
			return fmt.Errorf("%s of %s was another object before", p.Path, o)
		}
	}
	j := &judge{d: d, o: o, before: before, after: after, f: f, all: form.Histories()}
	if len(j.f.Ranges) == 0 {
		j.f.Ranges = []Reading{{Span: after.Manifest.Range, Continued: true}}
	}
	if !o.Dataset() {
		if err := j.asked(); err != nil {
			return err
		}
	}
	return errors.Join(j.rows(), j.complete(), j.followed(), j.untouched())
}

// withoutManifest judges an output that has none: nothing was committed yet, or
// a single file is being replaced.
func (d *Definition) withoutManifest(o *Output, before, after *Look, f Facts) error {
	switch {
	case f.Good:
		return fmt.Errorf("%s has no manifest after a run that ended well", o)
	case f.Torn && !after.Marked, after.SameData(before):
		return nil // one who globs a dataset is warned by the missing _SUCCESS
	}
	return fmt.Errorf("%s has no manifest and other data than before: %v", o, slices.Sorted(maps.Keys(after.Files)))
}

// judge is one look at one output.
type judge struct {
	d             *Definition
	o             *Output
	before, after *Look
	f             Facts
	all           map[int64]History
}

// asked makes sure that a single file holds the range that was asked for.
func (j *judge) asked() error {
	is := j.after.Manifest.Range
	if !j.f.Good {
		return nil
	}
	ends := !is.To.Before(j.f.AskedTo) && !is.To.After(j.f.AskedToLatest) || j.f.Open && (is.To.IsZero() || is.To.After(j.f.AskedTo))
	if !is.From.Equal(j.f.AskedFrom) || !ends {
		return fmt.Errorf("%s holds the range %s, and should hold that from %s to %s", j.o, is, j.f.AskedFrom, j.f.AskedTo)
	}
	return nil
}

// since is the earliest moment that rows of a part may tell of, read false for
// a part that the run left alone.
func (j *judge) since(p readback.Part) (since Moment, read bool) {
	if old, there := j.before.Files[p.Path]; !there || p.Check(old) != nil || !j.listed(p) {
		read = true
	}
	since = j.f.Oldest
	for _, r := range j.f.Ranges {
		if p.Undated || !r.Meets(p.Span) {
			continue
		}
		read = true
		if !r.Continued && r.Covers(p.Span) {
			since = j.f.Start
		}
	}
	return since, read
}

// untouched makes sure of the rows of a table: one that did not change was not written
// either, one that did tells by which run, and where vanished results stay, all do.
func (j *judge) untouched() error {
	by := []byte("run_id=" + j.after.Manifest.RunID + "\n")
	for name, is := range j.after.Files {
		was, there := j.before.Files[name]
		same := there && bytes.Equal(content(was), content(is))
		switch {
		case !strings.HasPrefix(name, "_rows/"):
		case same && !bytes.Equal(was, is) && !j.retyped():
			return fmt.Errorf("%s had %s written anew, which did not change:\n%s\n%s", j.o, name, was, is)
		case !same && j.o.Audit && !j.f.Twin && !bytes.Contains(is, by) && !j.retyped():
			return fmt.Errorf("%s has %s changed by another run than %s:\n%s", j.o, name, j.after.Manifest.RunID, is)
		}
	}
	for name := range j.before.Files {
		if _, there := j.after.Files[name]; !there && j.o.Soft && strings.HasPrefix(name, "_rows/") {
			return fmt.Errorf("%s keeps vanished results, and has no %s any more", j.o, name)
		}
	}
	return nil
}

// retyped tells whether a column has another type than before, for which the server writes
// the whole table anew.
func (j *judge) retyped() bool {
	return j.f.Replaces && slices.ContainsFunc(j.after.Manifest.Schema, func(is readback.Column) bool {
		return slices.ContainsFunc(j.before.Manifest.Schema, func(was readback.Column) bool { return was.Name == is.Name && was.Type != is.Type })
	})
}

// content is a row of a table without who wrote it.
func content(row []byte) []byte {
	_, of, _ := bytes.Cut(row, []byte("\n\n"))
	return of
}

// listed tells whether a part was one of the output before.
func (j *judge) listed(p readback.Part) bool {
	return j.before.Manifest != nil && slices.Contains(j.before.Manifest.Parts, p)
}

// during gives the states that a result had at any moment since one.
func (j *judge) during(id int64, since Moment) []State {
	var states []State
	for _, s := range j.all[id] {
		if s.During(since, j.f.End) {
			states = append(states, s)
		}
	}
	return states
}

// rows makes sure of every row that the run read: it is a state that its
// result had meanwhile, and lies where that belongs.
func (j *judge) rows() error {
	for _, id := range slices.Sorted(maps.Keys(j.after.Rows)) {
		read := j.after.Rows[id]
		since, fresh := j.since(read[0].Part)
		if !fresh {
			continue
		}
		var why []string
		ok := slices.ContainsFunc(j.during(id, since), func(s State) bool {
			problem := j.differs(read, s)
			why = append(why, problem)
			return problem == ""
		})
		if !ok {
			return fmt.Errorf("%s holds result %d in %s (%s, read since moment %d and up to %d), which is none of its states%s%s",
				j.o, id, read[0].Part.Path, read[0].Part.Span, since, j.f.End, told(j.all[id]), "\n  "+strings.Join(why, "\n  "))
		}
	}
	return nil
}

// differs tells in what rows of a result differ from a state, "" for nothing.
func (j *judge) differs(read []Read, s State) string {
	switch {
	case !j.d.Matches(s.Is):
		return "the search or view does not match that state"
	case !j.holds(read[0].Part, s):
		return fmt.Sprintf("that state is dated %s", s.Date)
	}
	if j.o.Explode != "" {
		return j.elements(read, s)
	}
	want, rejected, err := j.d.Row(s.Is, j.after.Manifest.Schema)
	if err != nil {
		return err.Error()
	}
	if rejected {
		return "that state is to be rejected"
	}
	return compare(read[0].Row, want)
}

// compare tells in what a row differs from another one.
func compare(got, want readback.Row) string {
	all := slices.Sorted(maps.Keys(got))
	for name := range want {
		if _, both := got[name]; !both {
			all = append(all, name)
		}
	}
	for _, name := range all {
		if g, w := got[name].String(), want[name].String(); g != w {
			return fmt.Sprintf("column %q is %.300s, and then was %.300s", name, g, w)
		}
	}
	return ""
}

// holds tells whether a state belongs where it lies.
func (j *judge) holds(p readback.Part, s State) bool {
	switch {
	case j.d.DatesIgnored:
		return true
	case j.o.Dataset() && p.Undated && !s.Date.IsZero():
		return j.maySeemUndated(s)
	case j.o.Dataset():
		return p.Holds(s.Date)
	case s.Date.IsZero():
		return j.f.Undated
	}
	is := j.after.Manifest.Range
	return is.Holds(s.Date) || j.f.Open && !is.To.IsZero() && !s.Date.Before(is.To.Time)
}

// maySeemUndated tells whether a dated state may lie among the results without a date. They
// keep what no other part holds: what got its date while the run read, or
// lies outside the range of a run that reads no more than that.
func (j *judge) maySeemUndated(s State) bool {
	return s.From >= j.f.Start ||
		!j.f.Follows && !slices.ContainsFunc(j.f.Ranges, func(r Reading) bool { return r.Holds(s.Date) })
}

// elements tells in what the rows of a child output differ from a state.
func (j *judge) elements(read []Read, s State) string {
	columns := j.after.Manifest.Schema
	want, rejected := j.d.children(s.Is, columns)
	if rejected || len(read) != len(want) {
		return fmt.Sprintf("there are %d elements, and then were %d (rejected: %t)", len(read), len(want), rejected)
	}
	for i, w := range want {
		if problem := compare(read[i].Row, w); problem != "" {
			return problem
		}
	}
	return ""
}

// complete makes sure that everybody is there who was in what the run read all
// the time.
func (j *judge) complete() error {
	for _, id := range slices.Sorted(maps.Keys(j.all)) {
		if len(j.after.Rows[id]) > 0 {
			continue
		}
		for _, r := range j.f.Ranges {
			wanted := func(s State) bool { return j.wanted(s, r) }
			unread := func(s State) bool { return wanted(s) && !r.Unread.IsZero() && !s.Date.Before(r.Unread) }
			since := j.f.Start
			if r.Continued && !j.all[id].Throughout(since, unread) {
				since = j.f.Oldest
			}
			if hidden := j.f.Unproven && len(j.during(id, since)) > 1 && j.lost(since); !hidden && j.all[id].Throughout(since, wanted) {
				return fmt.Errorf("%s lacks result %d, which was in the range %s all the time from moment %d to %d%s", j.o, id, r.Span, since, j.f.End, told(j.all[id]))
			}
		}
	}
	return nil
}

// wanted tells whether a state has to be in an output that a range was read
// for.
func (j *judge) wanted(s State, r Reading) bool {
	if !j.d.Matches(s.Is) || !j.d.hasRow(s.Is, j.o, j.after.Manifest.Schema) {
		return false
	}
	if j.d.DatesIgnored {
		return true
	}
	if s.Date.IsZero() {
		return j.f.Undated && !r.Continued && (!j.f.Unproven || !j.lost(j.f.Start))
	}
	// What a run reads is as wide as its datasets need; a file holds what was
	// asked for.
	return r.Holds(s.Date) && (j.o.Dataset() || j.after.Manifest.Range.Holds(s.Date))
}

// lost tells whether a result was deleted since a moment.
func (j *judge) lost(since Moment) bool {
	for _, h := range j.all {
		if last := h[len(h)-1]; last.To != Now && last.To > since {
			return true
		}
	}
	return false
}

// told lists the states of a result, for people.
func told(h History) string {
	var b strings.Builder
	for _, s := range h {
		fmt.Fprintf(&b, "\n  moments %d up to %d, dated %s", s.From, s.To, s.Date.Format(time.DateTime))
	}
	return b.String()
}
