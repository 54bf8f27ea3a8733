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

// Counts are what the service counted for a plan, which a run that resumes need
// not ask again. The zero value knows nothing. They may be used by several
// goroutines at once.
type Counts struct {
	mu    sync.Mutex
	known map[extract.Window]checkpoint.Count
	asked []checkpoint.Count
}

// Inherit takes over what an earlier run had counted.
func (c *Counts) Inherit(list []checkpoint.Count) {
	c.known = make(map[extract.Window]checkpoint.Count, len(list))
	for _, k := range list {
		c.known[extract.Window{From: k.Window.From.Time, To: k.Window.To.Time}] = k
	}
}

// All are those that this run asked for and those that it took over, in order of
// time.
func (c *Counts) All() []checkpoint.Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Clone(c.asked)
	for _, k := range c.known {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b checkpoint.Count) int {
		return cmp.Or(a.Window.From.Compare(b.Window.From.Time), a.Window.To.Compare(b.Window.To.Time))
	})
	return list
}

// Remembered is a counter that asks only for what no earlier run counted.
func (c *Counts) Remembered(count extract.Counter, now func() time.Time) extract.Counter {
	return func(ctx context.Context, w extract.Window) (int64, error) {
		if k, ok := c.known[w]; ok {
			return k.N, nil
		}
		at := now().UTC()
		n, err := count(ctx, w)
		if err == nil {
			c.mu.Lock()
			c.asked = append(c.asked, checkpoint.Count{Window: load.Span(w.From, w.To), N: n, At: at})
			c.mu.Unlock()
		}
		return n, err
	}
}
