package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// facts are what is known of a process when its outputs are judged.
type facts struct {
	start, end moment
	// oldest is the earliest moment of which rows may tell: that at which the
	// first run began that this one may have resumed from, or start.
	oldest   moment
	reads    bool      // it reads results, and commits what it reads
	good     bool      // it reads, and ended with 0
	torn     bool      // it was killed or says that a commit is recorded: that may be in the middle
	ranges   []reading // what it read; none where it could not say
	undated  bool      // results without a date belong to what it read
	follows  bool      // it continued datasets, or replaced them
	replaces bool      // it replaced all parts
	// unproven tells that the run did not ask the service what changed, or read all the same
	// other results than it counted. What comes meanwhile may then hide what goes.
	unproven bool
	// asked is the range that a single file has to hold. Its end may lie anywhere up to
	// latest, as the clock goes on. open tells that no end was asked for: then later results
	// may be there too.
	asked  extract.Window
	latest time.Time
	open   bool
}

// reading is a range that a run read.
type reading struct {
	extract.Window
	continued bool // with what an earlier run had read
}

// judge is one look at one output after a process. It holds formetl to this promise: every row that
// the run read is a state that its result had between the run's oldest reading and its
// end; whoever was in the range all that time is there; nobody is there twice;
// rows of parts that the run did not read are as they were.
type judge struct {
	facts
	d             *definition
	o             *output
	before, after *look
	all           map[int64]history
}

// judge tells what is wrong. What is wrong with the output in itself, lookAt has said.
func (j *judge) judge() error {
	m := j.after.manifest
	switch {
	case m == nil && j.good:
		return fmt.Errorf("%s has no manifest after a run that ended well", j.o)
	case m == nil && (j.torn && !j.after.marked || maps.EqualFunc(j.before.data(j.o), j.after.data(j.o), bytes.Equal)):
		return nil // one who globs a dataset is warned by the missing _SUCCESS
	case m == nil:
		return fmt.Errorf("%s has no manifest and other data than before: %v", j.o, slices.Sorted(maps.Keys(j.after.files)))
	case j.o.dataset() && !j.after.marked && (j.good || !j.torn && j.before.marked):
		return fmt.Errorf("%s has no _SUCCESS, and nobody was killed", j.o)
	case !j.good && reflect.DeepEqual(m, j.before.manifest):
		return nil
	case !j.reads && j.before.manifest != nil && j.before.manifest.RunID == m.RunID:
		if !slices.Equal(m.Parts, j.before.manifest.Parts) { // what a dead run had superseded may go
			return fmt.Errorf("the data of %s are others than before, and nobody wrote to them", j.o)
		}
		return nil
	}
	for _, p := range m.Parts {
		was := j.beforePart(p.Path)
		if was != nil && was.SHA256 != p.SHA256 && j.o.dataset() && j.o.dsn == "" {
			return fmt.Errorf("%s of %s was another object before", p.Path, j.o)
		}
	}
	if len(j.ranges) == 0 {
		j.ranges = []reading{{spanOf(m.Range), true}}
	}
	return errors.Join(j.holdsAsked(), j.known(), j.complete(), j.followed(), j.untouched())
}

// beforePart is the part of a name that was there before, nil for none.
func (j *judge) beforePart(name string) *load.Part {
	if m := j.before.manifest; m != nil {
		if i := slices.IndexFunc(m.Parts, func(p load.Part) bool { return p.Path == name }); i >= 0 {
			return &m.Parts[i]
		}
	}
	return nil
}

// holdsAsked makes sure that a single file holds the range that was asked for.
func (j *judge) holdsAsked() error {
	is := j.after.manifest.Range
	ends := !is.To.Before(j.asked.To) && !is.To.After(j.latest) || j.open && (is.To.IsZero() || is.To.After(j.asked.To))
	if j.good && !j.o.dataset() && (!is.From.Equal(j.asked.From) || !ends) {
		return fmt.Errorf("%s holds the range from %s to %s, and should hold that of %s", j.o, is.From, is.To, j.asked)
	}
	return nil
}

