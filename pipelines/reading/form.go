package reading

import (
	"context"
	"log/slog"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/definition"
)

// Form is one form of an account, and how a run asks the service about it.
type Form struct {
	Def    *definition.Definition
	Name   string
	Client extract.Client // of this form alone: it counts what the form costs
	Pages  *extract.Reader
	RunID  string
	Began  time.Time
	Now    func() time.Time
	Log    *slog.Logger
	At     func(point string) // is told when the run comes to a point
	Slots  Slots              // of the windows of all forms of the run
	// Dateless tells that no request has dates, since the service ignores them.
	Dateless bool
}

// Query asks for the results that a definition is about, of any time.
func Query(e definition.Extract) extract.ResultsQuery {
	return extract.ResultsQuery{Search: e.Search, View: e.View, CustomLabels: e.CustomLabels}
}

// Filtered tells whether the results are fewer than counts count: the count
// knows neither searches nor views (specification, section 4.6).
func (f Form) Filtered() bool {
	return len(f.Def.Extract.Search.Where) > 0 || f.Def.Extract.View != ""
}

// Counter asks the service how many results a span of time holds.
func (f Form) Counter() extract.Counter {
	return func(ctx context.Context, w extract.Window) (int64, error) {
		if f.Dateless {
			w = extract.Window{}
		}
		return f.Client.Count(ctx, f.Name, extract.CountQuery{Window: w})
	}
}

// usable is a count that says how many results a window gives: none does
// where a search or a view leaves results out.
func (f Form) usable(count int64) int64 {
	if f.Filtered() {
		return extract.Unknown
	}
	return count
}
