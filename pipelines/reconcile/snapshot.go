package reconcile

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Snapshot is what a run read, once all of it agrees with the service's counts, with itself
// and with older parts. A Snapshot does not change any more.
type Snapshot struct {
	Interval reading.Interval
	Windows  []*reading.Window // in order of time; the window of results without a date is last
	Schema   *schemas.Schema   // the columns that the run began with; windows may add more
	Labels   map[string]string // current labels of the headings, by id
	Stats    transform.Stats   // sums over all windows
	Replaced Replaced
	// Changes is what the manifests of datasets will say of changes; nil to leave what they say
	// now.
	Changes *load.Changes
	Named   int // results that the service named as changed since earlier runs
	Older   int // spans outside the range that were read again

	// Verified is what manifests say about the verification of all windows. VerifiedOwn is the
	// same for the windows of Own only.
	Verified, VerifiedOwn load.Verified

	rows         *checkpoint.Checkpoint
	rowsInMemory []arrow.RecordBatch // the rows of a snapshot without a checkpoint, see Looked
}

// Snapshot returns what was read, for package output. It is called after Reconcile. The error
// is that of reading statistics from the checkpoint.
func (c *Reconciler) Snapshot(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{
		Interval: c.Interval, Windows: c.Windows, Schema: c.Reader.Schema, Labels: c.Reader.Labels(), Replaced: c.Replaced(),
		rows: c.Reader.Checkpoint, Changes: c.changesAfter(), Older: len(c.older),
		Verified: c.verifiedOf(c.Windows, false), VerifiedOwn: c.verifiedOf(ownOf(c.Interval, c.Windows), true),
	}
	if c.Changes != nil && c.Interval.Continues {
		s.Named = len(c.Changes.Named)
	}
	var err error
	s.Stats, err = reading.Stats(ctx, s.rows, s.Windows)
	return s, err
}

// Looked returns the snapshot of one window whose rows are in memory, and in no checkpoint. v
// is what it says about the verification.
func Looked(i reading.Interval, w *reading.Window, rows []arrow.RecordBatch, schema *schemas.Schema, labels map[string]string, v load.Verified) *Snapshot {
	return &Snapshot{Interval: i, Windows: []*reading.Window{w}, Schema: schema, Labels: labels, Stats: w.Stats, rowsInMemory: rows, Verified: v, VerifiedOwn: v}
}

// changesAfter returns what the manifests say of changes after this run.
func (c *Reconciler) changesAfter() *load.Changes {
	if !c.Reader.Def.Extract.Incremental {
		return nil
	}
	asked := c.Changes
	if c.Lookback != "" {
		asked = NoChanges(manifestsOf(c.Parts), c.Lookback)
	}
	if asked == nil {
		return nil
	}
	// Time that the run did not read may hold results that changed, even if no part
	// covers that time.
	read, whole := c.Interval.Read, c.datasetTime()
	kept := !c.Full && read.From.After(whole.From) || slices.ContainsFunc(manifestsOf(c.Parts), func(m *load.Manifest) bool {
		_, kept := c.Replaced().Divide(m)
		return len(kept) > 0 || !c.Full && m != nil && read.To.Before(m.Watermark.Time)
	})
	e := changesEnd{
		Seen: c.readIDs().Union(c.outside), Later: c.later, Aside: kept && !c.Interval.Continues, To: c.Interval.Read.To,
		Lookback: kept && !asked.Continues,
		TookOver: asked.Continues && slices.ContainsFunc(c.Windows, func(w *reading.Window) bool { return w.Taken }),
	}
	return asked.manifest(e)
}

// Own returns the windows of the range that was asked for. It leaves out those
// that were added to read whole parts of datasets.
func (s *Snapshot) Own() []*reading.Window { return ownOf(s.Interval, s.Windows) }

func ownOf(i reading.Interval, windows []*reading.Window) (own []*reading.Window) {
	for _, w := range windows {
		p := w.Planned.Window
		before := !i.Asked.From.IsZero() && (p.From.IsZero() || p.From.Before(i.Asked.From))
		after := !i.Asked.To.IsZero() && (p.To.IsZero() || p.To.After(i.Asked.To))
		if w.Undated != nil && i.Everything() || w.OfRange() && !before && !after {
			own = append(own, w)
		}
	}
	return own
}

// Columns returns the columns that are written: those of the schema and those that windows
// added. A column without a label gets one from labels, the form's headings by id.
func Columns(schema *schemas.Schema, labels map[string]string, windows []*reading.Window) []schemas.Column {
	added := make([][]schemas.Column, 0, len(windows))
	for _, w := range windows {
		added = append(added, w.Stats.Added)
	}
	all := (&schemas.Schema{Columns: schemas.Merge(schema.Columns, schemas.Merge(nil, added...))}).Written()
	for i, c := range all {
		if c.Label == "" {
			all[i].Label, _ = c.From.Label(labels)
		}
	}
	return all
}

// StatsOf returns the sums of the statistics over some of the snapshot's windows.
func (s *Snapshot) StatsOf(ctx context.Context, windows []*reading.Window) (transform.Stats, error) {
	if len(windows) == len(s.Windows) {
		return s.Stats, nil
	}
	return reading.Stats(ctx, s.rows, windows)
}

// Rows calls visit with the rows of a window in ascending order of id. A batch
// is valid only during the call.
func (s *Snapshot) Rows(ctx context.Context, w *reading.Window, visit func(arrow.RecordBatch) error) error {
	if s.rows == nil {
		for _, b := range s.rowsInMemory {
			if err := visit(b); err != nil {
				return err
			}
		}
		return nil
	}
	return s.rows.RowsOf(ctx, w.Chains, visit)
}

// verifiedOf returns what a manifest of these windows says about the verification. With own
// it is about the range that was asked for, otherwise about the range that was read.
func (c *Reconciler) verifiedOf(windows []*reading.Window, own bool) load.Verified {
	v := *c.Verified
	if c.Changes.continues() {
		return v // here Verified is about the datasets as they are after the run
	}
	if v.Extracted = reading.Results(windows); v.Reason != "" {
		return v
	}
	switch {
	case !own:
		for _, r := range c.older {
			v.Counted += r.Counts[len(r.Counts)-1]
		}
	case c.Interval.Asked != c.Interval.Read:
		v.Counted = c.counted.own
	}
	switch w := undatedWindow(windows); {
	case w == nil:
	case w.Undated.Only != nil: // the run asked for ids, and the service did not count them
		v.Counted += w.Results()
	default:
		v.Counted += w.Counts[len(w.Counts)-1]
	}
	v.Match = v.Counted == v.Extracted
	return v
}
