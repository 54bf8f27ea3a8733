package changes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
)

// Margin is how far before the known moment the feed is read again. The
// service's clock may be set back by an hour when summer time ends.
const Margin = 2 * time.Hour

// daily is how long runs rely on an earlier look for a proof that the service
// sorts, whether there was one or not.
const daily = 24 * time.Hour

// second is the resolution of date_update, see extract.WireTime.
const second = time.Second

// Start is what a run knows of changes before it reads anything.
type Start struct {
	// Named are changes that some dataset does not hold yet, newest first.
	Named []extract.Change
	// Usable tells whether the feed can be asked for what changes from now on.
	Usable bool
	// Continues tells whether the datasets hold everything but Named.
	Continues bool
	// AllStale is set if the service sorts and it is still not known what changed.
	// Then every part may be stale.
	AllStale bool
	// Counted is the service's count of all results that the datasets should hold. It
	// was asked for before the feed. So a result that is counted and new is named too,
	// and cannot hide that another one was deleted.
	Counted int64
	// Reason says why the feed does not tell what changed; "" if it does.
	Reason string

	base   load.Changes     // what the manifests say together
	state  load.Changes     // what the next manifests say, as far as it is known yet
	margin []extract.Change // the changes of the margin, newest first
	newest time.Time        // of the feed that the run asked for first
	// open is the second of the newest change, if that second was perhaps not over when
	// the run went on. A further change of the same result would look the same.
	open time.Time
}

// Since says what a run knows before it asks what changed. Manifests are those of
// all its datasets, nil for one that no run has committed. Lookback is the range
// that the run reads if the service does not tell.
type Since struct {
	Manifests []*load.Manifest
	Lookback  extract.Window
	// Continues tells whether the run continues the datasets. Whole is the time of all
	// results that they should hold then.
	Continues bool
	Whole     extract.Window
	// Later tells whether a later run continues this one, so that it needs to
	// know the changes of the margin.
	Later bool
}

// Off returns the start of a run that does not ask the service, and why.
func Off(manifests []*load.Manifest, reason string) *Start {
	base, _ := Known(manifests)
	return &Start{base: base, state: base, Reason: reason}
}

// Doubt returns the start of a run that does not ask the service, because an answer of
// the service lacked a new result. Its clock may have been set back. So
// the time of that result's change bounds up to when changes are known.
func Doubt(manifests []*load.Manifest, f reading.Form, e *extract.FeedError) *Start {
	s := Off(manifests, e.Problem)
	if e.Newest.IsZero() {
		s.state.Witness, s.state.WitnessAt = "", f.Now().UTC()
	} else if at := e.Newest.Add(-daily); at.Before(s.state.KnownTo.Time) {
		s.state.KnownTo, s.state.Known, s.state.KnownFrom = load.Wall(at), nil, load.WallTime{}
	}
	return s
}

// Resume returns the start of a run that reads everything and takes over what an
// earlier run read. state is that run's; nil if the service could not be asked.
func Resume(manifests []*load.Manifest, state *load.Changes) *Start {
	s := Off(manifests, "")
	if state == nil {
		s.Reason = "the run that this one resumes from could not ask the service what changed"
		return s
	}
	s.Usable = true
	s.state.KnownTo, s.state.Known, s.state.Witness, s.state.WitnessAt = state.KnownTo, nil, state.Witness, state.WitnessAt
	return s
}

