package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/reading"
)

// What changed at the service since earlier runs.
//
// The results that changed last are one query: they are sorted by date_update
// (see extract.ReadFeed). A run asks it before it reads anything. AskChanges compares
// the answer with what the manifests say is known, and names the changes that
// the datasets do not hold yet. With them an incremental run reads only the
// parts that changed, whatever their age.
//
// A service may ignore fs_sort, and results may lack date_update. So AskChanges wants a
// proof that the service sorts. Without one the run reads its lookback, and the
// manifest says why.
//
// KnownTo is the moment up to which changes are known, by the service's clock.
// The next run reads the feed back to changesMargin before it, because that clock may
// be set back. Of this margin the manifest lists the changes that are known.
// Our own clock is used only to read further back, never less far. date_update has
// whole seconds. So AskChanges waits until the second of the newest change is over, if a
// result that changed then is read. A later change of it has another time.

// changesMargin is how far before the known moment the feed is read again. The
// service's clock may be set back by an hour when summer time ends.
const changesMargin = 2 * time.Hour

// daily is how long runs rely on what an earlier run found when it looked for a proof that
// the service sorts by fs_sort: that there is a proof, or that there is none.
const daily = 24 * time.Hour

// second is the resolution of date_update, see extract.WireTime.
const second = time.Second

// Changes is what a run knows of changes before it reads anything.
type Changes struct {
	// Named are changes that some dataset does not hold yet, newest first.
	Named []extract.Change
	// Usable tells whether the feed (the results that changed last) can be asked for what
	// changes from now on.
	Usable bool
	// Continues tells whether the datasets hold everything but Named.
	Continues bool
	// AllStale is set if the service sorts and it is still not known what changed.
	// Then every part may be stale. UndatedStale is set if that holds for the results without a
	// date alone.
	AllStale, UndatedStale bool
	// Counted is the service's count of all results that the datasets should hold. The count
	// was asked for before the feed of changes. So a new result in the count is in the feed
	// too, and cannot hide that another result was deleted.
	Counted int64
	// Reason says why the feed does not tell what changed; "" if the feed tells it.
	Reason string

	base   load.Changes     // what the manifests of all datasets say together of changes
	state  load.Changes     // what the manifests after this run say of changes, as far as known
	margin []extract.Change // the changes since changesMargin before KnownTo, newest first
	newest time.Time        // time of the newest change, by the first feed that the run asked for
	// open is the second of the newest change, if that second was perhaps not over when
	// the run went on. A further change of the same result would look the same.
	open time.Time
}

// ChangesSince says what a run knows before it asks what changed. Manifests are those of
// all its datasets, nil for one that no run has committed. Lookback is the range
// that the run reads if the service does not tell what changed.
type ChangesSince struct {
	Manifests []*load.Manifest
	Lookback  extract.Window
	// Continues tells whether the run continues the datasets. DatasetTime is the time of all
	// results that the datasets should hold after such a run.
	Continues   bool
	DatasetTime extract.Window
}

// NoChanges returns the Changes of a run that does not ask the service what changed. reason
// says why it does not ask.
func NoChanges(manifests []*load.Manifest, reason string) *Changes {
	base, _ := KnownChanges(manifests)
	return &Changes{base: base, state: base, Reason: reason}
}

// ChangesInDoubt returns the Changes of a run that does not ask the service what changed,
// because the service did not tell it when the run began before. If its answer lacked a new
// result, the service's clock may have been set back. So the time of that result's change bounds
// up to when changes are known. If the service sorts, and only the reading failed, every part may
// be stale.
func ChangesInDoubt(manifests []*load.Manifest, f reading.Form, e *extract.FeedError) *Changes {
	s := NoChanges(manifests, e.Problem)
	s.AllStale, s.UndatedStale = e.Sorts, e.Sorts
	if e.Newest.IsZero() {
		s.state.Witness, s.state.WitnessAt = "", f.Now().UTC()
	} else if at := e.Newest.Add(-daily); !e.Sorts && at.Before(s.state.KnownTo.Time) {
		s.state.KnownTo, s.state.Known, s.state.KnownFrom = load.Wall(at), nil, load.WallTime{}
	}
	return s
}

// ResumeChanges returns the Changes of a run that reads everything and takes over what an
// earlier run read. state is what Changes.State returned in the earlier run; nil if the
// service could not be asked what changed.
func ResumeChanges(manifests []*load.Manifest, state *load.Changes) *Changes {
	s := NoChanges(manifests, "")
	if state == nil {
		s.Reason = "this run goes on from an earlier one, which could not ask the service for changes"
		return s
	}
	s.Usable = true
	s.state.KnownTo, s.state.Known, s.state.Witness, s.state.WitnessAt = state.KnownTo, nil, state.Witness, state.WitnessAt
	return s
}