// since is the earliest moment that rows of a part may tell of, fresh false for
// a part that the run left alone.
func (j *judge) since(p load.Part) (since moment, fresh bool) {
	was := j.beforePart(p.Path)
	since, fresh = j.oldest, was == nil || *was != p
	for _, r := range j.ranges {
		if p.Undated || !r.Overlaps(windowOf(p)) {
			continue
		}
		fresh = true
		covers := !p.From.Before(r.From) && (r.To.IsZero() || !p.To.IsZero() && !p.To.After(r.To))
		if !r.continued && covers {
			since = j.start
		}
	}
	return since, fresh
}

// known makes sure of every row that the run read: it is a state that its
// result had meanwhile, and lies where that belongs.
func (j *judge) known() error {
	for _, id := range slices.Sorted(maps.Keys(j.after.rows)) {
		read := j.after.rows[id]
		since, fresh := j.since(read[0].part)
		if !fresh {
			continue
		}
		why, known := "", false
		for _, s := range j.all[id].between(since, j.end) {
			differs := j.differs(read, s)
			why, known = why+"\n  "+differs, known || differs == ""
		}
		if !known {
			return fmt.Errorf("%s holds result %d in %s (read since moment %d and up to %d), which is none of its states%s%s",
				j.o, id, read[0].part.Path, since, j.end, told(j.all[id]), why)
		}
	}
	return nil
}

// differs tells in what rows of a result differ from a state, "" for nothing.
func (j *judge) differs(read []read, s state) string {
	switch {
	case !j.d.matches(s.is):
		return "the search does not match that state"
	case !j.holds(read[0].part, s):
		return fmt.Sprintf("that state is dated %s", s.date)
	}
	want, rejected, err := j.d.rows(s.is, j.o, j.after.manifest.Schema)
	switch {
	case err != nil:
		return err.Error()
	case rejected:
		return "that state is to be rejected"
	}
	return differ(read, want, j.o)
}

// holds tells whether a state belongs where it lies.
func (j *judge) holds(p load.Part, s state) bool {
	is := j.after.manifest.Range
	switch {
	case j.o.dataset() && p.Undated && !s.date.IsZero():
		// The results without a date keep what no other part holds: what got its date while
		// the run read, or lies outside the range of a run that reads no more than that.
		return s.from >= j.start || !j.follows && !slices.ContainsFunc(j.ranges, func(r reading) bool { return r.Holds(s.date) })
	case j.o.dataset():
		return p.Undated == s.date.IsZero() && windowOf(p).Holds(s.date)
	case s.date.IsZero():
		return j.undated
	}
	return spanOf(is).Holds(s.date) || j.open && !is.To.IsZero() && !s.date.Before(is.To.Time)
}

// complete makes sure that everybody is there, as a row or among the rejected, who was in
// what the run read all the time.
func (j *judge) complete() error {
	for _, id := range slices.Sorted(maps.Keys(j.all)) {
		if j.isThere(id) {
			continue
		}
		for _, r := range j.ranges {
			since := j.start
			if r.continued {
				since = j.oldest
			}
			hidden := j.unproven && len(j.all[id].between(since, j.end)) > 1 && j.lost(since)
			if !hidden && j.all[id].throughout(since, func(s state) bool { return j.wanted(s, r) }) {
				return fmt.Errorf("%s lacks result %d, which was in the range %s all the time from moment %d to %d%s", j.o, id, r.Window, since, j.end, told(j.all[id]))
			}
		}
	}
	return nil
}

func (j *judge) isThere(id int64) bool {
	return len(j.after.rows[id]) > 0 || j.after.rejected[strconv.FormatInt(id, 10)]
}

// belongs tells whether a state has rows in the output, or is to be named as rejected there.
func (j *judge) belongs(s state) bool {
	rows, rejected, _ := j.d.rows(s.is, j.o, j.after.manifest.Schema)
	return j.d.matches(s.is) && (len(rows) > 0 || rejected && j.o.explode == "")
}

