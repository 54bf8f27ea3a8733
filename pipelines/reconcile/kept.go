package reconcile

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
)

// One process may reconcile what was read, and others stage and commit it. They are given
// the snapshot without its rows, its ids and its statistics: those lie in the checkpoint,
// by the names of their pieces.

// keptSnapshot is a Snapshot as other processes get it.
type keptSnapshot struct {
	Interval interval.Interval `json:"interval"`
	Windows  []keptWindow      `json:"windows"`
	Spans    []reading.Older   `json:"spans,omitempty"` // older ones that windows belong to
	Labels   map[string]string `json:"labels,omitempty"`
	Replaced Replaced          `json:"replaced"`
	Changes  *load.Changes     `json:"changes,omitempty"`
	Named    int               `json:"named,omitempty"`
	Older    int               `json:"older,omitempty"`
	Whole    bool              `json:"whole,omitempty"`
	Verified load.Verified     `json:"verified"`
	Own      int64             `json:"own"`
	Counted  int64             `json:"counted"` // Snapshot.older
}

// keptWindow is a window with the names of its pieces. Without pieces it is known to be
// empty.
type keptWindow struct {
	Window  extract.Window `json:"window"`
	Count   int64          `json:"count"`
	Counts  []int64        `json:"counts,omitempty"`
	Span    int            `json:"span,omitempty"`    // from 1 in keptSnapshot.Spans; 0 for the run's own range
	Undated bool           `json:"undated,omitempty"` // it holds the results without a date
	Only    bool           `json:"only,omitempty"`    // see reading.Undated.Only
	Pieces  []string       `json:"pieces,omitempty"`
}

// MarshalJSON encodes the snapshot for Restore.
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	k := keptSnapshot{
		Interval: s.Interval, Labels: s.Labels, Replaced: s.Replaced, Changes: s.Changes, Named: s.Named, Older: s.Older,
		Whole: s.whole, Verified: s.verified, Own: s.own, Counted: s.older,
	}
	spans := map[*reading.Older]int{nil: 0}
	for _, w := range s.Windows {
		if _, ok := spans[w.Older]; !ok {
			k.Spans = append(k.Spans, *w.Older)
			spans[w.Older] = len(k.Spans)
		}
		is := keptWindow{Window: w.Planned.Window, Count: w.Planned.Count, Counts: w.Counts, Span: spans[w.Older]}
		if w.Undated != nil {
			is.Undated, is.Only = true, w.Undated.Only != nil
		}
		for _, p := range w.Pieces() {
			is.Pieces = append(is.Pieces, p.Name())
		}
		k.Windows = append(k.Windows, is)
	}
	return json.Marshal(k)
}

// Restore returns the snapshot that another process has encoded. r has settled its schema
// and opened the checkpoint. The error wraps checkpoint.ErrNoPlan if a piece is gone, and
// checkpoint.ErrDamaged if the data are no snapshot.
func Restore(ctx context.Context, r *reading.Reader, data []byte) (*Snapshot, error) {
	var k keptSnapshot
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, fmt.Errorf("%w: %w", checkpoint.ErrDamaged, err)
	}
	s := &Snapshot{
		Interval: k.Interval, Schema: r.Schema, Labels: k.Labels, Replaced: k.Replaced, Changes: k.Changes, Named: k.Named, Older: k.Older,
		whole: k.Whole, rows: r.Checkpoint, verified: k.Verified, own: k.Own, older: k.Counted,
	}
	var names []string
	for _, is := range k.Windows {
		names = append(names, is.Pieces...)
	}
	pieces, err := r.Checkpoint.Pieces(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, is := range k.Windows {
		w := &reading.Window{Planned: extract.Planned{Window: is.Window, Count: is.Count}, Counts: is.Counts, Done: true}
		switch {
		case is.Span < 0 || is.Span > len(k.Spans):
			return nil, fmt.Errorf("%w: the snapshot contradicts itself", checkpoint.ErrDamaged)
		case is.Span > 0:
			w.Older = &k.Spans[is.Span-1]
		}
		if is.Undated {
			w.Undated = &reading.Undated{}
		}
		if is.Only {
			w.Undated = &reading.Undated{Only: roaring64.New()}
		}
		for range is.Pieces {
			if err := r.Take(w, pieces[0]); err != nil {
				return nil, err
			}
			pieces = pieces[1:]
		}
		s.Windows = append(s.Windows, w)
	}
	s.Stats, err = reading.Stats(ctx, s.rows, s.Windows)
	return s, err
}
