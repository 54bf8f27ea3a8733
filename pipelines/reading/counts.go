package reading

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
)

// Counts remembers the service's counts for a plan, so that a run that resumes
// need not ask again. The zero value is empty. Several goroutines may use it at
// once.
type Counts struct{ known sync.Map } // maps extract.Window to checkpoint.Count

// Inherit adds the counts of an earlier run.
func (c *Counts) Inherit(list []checkpoint.Count) {
	for _, k := range list {
		c.known.Store(extract.Window{From: k.Window.From.Time, To: k.Window.To.Time}, k)
	}
}

// All returns all counts, those of this run and those of an earlier one, in
// order of time.
func (c *Counts) All() (list []checkpoint.Count) {
	for _, k := range c.known.Range {
		list = append(list, k.(checkpoint.Count))
	}
	slices.SortFunc(list, func(a, b checkpoint.Count) int {
		return cmp.Or(a.Window.From.Compare(b.Window.From.Time), a.Window.To.Compare(b.Window.To.Time))
	})
	return list
}

// Remembered returns a counter that calls count only once for each window.
func (c *Counts) Remembered(count extract.Counter, now func() time.Time) extract.Counter {
	if count == nil {
		return nil
	}
	return func(ctx context.Context, w extract.Window) (int64, error) {
		if k, ok := c.known.Load(w); ok {
			return k.(checkpoint.Count).N, nil
		}
		at := now().UTC()
		n, err := count(ctx, w)
		if err == nil {
			c.known.Store(w, checkpoint.Count{Window: load.Span(w.From, w.To), N: n, At: at})
		}
		return n, err
	}
}
