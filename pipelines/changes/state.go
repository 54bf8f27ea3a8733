package changes

import (
	"cmp"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// Known returns what manifests say together of changes. known is false if one of
// them does not say up to when it knows them.
func Known(manifests []*load.Manifest) (all load.Changes, known bool) {
	known = len(manifests) > 0
	for i, m := range manifests {
		if m == nil || m.Changes == nil {
			known = false
			continue
		}
		c := *m.Changes
		known = known && !c.KnownTo.IsZero()
		if c.UnnamedTo.Before(all.UnnamedTo.Time) {
			c.UnnamedTo = all.UnnamedTo
		}
		c.Later = slices.Concat(all.Later, c.Later)
		if i > 0 && all.KnownTo.Before(c.KnownTo.Time) {
			c.KnownTo, c.Known, c.KnownFrom = all.KnownTo, all.Known, all.KnownFrom
		}
		all = c
	}
	if !known {
		all.KnownTo, all.Known, all.KnownFrom = load.WallTime{}, nil, load.WallTime{}
	}
	slices.Sort(all.Later)
	all.Later = slices.Compact(all.Later)
	return all, known
}

// heldByAll tells whether all datasets hold a change: it lies before the margin,
// or the manifest lists it.
func heldByAll(manifests []*load.Manifest, c extract.Change) bool {
	return !slices.ContainsFunc(manifests, func(m *load.Manifest) bool {
		return !c.At.Before(from(*m.Changes)) && !slices.Contains(m.Changes.Known, entry(c))
	})
}

// entry returns a change as manifests list it.
func entry(c extract.Change) load.ChangedResult {
	return load.ChangedResult{ID: c.ID, At: load.Wall(c.At)}
}

// Later returns the ids of results that lay after the range of earlier runs.
func (s *Start) Later() []int64 { return s.base.Later }

// Saw tells whether the feed already held a change when the run began. It is false
// where a further change of the same second may look the same.
func (s *Start) Saw(c extract.Change) bool {
	return !c.At.Equal(s.open) && slices.ContainsFunc(s.margin, c.Same)
}

// State returns what a run that resumes this one needs to know: the moment up to
// which changes were known when it began.
func (s *Start) State() *load.Changes {
	if !s.Usable || s.Continues {
		return nil
	}
	return &load.Changes{KnownTo: s.state.KnownTo, Witness: s.state.Witness, WitnessAt: s.state.WitnessAt}
}

// Unnamed tells whether results after the watermark may be new that no change names.
func (s *Start) Unnamed(watermark time.Time) bool { return watermark.Before(s.base.UnnamedTo.Time) }

// NamesSince tells whether a changed result may be dated since the watermark.
func (s *Start) NamesSince(watermark time.Time) bool {
	return len(s.base.Later) > 0 || s.Unnamed(watermark) || !s.Latest().Before(watermark)
}

// Latest returns the latest date of the changed results. It is zero if none has one.
func (s *Start) Latest() (latest time.Time) {
	for _, c := range s.Named {
		if len(c.Dates) > 0 && c.Dates[0].After(latest) {
			latest = c.Dates[0]
		}
	}
	return latest
}

// End is what a run did with the changes.
type End struct {
	Seen  *roaring64.Bitmap // the results that it read, or did not find in its range
	Later []int64           // results that changed, and lie after the range
	// Older is set if the run took over what was read before the feed was asked.
	// Then it does not know later changes than the manifests did.
	Older bool
	// Lookback is set if the run read only its lookback of what was before.
	Lookback bool
	// To is the end of the range.
	To time.Time
	// Aside is set if the run read a range of its own. It leaves what the manifests say.
	Aside bool
}

// Manifest returns what the manifests say of changes after the run, or nil if they
// stay as they are.
func (s *Start) Manifest(e End) *load.Changes {
	m := s.state
	m.Later = e.Later
	if m.Method, m.Reason = load.MethodChanges, s.Reason; e.Lookback || s.Reason != "" {
		m.Method, m.Reason = load.MethodLookback, cmp.Or(s.Reason, "no earlier run found out up to when changes are known")
	}
	switch {
	case e.Aside && s.base.Method == "":
		return nil
	case e.Aside:
		m.Method, m.Reason, m.Later = s.base.Method, s.base.Reason, s.base.Later
		m.KnownTo, m.Known, m.KnownFrom = s.base.KnownTo, s.base.Known, s.base.KnownFrom
	case e.Older:
		m.KnownTo, m.Known, m.KnownFrom = s.base.KnownTo, s.base.Known, s.base.KnownFrom
	case s.Usable:
		m.Known = s.known(from(m), e.Seen)
	}
	if !s.Continues && !e.Aside {
		m.UnnamedTo = load.Wall(from(m))
	}
	if !e.Aside && !e.To.Before(m.UnnamedTo.Time) {
		m.UnnamedTo = load.WallTime{}
	}
	return &m
}

// known lists the changes of the margin that the datasets hold after the run:
// those that they held before, and those whose results were seen since. It leaves
// out a second that was perhaps not over.
func (s *Start) known(since time.Time, seen *roaring64.Bitmap) (list []load.ChangedResult) {
	named := make(map[int64]bool, len(s.Named))
	for _, c := range s.Named {
		named[c.ID] = true
	}
	for _, c := range s.margin {
		if !c.At.Before(since) && !c.At.Equal(s.open) && (!named[c.ID] || seen.Contains(uint64(c.ID))) { //nolint:gosec // ids are not negative
			list = append(list, entry(c))
		}
	}
	slices.SortFunc(list, func(a, b load.ChangedResult) int { return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.ID, b.ID)) })
	return list
}
