package telemetry

import (
	"context"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines"
)

// LogRejects warns of the results that a run rejected and wrote without. It says where
// they stand, and how they are read again. A run that failed because of too many says so
// itself.
func LogRejects(ctx context.Context, log *slog.Logger, r *pipelines.Report) {
	var rejected int64
	var letters []string
	for _, f := range r.Forms {
		if paths := deadLetters(f); len(paths) > 0 {
			rejected, letters = rejected+f.Rejected, append(letters, paths...)
		}
	}
	if len(letters) > 0 {
		log.LogAttrs(ctx, slog.LevelWarn, "results were rejected and are in no output", slog.Int64("rejected", rejected),
			slog.String("dead_letters", strings.Join(letters, ", ")), slog.String("hint", replayHint(r)))
	}
}

// noteRejects tells a person who watched a form's export what it rejected.
func (l *Log) noteRejects(r *pipelines.Report, f *pipelines.FormReport) {
	if f.Rejected == 0 {
		return
	}
	letters := deadLetters(f)
	where := "-o FILE writes them down beside the file"
	attrs := []slog.Attr{slog.String("form", f.Form), slog.Int64("rejected", f.Rejected)}
	if len(letters) > 0 {
		where = "they stand in " + strings.Join(letters, ", ")
		attrs = append(attrs, slog.String("dead_letters", strings.Join(letters, ", ")))
	}
	l.Tell(slog.LevelWarn, f.Form+": note: "+show.Plural(f.Rejected, "result")+" rejected; "+where+"; "+replayHint(r), attrs...)
}

// deadLetters are the files with what a form's run rejected, one for each output.
func deadLetters(f *pipelines.FormReport) (paths []string) {
	for _, out := range f.Outputs {
		if out.DeadLetters != "" {
			paths = append(paths, out.DeadLetters)
		}
	}
	return paths
}

// replayHint says how rejected results are read again.
func replayHint(r *pipelines.Report) string {
	if r.Definition == "" {
		return "mend the schema, then export again"
	}
	return "mend the schema, then run `formetl replay " + r.Definition + "`"
}