// wanted tells whether a state has to be in an output that a range was read for.
func (j *judge) wanted(s state, r reading) bool {
	if !j.belongs(s) {
		return false
	}
	if s.date.IsZero() {
		return j.undated && !r.continued && (!j.unproven || !j.lost(j.start))
	}
	// What a run reads is as wide as its datasets need; a file holds what was asked for.
	is := j.after.manifest.Range
	return r.Holds(s.date) && (j.o.dataset() || spanOf(is).Holds(s.date))
}

// lost tells whether a result was deleted since a moment.
func (j *judge) lost(since moment) bool {
	for _, h := range j.all {
		if h.gone() && h[len(h)-1].to > since {
			return true
		}
	}
	return false
}

// followed makes sure of results of any age, after a run that asked what had
// changed: each that did not change during the run is in the dataset as it is
// now, and those that were deleted are gone.
func (j *judge) followed() error {
	if c := j.after.manifest.Changes; !j.good || !j.follows || !j.o.dataset() || c == nil || c.Method != load.MethodChanges {
		return nil
	}
	since := j.start
	if slices.ContainsFunc(j.ranges, func(r reading) bool { return r.continued }) {
		since = j.oldest
	}
	for _, id := range slices.Sorted(maps.Keys(j.all)) {
		h, read, problem := j.all[id], j.after.rows[id], ""
		s := h[len(h)-1]
		switch {
		case max(s.from, map[bool]moment{true: s.to}[h.gone()]) > since: // it changed meanwhile
		case s.from <= j.o.blind, h.gone() && s.to <= j.o.blind: // another one may have come unnoticed, so that the counts agree
		case h.gone() && len(read) > 0 && j.mustLoseDeleted(read[0].part):
			problem = "it was deleted, and is in " + read[0].part.Path
		case h.gone():
		case len(read) > 0:
			problem = j.differs(read, s)
		case !j.isThere(id) && !s.date.IsZero() && !s.date.Before(j.d.from) && s.date.Before(j.after.manifest.Range.To.Time) && j.belongs(s):
			problem = fmt.Sprintf("it is dated %s, and has no row", s.date.Format(time.DateTime))
		}
		if problem != "" {
			return fmt.Errorf("%s is wrong about result %d, which did not change since moment %d: %s%s", j.o, id, since, problem, told(h))
		}
	}
	return nil
}

// mustLoseDeleted tells whether a part must not hold a deleted result. Counts
// show that one is gone; they are asked of the time of the definition, and know nothing of
// results without a date.
func (j *judge) mustLoseDeleted(p load.Part) bool {
	return !j.d.complete && !j.d.uncounted && !p.Undated && (p.To.IsZero() || p.To.After(j.d.from))
}

// untouched makes sure of the rows of a table: one that did not change was not written
// either, one that did tells by which run, and where vanished results stay, all do.
func (j *judge) untouched() error {
	retyped := j.replaces && slices.ContainsFunc(j.after.manifest.Schema, func(is load.Column) bool {
		return j.before.manifest != nil && slices.ContainsFunc(j.before.manifest.Schema, func(was load.Column) bool { return was.Name == is.Name && was.Type != is.Type })
	})
	for key, is := range j.after.stored {
		was := j.before.stored[key]
		switch same := is.content == was.content; {
		case retyped: // the server writes the whole table anew
		case same && is.version != was.version:
			return fmt.Errorf("%s had the row %s written anew, which did not change: %s, and was %s", j.o, key, is, was)
		case !same && j.o.audit && is.run != j.after.manifest.RunID:
			return fmt.Errorf("%s has the row %s changed by another run than %s: %s", j.o, key, j.after.manifest.RunID, is)
		}
	}
	for key := range j.before.stored {
		if _, there := j.after.stored[key]; !there && j.o.soft {
			return fmt.Errorf("%s keeps vanished results, and has no row %s any more", j.o, key)
		}
	}
	return nil
}

// told lists the states of a result, for people.
func told(h history) string {
	var b strings.Builder
	for _, s := range h {
		fmt.Fprintf(&b, "\n  moments %d up to %d, dated %s", s.from, s.to, s.date.Format(time.DateTime))
	}
	return b.String()
}
