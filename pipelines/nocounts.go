package pipelines

import (
	"context"
	"errors"
	"log/slog"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// API v2 has no request for a count. Counts are taken from its headers, and nothing
// promises what these hold. If they are missing, or do not agree with the results that
// come, a run reads without counts, and its report says that the proof is weaker.

// Reasons for reading without counts.
const (
	tellsNoCounts    = "the service's answers do not tell how many results there are"
	tellsWrongCounts = "the service's headers do not agree with the results that come"
)

// doubtsCounts tells whether a run that failed begins again without counts.
func (f *formRun) doubtsCounts(err error) bool {
	return f.reader.Countless == "" && countless(err, f.reader.CountMethod()) != ""
}

// countless returns why a run that failed can do without counts, "" if it cannot. method
// is how it counts. Counts that a request of their own gives are never doubted.
func countless(err error, method string) string {
	if errors.Is(err, extract.ErrNoCount) {
		return tellsNoCounts
	}
	if method == load.MethodPagination && isError[*reconcile.VerifyError](err) {
		return tellsWrongCounts
	}
	return ""
}

// withoutCounts gives the same run once more, which asks for no counts.
func (f *formRun) withoutCounts(ctx context.Context, err error) *formRun {
	why := countless(err, f.reader.CountMethod())
	f.reader.Log.LogAttrs(ctx, slog.LevelWarn, "the run begins again without counts, so that nothing is compared with them", slog.String("reason", err.Error()))
	again := f.again()
	again.reader.Countless = why
	again.drift(why)
	return again
}
