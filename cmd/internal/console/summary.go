package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/uploads"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// LogForm logs the result of a form that has ended: its changes of columns, its figures and its
// error, which it tells once if several forms meet it. A person is told the error when the command
// ends.
func (l *Log) LogForm(ctx context.Context, log *slog.Logger, f *pipelines.FormReport) {
	f.ExitCode = ExitCode(f.Err)
	for _, d := range f.Drift {
		log.LogAttrs(ctx, slog.LevelWarn, d)
	}
	logChanges(ctx, log, f.Changes)
	if f.Files != nil && f.Files.Rest() != "" {
		log.LogAttrs(ctx, slog.LevelWarn, "some uploaded files were not stored; the list of files beside the output says which", slog.String("files", f.Files.Rest()), slog.String("path", f.Files.Path))
	}
	for _, out := range f.Outputs {
		if out.Error != "" && !strings.Contains(f.Error, out.Error) {
			log.LogAttrs(ctx, slog.LevelError, "an output failed; the next run tries it again", slog.String("path", out.Path), slog.String("error", out.Error))
		}
	}
	attrs := []slog.Attr{
		slog.Int("windows", f.Windows), slog.Int64("rows", f.Rows), slog.Int64("rejected", f.Rejected),
		slog.Int64("undated", f.Undated), slog.String("verified", VerifiedWord(f)), slog.Int("exit_code", f.ExitCode),
		slog.String("outcome", Outcome(f.ExitCode, Begun(f))), slog.Int64("requests", f.Requests.All()-f.Requests.Retries),
		slog.Int64("retries", f.Requests.Retries), slog.Duration("duration", f.EndedAt.Sub(f.StartedAt).Round(time.Millisecond)),
	}
	if f.Files != nil {
		attrs = append(attrs, fileCounts(f.Files), slog.Int64("files_fetched", f.Files.Fetched), slog.Int64("files_removed", f.Files.Removed))
	}
	if f.Verified != nil && f.Verified.Unproven != "" {
		attrs = append(attrs, slog.String("unproven", f.Verified.Unproven))
	}
	if f.Continued != "" {
		attrs = append(attrs, slog.String("continued", f.Continued), slog.Int("windows_kept", f.WindowsKept))
	}
	if c := f.ResultChanges; c != nil {
		attrs = append(attrs, slog.String("method", c.Method), slog.Int("older_parts_read_again", c.StaleParts))
		if c.Reason != "" {
			attrs = append(attrs, slog.String("method_reason", c.Reason))
		} else {
			attrs = append(attrs, slog.Int("changed", c.Changed), slog.String("changes_known_to", c.KnownTo.String()))
		}
	}
	if f.Error == "" {
		log.LogAttrs(ctx, slog.LevelInfo, "form done", attrs...)
		return
	}
	if l.ToPerson() {
		return
	}
	if !Begun(f) { // its cause is told with the form that failed, or with the stop
		log.LogAttrs(ctx, slog.LevelInfo, "form not begun, because another form's error or a stop ended the run; the next run reads it", attrs...)
		return
	}
	cause := f.Err
	if request, ok := errors.AsType[*transport.RequestError](cause); ok {
		cause = cmp.Or(request.Err, cause)
	}
	if first, told := l.causes.LoadOrStore(cause.Error(), f.Form); told {
		log.LogAttrs(ctx, slog.LevelInfo, "form failed", append(attrs, slog.String("reason", fmt.Sprintf("the same error as that of form %v", first)))...)
	} else {
		hint := Hint(f.Err, "formetl run", Resumable("the next run", &pipelines.Report{Forms: []*pipelines.FormReport{f}}))
		log.LogAttrs(ctx, slog.LevelError, "form failed", append(attrs, slog.String("error", f.Error), slog.String("hint", hint))...)
	}
}

// fileCounts returns how many uploaded files have which status, as attributes of the log.
func fileCounts(r *uploads.Report) slog.Attr {
	counts := make([]any, 0, len(r.Files))
	for _, status := range slices.Sorted(maps.Keys(r.Files)) {
		counts = append(counts, slog.Int64(string(status), r.Files[status]))
	}
	return slog.Group("files", counts...)
}

// Begun tells whether the run began to read a form.
func Begun(f *pipelines.FormReport) bool {
	_, not := errors.AsType[*pipelines.NotRunError](f.Err)
	return !not
}

// mostChanges is how many changes of a form's columns are logged; the report has all.
const mostChanges = 50

// saidOf says what each kind of change is.
var saidOf = map[schemas.ChangeKind]string{
	schemas.ColumnAdded: "a new question or field has a column", schemas.ColumnRemoved: "a column's question or field is gone",
	schemas.ColumnRenamed: "a column has another name", schemas.ColumnRelabelled: "a question has another label",
	schemas.ColumnRetyped: "a question has another type, or several values",
}