// AskChanges asks the service what changed. The error is that of a request. Where the service
// does not tell what changed, there is no error, and Changes.Reason says why.
func AskChanges(ctx context.Context, f reading.Form, since ChangesSince) (*Changes, error) {
	base, known := KnownChanges(since.Manifests)
	known = known && since.Continues
	s := &Changes{base: base, state: base}
	now := load.Wall(f.Now().In(f.Def.Source.Zone)).Time
	if base.Witness == "" && f.Now().Sub(base.WitnessAt).Abs() < daily {
		s.Reason = base.Reason
		return s, nil
	}
	if known {
		n, err := f.Counter()(ctx, since.DatasetTime)
		if err != nil {
			return nil, err
		}
		s.Counted = n
	}
	back := func(newest time.Time) time.Time {
		switch {
		case known:
			return knownFrom(base)
		case f.Def.Extract.Incremental:
			return floor(extract.Earlier(newest, now))
		}
		return newest
	}
	feed, err := extract.ReadFeed(ctx, f.Client, f.Name, reading.Query(f.Def.Extract), back)
	if err == nil {
		err = s.proveOrder(ctx, f, feed)
	}
	failed, ok := errors.AsType[*extract.FeedError](err)
	switch {
	case ok && failed.Sorts:
		return s, s.askOlder(ctx, f, since, failed, back, now)
	case ok:
		s.Reason = failed.Problem
		s.state.Witness, s.state.WitnessAt = "", f.Now().UTC()
		return s, nil
	case err != nil:
		return nil, err
	}
	s.Usable, s.Continues, s.newest = true, known, feed.Newest()
	s.take(feed, since.Manifests, known)
	if newest := extract.Earlier(s.newest, now); len(feed.Changes) > 0 && newest.After(base.KnownTo.Time) {
		s.state.KnownTo = load.Wall(newest)
	}
	if !s.state.KnownFrom.After(floor(s.state.KnownTo.Time)) {
		s.state.KnownFrom = load.WallTime{}
	}
	if s.open = s.newest; f.Def.Extract.Incremental {
		return s, s.close(ctx, f, s.Named, s.newest)
	}
	return s, nil
}

// close waits until the second of the newest change is over, if one of the changes that
// the run will read is of that second. Whatever changes after the wait has another time.
func (s *Changes) close(ctx context.Context, f reading.Form, read []extract.Change, newest time.Time) error {
	s.open = time.Time{}
	if !slices.ContainsFunc(read, func(c extract.Change) bool { return c.At.Equal(newest) }) {
		return nil // the results of that second are not read, and the runs that read them waited
	}
	return f.Wait(ctx, second)
}

// take appends the changes of a feed to margin, and those that some dataset does not hold yet
// to Named.
func (s *Changes) take(feed *extract.Feed, manifests []*load.Manifest, known bool) {
	for _, c := range feed.Changes {
		if known && c.At.Before(knownFrom(s.base)) {
			break
		}
		s.margin = append(s.margin, c)
		if !known || !heldByAll(manifests, c) {
			s.Named = append(s.Named, c)
		}
	}
}

// askOlder asks what changed of the results before the lookback, because more results
// changed in all than the service lists. The lookback itself is read, and the results without a
// date that the datasets hold.
func (s *Changes) askOlder(ctx context.Context, f reading.Form, since ChangesSince, failed *extract.FeedError, back func(time.Time) time.Time, now time.Time) error {
	s.Reason = failed.Problem
	s.state.KnownTo, s.state.Known = load.Wall(extract.Earlier(failed.Newest, now)), nil
	s.state.KnownFrom = s.state.KnownTo // without it the next run meets the same changes again
	if !failed.Newest.After(s.base.KnownTo.Time) {
		// The second of the newest changes is long over.
		s.state.KnownFrom = load.Wall(s.state.KnownTo.Add(time.Second))
	}
	if s.base.KnownTo.IsZero() || !since.Continues {
		return nil // nothing was known before
	}
	s.UndatedStale = true // they lie neither in the lookback nor before it
	if since.Lookback.From.IsZero() {
		return nil // all results with a date are read
	}
	older := reading.Query(f.Def.Extract)
	older.Window.To = since.Lookback.From
	feed, err := extract.ReadFeed(ctx, f.Client, f.Name, older, back)
	if _, ok := errors.AsType[*extract.FeedError](err); ok {
		s.AllStale = true
		return nil
	}
	if err != nil {
		return err
	}
	s.take(feed, since.Manifests, true)
	return nil
}

