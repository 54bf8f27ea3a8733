package cli

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// summary tells a person on standard error what was made.
func (a *app) summary(r *pipelines.Report, machinesZone bool) {
	for _, f := range r.Forms {
		if f.Error != "" {
			continue // the error says it
		}
		for _, out := range f.Outputs {
			what := "result"
			if out.Explode != "" {
				what = "row"
			}
			a.logs.tell(levelInfo, fmt.Sprintf("%s: %s to %s (%s)", f.Form, plural(int(out.Rows), what), placeOf(out), size(out.Bytes)),
				slog.String("form", f.Form), slog.Int64("rows", out.Rows), slog.String("path", out.Path), slog.Int64("bytes", out.Bytes))
			for _, w := range out.Warnings {
				a.logs.tell(levelWarn, fmt.Sprintf("%s: note: %s", f.Form, w))
			}
		}
		a.logs.tell(levelInfo, f.Form+": "+strings.Join(remarks(r, f, machinesZone), "; "))
		for _, d := range f.Drift {
			a.logs.tell(levelWarn, fmt.Sprintf("%s: note: %s", f.Form, d))
		}
	}
}

func placeOf(out pipelines.OutputReport) string {
	if out.Path == definition.StdoutPath {
		return "standard output"
	}
	return out.Path
}

func remarks(r *pipelines.Report, f *pipelines.FormReport, machinesZone bool) []string {
	parts := []string{verifiedSentence(f), plural(int(r.Requests.Results+r.Requests.Count+r.Requests.Retries), "request")}
	if f.Rejected > 0 {
		parts = append(parts, thousands(f.Rejected)+" rejected")
	}
	if f.Replaced > 0 {
		parts = append(parts, plural(int(f.Replaced), "forbidden character")+" replaced")
	}
	zone := "times in " + f.Timezone
	if machinesZone {
		zone += ", this machine's zone (--timezone names the account's)"
	}
	return append(parts, zone)
}

func verifiedSentence(f *pipelines.FormReport) string {
	switch {
	case f.Verified == nil:
		return "not verified"
	case f.Verified.Match && f.Undated > 0:
		return fmt.Sprintf("verified: the service counts %s with a date, and %s without one", thousands(f.Verified.Counted), thousands(f.Undated))
	case f.Verified.Match:
		return "verified: the service counts " + thousands(f.Verified.Counted)
	case f.Verified.Reason == "":
		return fmt.Sprintf("verified: %s lies between the service's counts before and after, as results came and went; the last is %s",
			thousands(f.Verified.Extracted), thousands(f.Verified.Counted))
	}
	return "not verified: " + f.Verified.Reason
}

// thousands groups digits: 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size shows bytes to people.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