// logChanges writes a record for each change of a form's columns, and one for all changes beyond
// mostChanges.
func logChanges(ctx context.Context, log *slog.Logger, changes []schemas.Change) {
	for i, c := range changes {
		if i == mostChanges {
			log.LogAttrs(ctx, slog.LevelWarn, "the form has more changes than are logged; add --report FILE to see them all", slog.Int("changes", len(changes)))
			return
		}
		what := saidOf[c.Kind]
		if c.Column == "" && c.Breaking {
			what = "a new question or field is not in the schema, and unknown: fail ends the run"
		} else if c.Column == "" {
			what = "a new question or field is left out, as the schema does not list it"
		}
		attrs := []slog.Attr{slog.String("change", string(c.Kind)), slog.String("from", c.From), slog.Bool("breaking", c.Breaking)}
		for _, a := range []slog.Attr{
			slog.String("column", c.Column), slog.String("key", c.Key), slog.String("was", c.Was), slog.String("is", c.Is), slog.String("label", c.Label),
		} {
			if a.Value.String() != "" {
				attrs = append(attrs, a)
			}
		}
		if c.Kind == schemas.ColumnRemoved {
			attrs = append(attrs, slog.String("hint", "if the schema lists the column, it stays empty: correct its id there; or, if the question is gone, remove it (unless unknown: add is set, run with --full then)"))
		}
		log.LogAttrs(ctx, slog.LevelWarn, "the form or its schema changed: "+what, attrs...)
	}
}

// Totals are sums over forms of a run.
type Totals struct {
	Rows, Rejected, Undated, Bytes int64

	Failed    int           // forms that failed
	Watermark load.WallTime // all outputs are complete up to it; zero: not known
}

// TotalsOf returns the sums over forms.
func TotalsOf(forms ...*pipelines.FormReport) (t Totals) {
	for _, f := range forms {
		t.Rows, t.Rejected, t.Undated = t.Rows+f.Rows, t.Rejected+f.Rejected, t.Undated+f.Undated
		if f.Error != "" {
			t.Failed++
		}
		for _, out := range f.Outputs {
			t.Bytes += out.Bytes
			if w := out.Watermark; !w.IsZero() && (t.Watermark.IsZero() || w.Before(t.Watermark.Time)) {
				t.Watermark = w
			}
		}
	}
	return t
}

// LogSummary logs the last record of a run; err is the run's error. log holds the pipeline's
// name and the run's id. Programs read the keys of the record, so no key ever changes.
func LogSummary(ctx context.Context, log *slog.Logger, r *pipelines.Report, err error) {
	t := TotalsOf(r.Forms...)
	attrs := []slog.Attr{
		slog.Int("exit_code", r.ExitCode), slog.Int64("rows", t.Rows), slog.Int64("rejected", t.Rejected),
		slog.Int64("requests", r.Requests.All()-r.Requests.Retries), slog.Int64("retries", r.Requests.Retries),
		slog.Int64("bytes", t.Bytes), slog.Duration("duration", r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond)),
		slog.Int("forms", len(r.Forms)), slog.Int("forms_failed", t.Failed), slog.Int64("undated", t.Undated),
	}
	if !t.Watermark.IsZero() {
		attrs = append(attrs, slog.String("watermark", t.Watermark.String()))
	}
	if used, ok := errors.AsType[*transport.BudgetError](err); ok && ExitCode(err) == ExitTemporary {
		attrs = append(attrs, slog.String("come_back_at", transport.RoundUp(used.Until).UTC().Format(time.RFC3339)))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "run finished", attrs...)
}

// VerifiedWord returns a word for whether what was read agrees with the service's counts, or
// for why the two were not compared.
func VerifiedWord(f *pipelines.FormReport) string {
	switch {
	case f.Verified == nil, f.Verified.Unproven != "":
		return "no"
	case f.Verified.Match:
		return "yes"
	case f.Verified.Reason == "":
		return "yes, while results came and went"
	}
	return "not compared with counts: " + f.Verified.Reason
}

