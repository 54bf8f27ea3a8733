package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// statsOf are the sums over windows in order of time, so that what was added
// does not depend on which was read first. It is one pass over all that was
// read of them.
func (f *formRun) statsOf(ctx context.Context, windows []*windowRun) (s transform.Stats, err error) {
	s = countsOf(windows)
	s.Seen, err = f.seenIn(ctx, windows)
	return s, err
}

// statsFor is statsOf once nothing is read any more.
func (f *formRun) statsFor(ctx context.Context, windows []*windowRun) (transform.Stats, error) {
	if len(windows) == len(f.windows) {
		return f.final, nil
	}
	return f.statsOf(ctx, windows)
}

// countsOf is statsOf without what the rows were seen to hold.
func countsOf(windows []*windowRun) (s transform.Stats) {
	for _, w := range windows {
		s.Add(w.stats)
	}
	return s
}

// checkRejects fails the run as soon as more results are rejected than the
// schema allows. A result that moved between two readings may be rejected in
// both windows: it counts once.
func (f *formRun) checkRejects() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := f.schema.MaxRejects
	if f.rejects <= int64(most) || f.rejectedIDs() <= most {
		return nil
	}
	s := countsOf(f.windows)
	e := &RejectsError{Form: f.form, Rejected: s.Rejected, Max: most}
	for _, c := range faults(s.Rejects) {
		e.Faults = append(e.Faults, fmt.Sprintf("%s: %s: %d", c.Column, c.Reason, c.Count))
		if len(e.Faults) == 5 {
			break
		}
	}
	return e
}

// rejectedIDs is how many results are among the rejects that windows keep,
// which is more than the schema allows where a window has more.
func (f *formRun) rejectedIDs() int {
	ids := map[int64]bool{}
	for _, w := range f.windows {
		for _, r := range w.rejects {
			ids[r.ResultID] = true
		}
	}
	return len(ids)
}

// faults lists counts by column and reason, the most frequent first.
func faults(m map[transform.Fault]int64) []FaultCount {
	list := make([]FaultCount, 0, len(m))
	for k, n := range m {
		list = append(list, FaultCount{Column: k.Column, Reason: k.Reason, Count: n})
	}
	slices.SortFunc(list, func(a, b FaultCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// summarise fills the form's report from what was read.
func (f *formRun) summarise(ctx context.Context) (err error) {
	if f.final, err = f.statsOf(ctx, f.windows); err != nil {
		return err
	}
	s, r := f.final, f.report
	r.Rows, r.Rejected, r.Rejects, r.Nulled = s.Rows, s.Rejected, faults(s.Rejects), faults(s.Nulled)
	for _, w := range f.windows {
		r.Replaced += w.replaced
		if w.undated != nil {
			r.Undated += w.stats.Rows
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
		f.drift(fmt.Sprintf("column %s held %d times that %s skips; they were moved forward", c.key, c.n, f.def.Source.Zone))
	}
	ignored := map[string]int64{}
	for from, n := range s.Ignored {
		ignored[from.String()] = n
	}
	for _, c := range sorted(ignored) {
		f.drift(fmt.Sprintf("%s is not in the schema and was left out %d times (unknown: ignore)", c.key, c.n))
	}
	r.Changes = f.changes(s)
	return nil
}

// endFaults fills in what there is to mend where the results, or the form,
// ended the run before it was summarised: as far as it was read.
func (f *formRun) endFaults(ctx context.Context, err error) {
	unknown, fails := errors.AsType[*transform.UnknownFieldError](err)
	if !fails && !isError[*RejectsError](err) {
		return
	}
	r := f.report
	s, unread := f.statsOf(context.WithoutCancel(ctx), f.windows)
	if unread != nil {
		s = countsOf(f.windows)
	}
	r.Rejected, r.Rejects, r.Nulled = s.Rejected, faults(s.Rejects), faults(s.Nulled)
	r.Changes = f.changes(s)
	if !fails {
		return
	}
	for _, from := range append([]schemas.Source{unknown.From}, unknown.Others...) {
		r.Changes = append(r.Changes, schemas.Change{
			Kind: schemas.ColumnAdded, From: from.String(), Label: f.labels[from.ID], Breaking: true,
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

// columns are the schema's columns that are written and those that the windows
// added, with labels where the form's headings are known.
func (f *formRun) columns(windows []*windowRun) []schemas.Column {
	added := make([][]schemas.Column, 0, len(windows))
	for _, w := range windows {
		added = append(added, w.stats.Added)
	}
	all := (&schemas.Schema{Columns: schemas.Merge(f.schema.Columns, schemas.Merge(nil, added...))}).Written()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, c := range all {
		if c.Label == "" {
			all[i].Label = f.labels[c.From.ID]
		}
	}
	return all
}

// seenForm is what the run saw of the form, by columns and statistics.
func (f *formRun) seenForm(columns []schemas.Column, s transform.Stats) codebook.Form {
	f.mu.Lock()
	defer f.mu.Unlock()
	return codebook.Form{Columns: columns, Labels: f.labels, Stats: s}
}

// described are columns as the next manifest lists them. before is the manifest of
// the run before, nil where there was none.
func (f *formRun) described(columns []schemas.Column, before *load.Manifest) []load.Column {
	list := manifestColumns(columns, f.schema.HMACKey)
	f.seenForm(columns, f.final).Describe(list, before)
	return list
}

// changes are those of the form since the run before.
func (f *formRun) changes(s transform.Stats) []schemas.Change {
	before, whole := f.manifestBefore()
	return f.seenForm(f.columns(f.windows), s).Changes(before, whole)
}

// manifestBefore is the manifest that the form is compared with: that of the first
// output that has one. Child outputs are left out, because they lack the other
// columns. whole tells that the run's manifest will not keep columns that this run
// does not have.
func (f *formRun) manifestBefore() (m *load.Manifest, whole bool) {
	for _, t := range f.live() {
		m, _ := manifestOf(t.out)
		if m == nil || t.def.Exploded() || m.Form != f.form || m.Source != nil && m.Source.Account != f.def.Source.Account {
			continue
		}
		_, file := t.out.(*fileOutput)
		return m, file || f.full
	}
	return nil, false
}
