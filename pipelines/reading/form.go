package reading

import (
	"context"
	"log/slog"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Form is one form of an account, and how a run asks the service about it.
type Form struct {
	Def    *definition.Definition
	Name   string
	Client extract.Client // a client of this form only, so that it counts the form's requests
	Pages  *extract.Reader
	RunID  string
	Began  time.Time
	Now    func() time.Time
	Wait   func(ctx context.Context, d time.Duration) error // returns the context's error if it ends first
	Log    *slog.Logger
	At     func(point string) // called when the run comes to a point such as PointRead
	Slots  Slots              // limits the windows that all forms of the run read at once
	// Countless says why counts are of no use: the service's answers do not tell them, or
	// tell wrong ones. It is "" if counts can be asked for.
	Countless string
}

// Query returns the query for the results of a definition, without bounds in time.
func Query(e definition.Extract) extract.ResultsQuery {
	return extract.ResultsQuery{Search: e.Search, View: e.View, CustomLabels: e.CustomLabels}
}

// PageSize returns how many results a full page holds. Without a client it is the page size
// of the service's XML generation.
func (f Form) PageSize() int64 {
	if f.Client == nil {
		return extract.PageSize
	}
	return int64(f.Client.PageSize())
}

// Filtered tells whether the definition leaves out results that counts include.
// Counts ignore searches and views (specification, section 4.6).
func (f Form) Filtered() bool {
	return len(f.Def.Extract.Search.Where) > 0 || f.Def.Extract.View != ""
}

// Uncounted says why counts cannot show whether all results were read, so that an incremental run
// reads its lookback; "" if counts can show it.
func (f Form) Uncounted() string {
	switch {
	case f.Filtered():
		return "the service cannot count the results of a search or a view"
	case !f.Def.Extract.Verify:
		return "the definition says verify: false"
	}
	return f.Countless
}

// CountMethod returns how the run proves that all results were read where it compares counts:
// a Method of load.Verified.
func (f Form) CountMethod() string {
	switch {
	case f.Countless != "":
		return load.MethodRead
	case f.Client != nil && f.Client.Generation() == "v2":
		return load.MethodPagination
	}
	return load.MethodCounts
}

// CoarseBounds tells whether the bounds of a query are coarser than the dates of results. API
// v2 has dates in milliseconds, and bounds in whole seconds that leave their own second out. So
// a window also gets the results of the second before it (service-v2.md, section 9).
func (f Form) CoarseBounds() bool { return f.Client.Generation() == "v2" }

// Overlap returns how many results before the time `from` the service includes in its count
// of a window that begins at that time. See CoarseBounds.
func (r *Reader) Overlap(ctx context.Context, from time.Time) (n int64, err error) {
	if known, ok := r.overlaps.Load(from); ok {
		return known.(int64), nil
	}
	if n, err = extract.Overlap(ctx, r.Client, r.Name, extract.CountQuery{Window: extract.Window{From: from}}); err == nil {
		r.overlaps.Store(from, n)
	}
	return n, err
}

// ForgetOverlaps makes Overlap ask the service again instead of using what it found before.
func (r *Reader) ForgetOverlaps() { r.overlaps.Clear() }

// Holds asks the service whether a window holds a result with an id in a range. The zero range
// stands for all ids.
func (f Form) Holds(ctx context.Context, w extract.Window, ids extract.IDRange) (bool, error) {
	if f.Countless == "" && !f.Filtered() && !f.CoarseBounds() {
		n, err := f.Client.Count(ctx, f.Name, extract.CountQuery{Window: w, IDs: ids})
		return n > 0, err
	}
	q := Query(f.Def.Extract)
	q.Window, q.IDs, q.Limit = w, ids, 1
	for {
		p, err := f.Client.Results(ctx, f.Name, q)
		if err != nil {
			return false, err
		}
		early, found := p.DropEarly(), p.Len()
		p.Release()
		if early == 0 || found > 0 || q.Limit == 0 {
			return found > 0, nil
		}
		q.Limit = 0 // a whole page: results of the window may follow the early one
	}
}

// Counter returns a function that asks the service how many results a window holds. It
// returns nil if counts are of no use.
func (f Form) Counter() extract.Counter {
	if f.Countless != "" {
		return nil
	}
	return func(ctx context.Context, w extract.Window) (int64, error) {
		return f.Client.Count(ctx, f.Name, extract.CountQuery{Window: w})
	}
}
