package pipelines

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// Resume bounds what a run takes over of the windows that one which ended early
// had spooled, and tells of it. The zero value takes over all that fits.
type Resume struct {
	Within time.Duration // windows whose reading began longer ago are read again; 0 is no bound
	// Told is called before the first request for results where some are taken
	// over: how many, and when the first of them was asked for. nil: nobody is.
	Told func(results int64, oldest time.Time)
}

// tooOld tells whether something was so long ago that it is not taken over.
func (f *formRun) tooOld(then time.Time) bool {
	return isOlder(f.o.Now(), then, f.o.Resume.Within)
}

// isOlder tells whether something was longer ago than a bound, of which 0 is
// none. What lies in the future was noted by another clock.
func isOlder(now, then time.Time, bound time.Duration) bool {
	return bound > 0 && now.Sub(then).Abs() > bound
}

// tellTakenOver tells who asked for it how many results are taken over.
func (f *formRun) tellTakenOver(left *leftSpool) {
	var results int64
	var oldest time.Time
	for _, w := range left.records {
		if n := w.Stats.Rows + w.Stats.Rejected; n > 0 && f.takes(spanOf(w.Range)) {
			if results += n; oldest.IsZero() || w.begunAt.Before(oldest) {
				oldest = w.begunAt
			}
		}
	}
	if results > 0 && f.o.Resume.Told != nil {
		f.o.Resume.Told(results, oldest)
	}
}

// dropOlder leaves out windows whose reading began longer ago than a bound.
func (l *leftSpool) dropOlder(now time.Time, bound time.Duration) {
	l.records = slices.DeleteFunc(l.records, func(w spooledWindow) bool { return isOlder(now, w.begunAt, bound) })
}

// tellKept tells the log and the report what the next run need not ask for:
// windows that were read whole lie in the spool, or in parts that the outputs'
// journals list.
func (f *formRun) tellKept(ctx context.Context, err error, spooled bool) {
	if err == nil {
		return
	}
	var windows int
	var results int64
	if spooled || f.frozen != nil && f.keeps(err) {
		for _, w := range f.windows {
			if w.done && w.readAt > 0 && !w.undated {
				windows, results = windows+1, results+w.extracted()
			}
		}
	}
	if spooled {
		f.log.LogAttrs(ctx, slog.LevelInfo, "windows that were read whole are kept in the spool; the next run goes on from there",
			slog.Int("windows", windows), slog.Int64("results", results), slog.String("path", f.spool.folder))
	}
	if f.rows > 0 || f.requests().Results > 0 {
		f.report.ResultsKept = &results
	}
}