// Summarize tells a person what a run wrote and how it was verified. machinesZone says that
// the times are in this machine's time zone because no flag named the account's.
func (l *Log) Summarize(r *pipelines.Report, machinesZone bool) {
	for _, f := range r.Forms {
		if f.Error != "" {
			continue // the form's error tells it
		}
		for _, out := range f.Outputs {
			l.Tell(slog.LevelInfo, f.Form+": "+written(f, out), slog.String("form", f.Form), slog.Int64("rows", out.Rows), slog.String("path", out.Path), slog.Int64("bytes", out.Bytes))
		}
		if f.Files != nil {
			level, text := slog.LevelInfo, fmt.Sprintf("%s: %s stored in %s (%s)", f.Form, plain.Plural(f.Files.Files[transport.FileStored], "file"), f.Files.Path, Size(f.Files.Bytes))
			if rest := f.Files.Rest(); rest != "" {
				level, text = slog.LevelWarn, text+"; not stored: "+rest
			} else if r.Definition == "" && f.Files.Files[transport.FileStored] == 0 {
				text = f.Form + ": the columns written have no uploaded files (those that --select leaves out may have some); any files of earlier exports stay in " + f.Files.Path
			}
			if n := f.Files.Removed; n > 0 {
				text += "; " + plain.Plural(n, "file") + " of deleted or edited results removed"
			}
			l.Tell(level, text, slog.String("form", f.Form), fileCounts(f.Files), slog.String("path", f.Files.Path))
		}
		if r.Definition == "" { // for a definition's run the log tells it
			for _, d := range f.Drift {
				l.Tell(slog.LevelWarn, f.Form+": note: "+d)
			}
			l.noteRejects(r, f)
		}
		l.Tell(slog.LevelInfo, f.Form+": "+strings.Join(remarks(f, r.API, machinesZone), "; "))
	}
}

// written says how many results of a form an output has. A dataset may hold more than were read.
func written(f *pipelines.FormReport, out output.Report) string {
	what, place, size := "result", out.Path, ""
	if out.Explode != "" {
		what = "row"
	}
	if place == definition.StdoutPath {
		place = "standard output"
	}
	if out.Bytes > 0 {
		size = " (" + Size(out.Bytes) + ")"
	}
	if out.Explode == "" && out.Rows != f.Rows {
		return fmt.Sprintf("%s read; %s now holds %s%s", plain.Plural(f.Rows, what), place, plain.Plural(out.Rows, what), size)
	}
	return fmt.Sprintf("%s written to %s%s", plain.Plural(out.Rows, what), place, size)
}

func remarks(f *pipelines.FormReport, api string, machinesZone bool) []string {
	parts := append([]string{Verified(f)}, Changed(f.ResultChanges)...)
	if UndatedApart(f) {
		parts = append(parts, plain.Plural(f.Undated, "result")+" without a date")
	}
	if f.Rejected > 0 {
		parts = append(parts, plain.Plural(f.Rejected, "result")+" rejected")
	}
	if f.Continued != "" {
		parts = append(parts, "resumed from run "+f.Continued)
	}
	if f.Replaced > 0 {
		parts = append(parts, plain.Plural(f.Replaced, "invalid character")+" replaced by �")
	}
	zone := f.Timezone
	if machinesZone {
		zone += ", this machine's zone"
	}
	span := inclusive(f.Range)
	if f.ResultChanges != nil && !f.Range.From.IsZero() {
		span = "new ones " + span
	}
	return append(parts, span, "times in "+zone, plain.Plural(f.Requests.All(), "request")+" by API "+api)
}

// inclusive returns a range in words that name its first and its last moment. Whole days are named
// without the time of the day.
func inclusive(r load.Range) string {
	from, to := r.From.Time, extract.Later(r.From.Time, r.To.Add(-time.Second))
	layout := extract.WireTime
	if extract.UnitDay.Start(from).Equal(from) && extract.UnitDay.Start(r.To.Time).Equal(r.To.Time) {
		layout = time.DateOnly
	}
	switch {
	case r.To.IsZero() && from.IsZero():
		return "all dates"
	case from.IsZero():
		return "up to " + to.Format(layout)
	case r.To.IsZero():
		return "from " + from.Format(layout) + " on"
	case from.Format(layout) == to.Format(layout):
		return "only " + to.Format(layout)
	}
	return "from " + from.Format(layout) + " through " + to.Format(layout)
}

// Changed returns in words what changed since the last run.
func Changed(c *pipelines.ChangesReport) (parts []string) {
	switch {
	case c == nil:
		return nil
	case c.Method == load.MethodChanges && c.Changed > 0:
		parts = append(parts, plain.Plural(c.Changed, "result")+" changed since the last run")
	case c.Reason != "":
		parts = append(parts, "the service's list of changes was not used: "+c.Reason)
	}
	return parts
}