// proveOrder looks for the proof that the service sorts by fs_sort. In an incremental run it
// makes sure too that no result lacks a date_update. In other runs the results that are read
// show that. Manifests keep a proof, and runs look again once a day.
func (s *Changes) proveOrder(ctx context.Context, f reading.Form, feed *extract.Feed) error {
	at := f.Now().UTC()
	recent := at.Sub(s.base.WitnessAt).Abs() < daily
	if feed.Apart {
		s.state.Witness = extract.UpdateMeta
	}
	if recent && s.state.Witness != "" {
		return nil
	}
	s.state.WitnessAt = at
	if f.Def.Extract.Incremental {
		oldest, err := extract.OldestChange(ctx, f.Client, f.Name)
		if err != nil {
			return err
		}
		if err := feed.Check(oldest); err != nil {
			return err
		}
	}
	if s.state.Witness != "" {
		return nil
	}
	witness, err := extract.FindWitness(ctx, f.Client, f.Name)
	if err != nil {
		return err
	}
	if s.state.Witness = witness; witness == "" {
		return &extract.FeedError{Problem: "the form's results do not show whether the service sorts as asked, because their ids or dates are in that order too; further results may show it"}
	}
	f.Log.LogAttrs(ctx, slog.LevelDebug, "the service sorts", slog.String("column", witness))
	return nil
}

// knownFrom returns how far back the feed is read if a manifest says c of changes: to
// changesMargin before KnownTo, but not further than KnownFrom.
func knownFrom(c load.Changes) time.Time {
	if back := floor(c.KnownTo.Time); back.After(c.KnownFrom.Time) {
		return back
	}
	return c.KnownFrom.Time
}

// floor returns how far back the feed is read if changes are known up to t: to changesMargin
// before t.
func floor(t time.Time) time.Time { return t.Add(-changesMargin) }

// Void marks the feed of changes as unusable, because results carry no date_update.
func (s *Changes) Void(f reading.Form, reason string) {
	s.Usable, s.Reason = false, reason
	s.state.Witness, s.state.WitnessAt = "", f.Now().UTC()
}

// More asks what changed since the run asked for the feed, and adds those changes to Named.
// That was a moment ago, so one page of the feed is mostly enough. The error is a
// *extract.FeedError if the service does not tell what changed.
func (s *Changes) More(ctx context.Context, f reading.Form) (more []extract.Change, err error) {
	feed, err := extract.ReadFeed(ctx, f.Client, f.Name, reading.Query(f.Def.Extract), func(time.Time) time.Time { return s.newest })
	if err != nil {
		return nil, err
	}
	more = slices.DeleteFunc(feed.Changes, func(c extract.Change) bool { return c.At.Before(knownFrom(s.state)) || s.Saw(c) })
	s.Named = append(s.Named, more...)
	s.margin = append(s.margin, more...)
	return more, s.close(ctx, f, more, feed.Newest())
}

// Since asks what changed since the run began, and in changesMargin before that. The newest
// change is the first. The error is a *extract.FeedError if the service does not tell what
// changed.
func (s *Changes) Since(ctx context.Context, f reading.Form) ([]extract.Change, error) {
	back := knownFrom(s.state)
	feed, err := extract.ReadFeed(ctx, f.Client, f.Name, reading.Query(f.Def.Extract), func(time.Time) time.Time { return back })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(feed.Changes, func(c extract.Change) bool { return c.At.Before(back) }), nil
}

