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
	Client extract.Client // only for this form, so that it counts the form's requests
	Pages  *extract.Reader
	RunID  string
	Began  time.Time
	Now    func() time.Time
	Wait   func(ctx context.Context, d time.Duration) error // returns the context's error if it ends first
	Log    *slog.Logger
	At     func(point string) // called when the run comes to a point
	Slots  Slots              // limit the windows that all forms of the run read at once
	// Watched gives the context of a window's requests, by which they are watched. nil:
	// nobody watches them.
	Watched func(context.Context, *Window) context.Context
	// Unordered means that windows are small, because the service does not page by
	// ascending ids. Then a window is read by one request after the other, in memory.
	Unordered bool
	// Dateless means that requests contain no dates, because the service ignores them.
	Dateless bool
	// Countless says why counts are of no use: the service's answers do not tell them, or
	// tell wrong ones. It is "" if counts can be asked for.
	Countless string
}

// Query returns the query for the results of a definition, without bounds in time.
func Query(e definition.Extract) extract.ResultsQuery {
	return extract.ResultsQuery{Search: e.Search, View: e.View, CustomLabels: e.CustomLabels}
}

// PageSize returns how many results a full page holds. Without a client it is that of
// the XML generation.
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

// CountMethod returns how counts prove that all results were read, see load.Verified.
func (f Form) CountMethod() string {
	switch {
	case f.Countless != "":
		return load.MethodRead
	case f.Client != nil && f.Client.Generation() == "v2":
		return load.MethodPagination
	}
	return load.MethodCounts
}

// CoarseBounds tells whether bounds of dates may be coarser than the dates. Then a result
// can come in two adjacent windows. API v2 has dates of milliseconds, and nobody knows how
// it compares them (service-v2.md, section 10). API v1 has no dates between two seconds.
func (f Form) CoarseBounds() bool { return f.Client.Generation() == "v2" }

// Holds tells whether a window holds one of the results with some ids.
func (f Form) Holds(ctx context.Context, w extract.Window, ids extract.IDRange) (bool, error) {
	if f.Countless == "" {
		n, err := f.Client.Count(ctx, f.Name, extract.CountQuery{Window: w, IDs: ids})
		return n > 0, err
	}
	p, err := f.Client.Results(ctx, f.Name, extract.ResultsQuery{Window: w, IDs: ids, Limit: 1})
	if err != nil {
		return false, err
	}
	defer p.Release()
	return p.Len() > 0, nil
}

// Counter returns a function that asks the service how many results a window holds. It
// returns nil if counts are of no use.
func (f Form) Counter() extract.Counter {
	if f.Countless != "" {
		return nil
	}
	return func(ctx context.Context, w extract.Window) (int64, error) {
		if f.Dateless {
			w = extract.Window{}
		}
		return f.Client.Count(ctx, f.Name, extract.CountQuery{Window: w})
	}
}

// usable returns count if a window gives that many results. It returns
// extract.Unknown if a search or a view leaves some out.
func (f Form) usable(count int64) int64 {
	if f.Filtered() {
		return extract.Unknown
	}
	return count
}

// watched returns the context of a window's requests.
func (f Form) watched(ctx context.Context, w *Window) context.Context {
	if f.Watched == nil {
		return ctx
	}
	return f.Watched(ctx, w)
}