// Verified returns in words whether what was read agrees with the service's counts.
func Verified(f *pipelines.FormReport) string {
	switch {
	case f.Verified == nil:
		return "not verified"
	case f.Verified.Reason == pipelines.LimitGiven:
		return "not verified, because " + f.Verified.Reason
	case f.Verified.Unproven != "":
		return "not verified, because " + f.Verified.Unproven
	case f.Verified.Match && f.Undated > 0:
		return fmt.Sprintf("verified: the service counts %s with a date and %s without", plain.Plural(f.Verified.Counted, "result"), plain.Thousands(f.Undated))
	case f.Verified.Match && f.ResultChanges != nil && f.ResultChanges.Method == load.MethodChanges && f.Verified.Extracted != f.Rows+f.Rejected:
		return fmt.Sprintf("verified: the service counts %s with a date, and the dataset now holds as many with a date", plain.Plural(f.Verified.Counted, "result"))
	case f.Verified.Match && (f.Verified.Extracted < f.Rows+f.Rejected || f.Verified.Counted == 0): // older parts were read, or nothing is new
		return "verified: the service counts " + plain.Plural(f.Verified.Counted, "result") + " in this range"
	case f.Verified.Match:
		return "verified: the service counts " + plain.Plural(f.Verified.Counted, "result")
	case f.Verified.Reason == "":
		return fmt.Sprintf("verified: results came and went during the run; the %s with a date lie between the service's counts before and after (now %s)",
			plain.Thousands(f.Verified.Extracted), plain.Thousands(f.Verified.Counted))
	}
	return "all pages were read, but their results were not compared with a count: " + f.Verified.Reason
}

// UndatedApart tells whether results without a date were read that Verified does not mention.
func UndatedApart(f *pipelines.FormReport) bool {
	return f.Undated > 0 && (f.Verified == nil || f.Verified.Unproven != "" || !f.Verified.Match)
}

// LogRejects warns of the results of each form that a run rejected and left out. It names the files
// in which they are, and how to read them again. A run that failed because of too many rejects has
// an error that says so.
func LogRejects(ctx context.Context, log *slog.Logger, r *pipelines.Report) {
	for _, f := range r.Forms {
		if letters := deadLetters(f); letters != "" {
			log.LogAttrs(ctx, slog.LevelWarn, "results were rejected and are in no output; the files in dead_letters say which and why", slog.String("form", f.Form),
				slog.Int64("rejected", f.Rejected), slog.String("dead_letters", letters), slog.String("hint", replayHint(r)))
		}
	}
}

// noteRejects tells a person which results the export of a form rejected.
func (l *Log) noteRejects(r *pipelines.Report, f *pipelines.FormReport) {
	if f.Rejected == 0 {
		return
	}
	where := "with -o FILE they are written to a second file beside it"
	attrs := []slog.Attr{slog.String("form", f.Form), slog.Int64("rejected", f.Rejected)}
	if letters := deadLetters(f); letters != "" {
		where = "they are in " + letters
		attrs = append(attrs, slog.String("dead_letters", letters))
	}
	l.Tell(slog.LevelWarn, f.Form+": note: "+plain.Plural(f.Rejected, "result")+" rejected; "+where+"; "+replayHint(r), attrs...)
}

// deadLetters returns the paths of the dead letters that the run of a form wrote, joined by commas.
func deadLetters(f *pipelines.FormReport) string {
	var paths []string
	for _, out := range f.Outputs {
		if out.DeadLetters != "" {
			paths = append(paths, out.DeadLetters)
		}
	}
	return strings.Join(paths, ", ")
}

// replayHint returns the hint on how to read rejected results again.
func replayHint(r *pipelines.Report) string {
	if r.Definition == "" {
		return "fix the schema file, then run the same export again"
	}
	return "fix the schema, then run `formetl replay " + definition.ShellWord(r.Definition) + "`"
}

// SetExitCodes fills in the exit codes of a run that ended with err and of each of its forms, and
// the hints on what to do next.
func SetExitCodes(r *pipelines.Report, err error) {
	command, next := "formetl run", "the next run"
	if r.Definition == "" {
		command, next = "formetl export", "the same export within an hour"
	}
	if err != nil {
		r.ExitCode, r.Error, r.Hint = ExitCode(err), err.Error(), Hint(err, command, Resumable(next, r))
	}
	for _, f := range r.Forms {
		f.ExitCode = ExitCode(f.Err)
	}
}

// Resumable says how much of what failed runs had read a later run resumes from. next names that
// run, such as "the next run". It is "" if the failed runs had read nothing.
func Resumable(next string, reports ...*pipelines.Report) string {
	var results int64
	read := false
	for _, r := range reports {
		for _, f := range r.Forms {
			if f.ResultsKept != nil {
				read, results = true, results+*f.ResultsKept
			}
		}
	}
	switch {
	case !read:
		return ""
	case results == 0:
		return "what was read is read again; no results in the outputs are lost"
	}
	return next + " continues after " + plain.Plural(results, "result") + " already read"
}
