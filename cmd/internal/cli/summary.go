package cli

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/pipelines"
)

const levelWarn = slog.LevelWarn

// summary tells a person on standard error what was made.
func (a *app) summary(r *pipelines.Report, machinesZone bool) {
	for _, f := range r.Forms {
		for _, out := range f.Outputs {
			to := out.Path
			if to == pipelines.StdoutPath {
				to = "standard output"
			}
			fmt.Fprintf(a.stderr, "%s: %s results to %s (%s)\n", f.Form, thousands(out.Rows), to, size(out.Bytes))
		}
		parts := []string{verifiedSentence(f), fmt.Sprintf("%s requests", thousands(r.Requests.Results+r.Requests.Count+r.Requests.Retries))}
		if f.Rejected > 0 {
			parts = append(parts, thousands(f.Rejected)+" rejected")
		}
		if f.Replaced > 0 {
			parts = append(parts, thousands(f.Replaced)+" forbidden characters replaced")
		}
		zone := "times in " + f.Timezone
		if machinesZone {
			zone += ", this machine's zone (--timezone names the account's)"
		}
		parts = append(parts, zone)
		fmt.Fprintf(a.stderr, "%s: %s\n", f.Form, strings.Join(parts, "; "))
		for _, d := range f.Drift {
			fmt.Fprintf(a.stderr, "%s: note: %s\n", f.Form, d)
		}
	}
}

func verifiedSentence(f *pipelines.FormReport) string {
	switch {
	case f.Verified == nil:
		return "not verified"
	case f.Verified.Match:
		return "verified: the service counts " + thousands(f.Verified.Counted)
	}
	return "verified: " + f.Verified.Reason
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
