package pipelines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
	"github.com/formetl/formetl/transform"
)

// summarise fills the form's report from the snapshot: rows, rejects, changes and drift.
func (f *formRun) summarise(snapshot *reconcile.Snapshot) {
	s, r := snapshot.Stats, f.report
	r.Rows, r.Rejected, r.Rejects, r.Nulled = s.Rows, s.Rejected, reading.Faults(s.Rejects), reading.Faults(s.Nulled)
	for _, w := range snapshot.Windows {
		r.Replaced += w.Replaced
		if w.Undated != nil {
			r.Undated += w.Stats.Rows
		}
	}
	if c := snapshot.Changes; c != nil {
		r.ResultChanges = &ChangesReport{Method: c.Method, Reason: c.Reason, KnownTo: c.KnownTo, Changed: snapshot.Named, StaleParts: snapshot.Older}
	}
	if len(s.Added) > 0 {
		names := make([]string, 0, len(s.Added))
		for _, c := range s.Added {
			names = append(names, c.Name)
		}
		f.drift("new columns that the schema does not list were added: " + strings.Join(names, ", "))
	}
	for _, column := range slices.Sorted(maps.Keys(s.Joined)) {
		f.drift(fmt.Sprintf("column %s is a string, but %s had several values, which were joined by |; to keep them apart, write type: list<string> in the schema", column, plain.Plural(s.Joined[column], "result")))
	}
	if columns := slices.Sorted(maps.Keys(s.Shifted)); len(columns) > 0 && f.job.Def.Outputs[0].Select == nil {
		f.drift(fmt.Sprintf("some times in %s lay in an hour that %s skips when clocks change, and were moved forward", strings.Join(columns, ", "), f.reader.Def.Source.Zone))
	}
	for _, note := range unreadNotes(s) {
		f.drift(note)
	}
	for _, c := range snapshot.Schema.Columns {
		item := snapshot.Schema.Find(c.From.Item())
		if c.From.Kind == schemas.FromOther && f.reader.Client.Generation() == "v1" && (item < 0 || len(snapshot.Schema.Columns[item].Choices) == 0) {
			f.drift(fmt.Sprintf("column %s stays empty, because API v1 does not mark which answers were typed in; use API v2 (api: v2 or --api v2), or list the choices of the question %q in the schema file, such as choices: [red, blue]", c.Name, c.From.Item()))
		}
	}
	columns := reconcile.Columns(snapshot.Schema, snapshot.Labels, snapshot.Windows)
	r.Changes = formChanges(f, columns, snapshot.Labels, s)
	for _, c := range r.Changes {
		has := slices.ContainsFunc(columns, func(is schemas.Column) bool { return is.From.String() == c.From })
		if has && c.Kind == schemas.ColumnRemoved && f.job.Def.File == "" { // an export tells no changes
			f.drift(fmt.Sprintf("column %s stays empty, because the form has no %s", c.Column, c.From))
		}
	}
}

// unreadNotes returns texts about values of inferred columns that became null because they
// could not be read as times: one text for each column.
func unreadNotes(s transform.Stats) (notes []string) {
	for _, column := range slices.Sorted(maps.Keys(s.FirstNulled)) {
		var n int64
		for at, nulled := range s.Nulled {
			if at.Column == column {
				n += nulled
			}
		}
		if n > 0 { // with 0 the results with such values were rejected
			notes = append(notes, fmt.Sprintf("column %s: %s, such as %q, became null, because they are not of the form YYYY-MM-DD HH:MM:SS; to get them, write a schema file with `formetl schema infer`, give the column a `format:` there, and read all results again", column, plain.Plural(n, "value"), s.FirstNulled[column]))
		}
	}
	return notes
}

// formChanges returns what changed on the form since the run that wrote the outputs' manifest.
func formChanges(f *formRun, columns []schemas.Column, labels map[string]string, s transform.Stats) []schemas.Change {
	before, whole := f.outputs.Before()
	return output.FormSeen{Columns: columns, Labels: labels, Stats: s}.Changes(before, whole)
}

// endFaults completes the report of a run that ended because of rejected results or
// an unknown field. It lists all rejects and unknown fields, as far as the form was read.
func (f *formRun) endFaults(ctx context.Context, err error) {
	unknown, fails := errors.AsType[*transform.UnknownFieldError](err)
	if !fails && !isError[*reading.RejectsError](err) {
		return
	}
	windows := f.windows()
	s, unread := reading.Stats(context.WithoutCancel(ctx), f.reader.Checkpoint, windows)
	if unread != nil {
		s = reading.Counted(windows)
	}
	r := f.report
	// After the error further results were read, until all readings had ended.
	if many, ok := errors.AsType[*reading.RejectsError](err); ok {
		s.Rejected = max(s.Rejected, many.Rejected)
		many.Rejected, many.Faults, many.Rejects = s.Rejected, s.Rejects, nil
		for _, w := range windows {
			many.Rejects = append(many.Rejects, w.Rejects...)
		}
	}
	r.Rejected, r.Rejects, r.Nulled = s.Rejected, reading.Faults(s.Rejects), reading.Faults(s.Nulled)
	r.Changes = formChanges(f, reconcile.Columns(f.reader.Schema, f.reader.Labels(), windows), f.reader.Labels(), s)
	if !fails {
		return
	}
	for _, from := range append([]schemas.Source{unknown.Column.From}, unknown.Others...) {
		label, _ := from.Label(f.reader.Labels())
		r.Changes = append(r.Changes, schemas.Change{Kind: schemas.ColumnAdded, From: from.String(), Label: label, Breaking: true})
	}
}