// Ask asks the service what changed. The error is that of a request.
func Ask(ctx context.Context, f reading.Form, since Since) (*Start, error) {
	base, known := Known(since.Manifests)
	known = known && since.Continues
	s := &Start{base: base, state: base}
	now := load.Wall(f.Now().In(f.Def.Source.Zone)).Time
	if base.Witness == "" && f.Now().Sub(base.WitnessAt).Abs() < daily {
		s.Reason = base.Reason
		return s, nil
	}
	if known {
		n, err := f.Counter()(ctx, since.Whole)
		if err != nil {
			return nil, err
		}
		s.Counted = n
	}
	back := func(newest time.Time) time.Time {
		switch {
		case known:
			return from(base)
		case since.Later:
			return floor(extract.Earlier(newest, now))
		}
		return newest
	}
	feed, err := extract.ReadFeed(ctx, f.Client, f.Name, reading.Query(f.Def.Extract), back)
	if err == nil {
		err = s.prove(ctx, f, feed, since.Later)
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
	s.Usable, s.Continues = true, known
	s.take(feed, since.Manifests, known)
	if newest := extract.Earlier(feed.Newest(), now); len(feed.Changes) > 0 && newest.After(base.KnownTo.Time) {
		s.state.KnownTo = load.Wall(newest)
	}
	if !s.state.KnownFrom.After(floor(s.state.KnownTo.Time)) {
		s.state.KnownFrom = load.WallTime{}
	}
	s.newest = feed.Newest()
	if s.open = s.newest; since.Later {
		return s, s.close(ctx, f, s.Named, s.newest)
	}
	return s, nil
}

// close waits until the second of the newest change is over, if one of the changes that
// the run will read is of that second. Whatever changes after the wait has another time.
func (s *Start) close(ctx context.Context, f reading.Form, read []extract.Change, newest time.Time) error {
	s.open = time.Time{}
	if !slices.ContainsFunc(read, func(c extract.Change) bool { return c.At.Equal(newest) }) {
		return nil // earlier runs waited
	}
	return f.Wait(ctx, second)
}

// take divides the changes of a feed into those that all datasets hold and Named.
func (s *Start) take(feed *extract.Feed, manifests []*load.Manifest, known bool) {
	for _, c := range feed.Changes {
		if known && c.At.Before(from(s.base)) {
			break
		}
		s.margin = append(s.margin, c)
		if !known || !heldByAll(manifests, c) {
			s.Named = append(s.Named, c)
		}
	}
}

// askOlder asks what changed of the results before the lookback, because too many
// results changed in all. The lookback itself is read.
func (s *Start) askOlder(ctx context.Context, f reading.Form, since Since, failed *extract.FeedError, back func(time.Time) time.Time, now time.Time) error {
	s.Reason = failed.Problem
	s.state.KnownTo, s.state.Known = load.Wall(extract.Earlier(failed.Newest, now)), nil
	s.state.KnownFrom = s.state.KnownTo // else the next run meets the same changes again
	if !failed.Newest.After(s.base.KnownTo.Time) {
		s.state.KnownFrom = load.Wall(s.state.KnownTo.Add(time.Second)) // their second is long over
	}
	if s.base.KnownTo.IsZero() || !since.Continues || since.Lookback.From.IsZero() {
		return nil // nothing was known before, or everything is read
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

// prove looks for the proof that the service sorts. If a later run continues this one,
// prove makes sure too that no result lacks the time of its change. In other runs the
// results that are read show it. A proof is remembered, and looked at again once a day.
func (s *Start) prove(ctx context.Context, f reading.Form, feed *extract.Feed, later bool) error {
	at := f.Now().UTC()
	recent := at.Sub(s.base.WitnessAt).Abs() < daily
	if feed.Apart {
		s.state.Witness = extract.UpdateMeta
	}
	if recent && s.state.Witness != "" {
		return nil
	}
	s.state.WitnessAt = at
	if later {
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
		return &extract.FeedError{Problem: "nothing shows that the service sorts: its answers are in the order of ids or dates"}
	}
	f.Log.LogAttrs(ctx, slog.LevelDebug, "the service sorts", slog.String("column", witness))
	return nil
}

// from returns where the feed is read back to if this is known.
func from(c load.Changes) time.Time {
	if back := floor(c.KnownTo.Time); back.After(c.KnownFrom.Time) {
		return back
	}
	return c.KnownFrom.Time
}

// floor returns where the feed is read back to for a moment that is known.
func floor(t time.Time) time.Time { return t.Add(-Margin) }

// Void gives the feed up, because results carry no time of change.
func (s *Start) Void(f reading.Form, reason string) {
	s.Usable, s.Reason = false, reason
	s.state.Witness, s.state.WitnessAt = "", f.Now().UTC()
}

// More asks what changed since the feed was asked before, and adds it to Named. That
// was a moment ago, so it reads the margin only as far as one page reaches. The error is a *extract.FeedError if the service does not tell.
func (s *Start) More(ctx context.Context, f reading.Form) (more []extract.Change, err error) {
	feed, err := extract.ReadFeed(ctx, f.Client, f.Name, reading.Query(f.Def.Extract), func(time.Time) time.Time { return s.newest })
	if err != nil {
		return nil, err
	}
	newest := feed.Newest()
	more = slices.DeleteFunc(feed.Changes, func(c extract.Change) bool { return c.At.Before(from(s.state)) || s.Saw(c) })
	s.Named = append(s.Named, more...)
	s.margin = append(s.margin, more...)
	return more, s.close(ctx, f, more, newest)
}

// Since asks what changed since the run began, and in the margin before. The newest
// change is the first. The error is a *extract.FeedError if the service does not tell.
func (s *Start) Since(ctx context.Context, f reading.Form) ([]extract.Change, error) {
	back := from(s.state)
	feed, err := extract.ReadFeed(ctx, f.Client, f.Name, reading.Query(f.Def.Extract), func(time.Time) time.Time { return back })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(feed.Changes, func(c extract.Change) bool { return c.At.Before(back) }), nil
}
