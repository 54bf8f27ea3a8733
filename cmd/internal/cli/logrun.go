package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas"
)

// logSummary writes the run's last record. log knows the pipeline and the
// run's id.
func logSummary(ctx context.Context, log *slog.Logger, r *pipelines.Report, err error) {
	level, text := levelInfo, "run finished"
	if err != nil {
		level, text = slog.LevelError, "run failed"
	}
	log.LogAttrs(ctx, level, text, summaryOf(r, err)...)
}

// logForm writes what became of a form.
func logForm(ctx context.Context, log *slog.Logger, f *pipelines.FormReport) {
	for _, d := range f.Drift {
		log.LogAttrs(ctx, slog.LevelWarn, "drift", slog.String("change", d))
	}
	logChanges(ctx, log, f.Changes)
	attrs := []slog.Attr{
		slog.Int("windows", f.Windows), slog.Int64("rows", f.Rows), slog.Int64("rejected", f.Rejected),
		slog.Int64("undated", f.Undated), slog.String("verified", verifiedWord(f)), slog.Int("exit_code", f.ExitCode),
	}
	if f.Continued != "" {
		attrs = append(attrs, slog.String("continued", f.Continued), slog.Int("windows_kept", f.Kept))
	}
	if f.Error == "" {
		log.LogAttrs(ctx, levelInfo, "form done", attrs...)
		return
	}
	log.LogAttrs(ctx, slog.LevelError, "form failed", append(attrs, slog.String("error", f.Error))...)
}

// mostChanges is how many changes of a form are logged; the report has all.
const mostChanges = 50

// logChanges writes a line for each change of the form, and one for those that
// are too many.
func logChanges(ctx context.Context, log *slog.Logger, changes []schemas.Change) {
	for i, c := range changes {
		if i == mostChanges {
			log.LogAttrs(ctx, slog.LevelWarn, "the form changed more than is logged; the report has it all", slog.Int("changes", len(changes)))
			return
		}
		attrs := []slog.Attr{slog.String("change", string(c.Kind)), slog.String("from", c.From), slog.Bool("breaking", c.Breaking)}
		for _, a := range []slog.Attr{
			slog.String("column", c.Column), slog.String("key", c.Key), slog.String("was", c.Was), slog.String("is", c.Is), slog.String("label", c.Label),
		} {
			if a.Value.String() != "" {
				attrs = append(attrs, a)
			}
		}
		log.LogAttrs(ctx, slog.LevelWarn, "the form changed", attrs...)
	}
}

// summaryOf is a run in one line, with keys that do not change.
func summaryOf(r *pipelines.Report, err error) []slog.Attr {
	var rows, rejected, bytes int64
	sizes := map[string]int64{} // by output: a run that went on with another reports it twice
	forms, failed := map[string]bool{}, map[string]bool{}
	var least load.WallTime
	for _, f := range r.Forms {
		rows, rejected = rows+f.Rows, rejected+f.Rejected
		forms[f.Form] = true
		if f.Error != "" {
			failed[f.Form] = true
		}
		for _, out := range f.Outputs {
			bytes += out.Bytes - sizes[out.Path]
			sizes[out.Path] = out.Bytes
			if w := out.Watermark; !w.IsZero() && (least.IsZero() || w.Before(least.Time)) {
				least = w
			}
		}
	}
	attrs := []slog.Attr{
		slog.Int("exit_code", r.ExitCode), slog.Int64("rows", rows), slog.Int64("rejected", rejected),
		slog.Int64("requests", r.Requests.Results+r.Requests.Count), slog.Int64("retries", r.Requests.Retries),
		slog.Int64("bytes", bytes), slog.Duration("duration", r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond)),
		slog.Int("forms", len(forms)), slog.Int("forms_failed", len(failed)),
	}
	if !least.IsZero() {
		attrs = append(attrs, slog.String("watermark", least.String()))
	}
	if until := comeBackAt(err); until != "" {
		attrs = append(attrs, slog.String("come_back_at", until))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	return attrs
}

// comeBackAt is when a budget that was used up allows the next request, in
// whole seconds and not too early; "" where that is not what a run waits for.
func comeBackAt(err error) string {
	used, ok := errors.AsType[*transport.BudgetError](err)
	if !ok || exitCode(err) != exitTemporary {
		return ""
	}
	return used.Until.Add(time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
}

func verifiedWord(f *pipelines.FormReport) string {
	switch {
	case f.Verified == nil:
		return "no"
	case f.Verified.Match:
		return "yes"
	case f.Verified.Reason == "":
		return "between counts"
	}
	return f.Verified.Reason
}
