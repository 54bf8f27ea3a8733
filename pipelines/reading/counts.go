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

// Counts are what the service counted for a plan. A run that resumes need not
// ask for them again. The zero value knows none. They may be used by several
// goroutines at once.
type Counts struct{ known sync.Map } // from extract.Window to checkpoint.Count

// Inherit takes over what an earlier run had counted.
func (c *Counts) Inherit(list []checkpoint.Count) {
	for _, k := range list {
		c.known.Store(extract.Window{From: k.Window.From.Time, To: k.Window.To.Time}, k)
	}
}

// All are those that this run asked for and those that it took over, in order of
// time.
func (c *Counts) All() (list []checkpoint.Count) {
	for _, k := range c.known.Range {
		list = append(list, k.(checkpoint.Count))
	}
	slices.SortFunc(list, func(a, b checkpoint.Count) int {
		return cmp.Or(a.Window.From.Compare(b.Window.From.Time), a.Window.To.Compare(b.Window.To.Time))
	})
	return list
}

// Remembered is a counter that asks for each window once.
func (c *Counts) Remembered(count extract.Counter, now func() time.Time) extract.Counter {
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
