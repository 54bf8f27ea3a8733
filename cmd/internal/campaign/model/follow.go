package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
)

// MethodChanges is the method of a run that the service told what had changed.
const MethodChanges = "changes"

// followed makes sure of results of any age, after a run that asked what had
// changed: each that did not change during the run is in the dataset as it is
// now, and those that were deleted are gone. Parts that the manifest names as
// stale are left out.
func (j *judge) followed() error {
	c := j.after.Manifest.Changes
	if !j.f.Good || !j.f.Follows || !j.o.Dataset() || j.d.DatesIgnored || c == nil || c.Method != MethodChanges {
		return nil
	}
	since := j.f.Start
	if slices.ContainsFunc(j.f.Ranges, func(r Reading) bool { return r.Continued }) {
		since = j.f.Oldest
	}
	for _, id := range slices.Sorted(maps.Keys(j.all)) {
		if problem := j.present(id, since); problem != "" {
			return fmt.Errorf("%s is wrong about result %d, which did not change since moment %d: %s%s", j.o, id, since, problem, told(j.all[id]))
		}
	}
	return nil
}

// present tells in what a dataset does not tell the present of a result that did
// not change since a moment, "" for nothing.
func (j *judge) present(id int64, since Moment) string {
	read := j.after.Rows[id]
	states := j.during(id, since)
	switch {
	case len(states) == 0 && len(read) > 0 && j.mustLoseDeleted(read[0].Part):
		if h := j.all[id]; h[len(h)-1].To <= j.f.Blind {
			return "" // another one may have come unnoticed, so that the counts agree
		}
		return fmt.Sprintf("it was deleted, and is in %s", read[0].Part.Path)
	case len(states) != 1 || states[0].To != Now || states[0].From > since:
		return "" // it changed meanwhile, or it is gone
	}
	s := states[0]
	if s.From <= j.f.Blind {
		return ""
	}
	if len(read) > 0 {
		return j.differs(read, s)
	}
	to := j.after.Manifest.Range.To
	expected := !s.Date.IsZero() && !s.Date.Before(j.f.From) && s.Date.Before(to.Time) && j.d.Matches(s.Is) && j.d.hasRow(s.Is, j.o, j.after.Manifest.Schema)
	if expected {
		return fmt.Sprintf("it is dated %s, and has no row", s.Date.Format(time.DateTime))
	}
	return ""
}

// mustLoseDeleted tells whether a part must not hold a deleted result. Counts
// show that one is gone; they are asked of the time of the definition, and know nothing of
// results without a date.
func (j *judge) mustLoseDeleted(p readback.Part) bool {
	return j.d.Verified() && !j.d.Uncounted && !p.Undated && (p.To.IsZero() || p.To.After(j.f.From))
}
