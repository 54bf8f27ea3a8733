package telemetry

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines"
)

// Summarize tells a person what a run wrote and how it was verified.
// machinesZone says that the times are in this machine's zone because nobody
// named the account's.
func (l *Log) Summarize(r *pipelines.Report, machinesZone bool) {
	for _, f := range r.Forms {
		if f.Error != "" {
			continue // the error says it
		}
		for _, out := range f.Outputs {
			what := "result"
			if out.Explode != "" {
				what = "row"
			}
			l.Tell(slog.LevelInfo, fmt.Sprintf("%s: %s to %s (%s)", f.Form, show.Plural(out.Rows, what), placeOf(out), show.Size(out.Bytes)),
				slog.String("form", f.Form), slog.Int64("rows", out.Rows), slog.String("path", out.Path), slog.Int64("bytes", out.Bytes))
			for _, w := range out.Warnings {
				l.Tell(slog.LevelWarn, fmt.Sprintf("%s: note: %s", f.Form, w))
			}
		}
		l.Tell(slog.LevelInfo, f.Form+": "+strings.Join(remarks(r, f, machinesZone), "; "))
		for _, d := range f.Drift {
			l.Tell(slog.LevelWarn, fmt.Sprintf("%s: note: %s", f.Form, d))
		}
	}
}

// placeOf is where an output lies, for a person.
func placeOf(out pipelines.OutputReport) string {
	if out.Path == pipelines.StdoutPath {
		return "standard output"
	}
	return out.Path
}

// remarks are what the last line of a form's summary says.
func remarks(r *pipelines.Report, f *pipelines.FormReport, machinesZone bool) []string {
	parts := []string{Verified(f), show.Plural(r.Requests.Results+r.Requests.Count+r.Requests.Retries, "request")}
	if f.Rejected > 0 {
		parts = append(parts, show.Thousands(f.Rejected)+" rejected")
	}
	if f.Replaced > 0 {
		parts = append(parts, show.Plural(f.Replaced, "forbidden character")+" replaced")
	}
	zone := "times in " + f.Timezone
	if machinesZone {
		zone += ", this machine's zone (--timezone names the account's)"
	}
	return append(parts, zone)
}

// Verified says in words whether what was read agrees with the service's counts.
func Verified(f *pipelines.FormReport) string {
	switch {
	case f.Verified == nil:
		return "not verified"
	case f.Verified.Match && f.Undated > 0:
		return fmt.Sprintf("verified: the service counts %s with a date, and %s without one", show.Thousands(f.Verified.Counted), show.Thousands(f.Undated))
	case f.Verified.Match:
		return "verified: the service counts " + show.Thousands(f.Verified.Counted)
	case f.Verified.Reason == "":
		return fmt.Sprintf("verified: %s lies between the service's counts before and after, as results came and went; the last is %s",
			show.Thousands(f.Verified.Extracted), show.Thousands(f.Verified.Counted))
	}
	return "not verified: " + f.Verified.Reason
}
