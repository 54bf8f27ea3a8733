package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// summarise fills the form's report from what was read.
func (f *formRun) summarise(snapshot *reconcile.Snapshot) {
	s, r := snapshot.Stats, f.report
	r.Rows, r.Rejected, r.Rejects, r.Nulled = s.Rows, s.Rejected, reading.Faults(s.Rejects), reading.Faults(s.Nulled)
	for _, w := range snapshot.Windows {
		r.Replaced += w.Replaced
		if w.Undated != nil {
			r.Undated += w.Stats.Rows
		}
	}
	if len(s.Added) > 0 {
		names := make([]string, 0, len(s.Added))
		for _, c := range s.Added {
			names = append(names, c.Name)
		}
		f.drift("the schema does not list these fields, whose columns were added: " + strings.Join(names, ", "))
	}
	for _, c := range sorted(s.Joined) {
		f.drift(fmt.Sprintf("column %s is a string and met several values %d times; they were joined by |", c.key, c.n))
	}
	for _, c := range sorted(s.Shifted) {
		f.drift(fmt.Sprintf("column %s held %d times that %s skips; they were moved forward", c.key, c.n, f.reader.Def.Source.Zone))
	}
	ignored := map[string]int64{}
	for from, n := range s.Ignored {
		ignored[from.String()] = n
	}
	for _, c := range sorted(ignored) {
		f.drift(fmt.Sprintf("%s is not in the schema and was left out %d times (unknown: ignore)", c.key, c.n))
	}
	r.Changes = f.changes(reconcile.Columns(snapshot.Schema, snapshot.Labels, snapshot.Windows), s)
}

// changes are those of the form since the run before.
func (f *formRun) changes(columns []schemas.Column, s transform.Stats) []schemas.Change {
	before, whole := f.outputs.Before()
	return codebook.Form{Columns: columns, Labels: f.reader.Labels(), Stats: s}.Changes(before, whole)
}

// endFaults fills in what there is to mend where the results, or the form,
// ended the run before it was summarised: as far as it was read.
func (f *formRun) endFaults(ctx context.Context, err error) {
	unknown, fails := errors.AsType[*transform.UnknownFieldError](err)
	if !fails && !isError[*reading.RejectsError](err) {
		return
	}
	windows := f.reconciler.Windows
	s, unread := reading.Stats(context.WithoutCancel(ctx), f.reader.Checkpoint, windows)
	if unread != nil {
		s = reading.Counted(windows)
	}
	r := f.report
	r.Rejected, r.Rejects, r.Nulled = s.Rejected, reading.Faults(s.Rejects), reading.Faults(s.Nulled)
	r.Changes = f.changes(reconcile.Columns(f.reader.Schema, f.reader.Labels(), windows), s)
	if !fails {
		return
	}
	for _, from := range append([]schemas.Source{unknown.From}, unknown.Others...) {
		r.Changes = append(r.Changes, schemas.Change{
			Kind: schemas.ColumnAdded, From: from.String(), Label: f.reader.Labels()[from.ID], Breaking: true,
		})
	}
}

type keyCount struct {
	key string
	n   int64
}

func sorted(m map[string]int64) []keyCount {
	list := make([]keyCount, 0, len(m))
	for k, n := range m {
		list = append(list, keyCount{k, n})
	}
	slices.SortFunc(list, func(a, b keyCount) int { return cmp.Compare(a.key, b.key) })
	return list
}