// KnownChanges returns what the manifests of all datasets say together of changes. known is
// false if a manifest does not say up to when changes are known.
func KnownChanges(manifests []*load.Manifest) (all load.Changes, known bool) {
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

// heldByAll tells whether all datasets hold a change: in each, the change is older than the
// margin that the manifest covers (see knownFrom), or the manifest lists it.
func heldByAll(manifests []*load.Manifest, c extract.Change) bool {
	return !slices.ContainsFunc(manifests, func(m *load.Manifest) bool {
		return !c.At.Before(knownFrom(*m.Changes)) && !slices.Contains(m.Changes.Known, entry(c))
	})
}

// entry returns a change in the form in which manifests list changes.
func entry(c extract.Change) load.ChangedResult {
	return load.ChangedResult{ID: c.ID, At: load.Wall(c.At)}
}

// continues tells whether the datasets hold everything but Named. s is nil if the run did not
// ask what changed.
func (s *Changes) continues() bool { return s != nil && s.Continues }

// ids returns the ids of the results that the service named as changed, and of those that
// lay after the range of earlier runs.
func (s *Changes) ids() idset.Set {
	if s == nil {
		return idset.Set{}
	}
	return idsOf(s.Named).Union(s.laterThan(time.Time{}))
}

// laterThan returns the ids of changed results that probably lie at a time or later: an
// earlier run found them after its range, or their date says so.
func (s *Changes) laterThan(at time.Time) idset.Set {
	var ids idset.Builder
	if s == nil {
		return ids.Set()
	}
	for _, id := range s.base.Later {
		ids.Add(id)
	}
	for _, c := range s.Named {
		if len(c.Dates) > 0 && !c.Dates[0].Before(at) {
			ids.Add(c.ID)
		}
	}
	return ids.Set()
}

func idsOf(changed []extract.Change) idset.Set {
	var ids idset.Builder
	for _, c := range changed {
		ids.Add(c.ID)
	}
	return ids.Set()
}

// Saw tells whether the feed already held a change when the run began. It is false for the
// changes of a second that was not over, because a later change may look the same.
func (s *Changes) Saw(c extract.Change) bool {
	return !c.At.Equal(s.open) && slices.ContainsFunc(s.margin, c.Same)
}

// State returns what a run that resumes this one needs to know: the moment up to
// which changes were known when this run began. It is nil if the feed was not usable, or if
// the run continues the datasets.
func (s *Changes) State() *load.Changes {
	if !s.Usable || s.Continues {
		return nil
	}
	return &load.Changes{KnownTo: s.state.KnownTo, Witness: s.state.Witness, WitnessAt: s.state.WitnessAt}
}

// Unnamed tells whether results after the watermark may be new without being among the named
// changes.
func (s *Changes) Unnamed(watermark time.Time) bool { return watermark.Before(s.base.UnnamedTo.Time) }

// NamesSince tells whether a changed result may be dated since the watermark.
func (s *Changes) NamesSince(watermark time.Time) bool {
	return len(s.base.Later) > 0 || s.Unnamed(watermark) || !s.Latest().Before(watermark)
}

// Latest returns the latest date of the changed results. It is zero if none has one.
func (s *Changes) Latest() (latest time.Time) {
	for _, c := range s.Named {
		if len(c.Dates) > 0 && c.Dates[0].After(latest) {
			latest = c.Dates[0]
		}
	}
	return latest
}

// changesEnd is what a run did with the changes that the service named.
type changesEnd struct {
	Seen  idset.Set // the results that the run read, or did not find in its range
	Later []int64   // results that changed, and lie after the run's range
	// TookOver is set if the run took over results that were read before the feed was asked.
	// Then the run knows no later changes than the manifests did.
	TookOver bool
	// Lookback is set if the run read again only its lookback of what the datasets held.
	Lookback bool
	// To is the end of the range that the run read.
	To time.Time
	// Aside is set if the run did not continue the datasets but read a range of its own.
	// Then the manifests say of changes what they said before.
	Aside bool
}

// manifest returns what the manifests say of changes after the run, or nil if what they say
// now does not change.
func (s *Changes) manifest(e changesEnd) *load.Changes {
	m := s.state
	m.Later = e.Later
	if m.Method, m.Reason = load.MethodChanges, s.Reason; e.Lookback || s.Reason != "" {
		m.Method, m.Reason = load.MethodLookback, cmp.Or(s.Reason, "no earlier run asked for changes")
	}
	switch {
	case e.Aside && s.base.Method == "":
		return nil
	case e.Aside:
		m.Method, m.Reason, m.Later = s.base.Method, s.base.Reason, s.base.Later
		m.KnownTo, m.Known, m.KnownFrom = s.base.KnownTo, s.base.Known, s.base.KnownFrom
	case e.TookOver:
		m.KnownTo, m.Known, m.KnownFrom = s.base.KnownTo, s.base.Known, s.base.KnownFrom
	case s.Usable:
		m.Known = s.known(knownFrom(m), e.Seen)
	}
	if !s.Continues && !e.Aside {
		m.UnnamedTo = load.Wall(knownFrom(m))
	}
	if !e.Aside && !e.To.Before(m.UnnamedTo.Time) {
		m.UnnamedTo = load.WallTime{}
	}
	return &m
}

// known lists the changes of the margin, from since on, that the datasets hold after the
// run: those that they held before, and those whose results the run saw. It leaves
// out the changes of a second that was perhaps not over.
func (s *Changes) known(since time.Time, seen idset.Set) (list []load.ChangedResult) {
	unseen := idsOf(s.Named).Without(seen)
	for _, c := range s.margin {
		if !c.At.Before(since) && !c.At.Equal(s.open) && !unseen.Contains(c.ID) {
			list = append(list, entry(c))
		}
	}
	slices.SortFunc(list, func(a, b load.ChangedResult) int { return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.ID, b.ID)) })
	return list
}

// MostFeedRequests returns how many Get Results requests AskChanges sends at most at the
// instant now, if the feed has one page. base is what KnownChanges returned. Without a witness
// in base the requests that look for one are included.
func MostFeedRequests(base load.Changes, now time.Time, incremental bool) (n int) {
	recent := now.Sub(base.WitnessAt).Abs() < daily
	if recent && base.Witness == "" {
		return 0 // a run of the last day found that the service does not tell what changed
	}
	n = 1 // the feed's page
	if !recent && incremental {
		n++ // for the other end of the feed, where a result without a date_update would be
	}
	if base.Witness == "" {
		n += 2 // to find out whether the service sorts by other metas
	}
	return n
}
