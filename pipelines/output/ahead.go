package output

import (
	"context"
	"slices"
	"sync"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Ahead stages parts whose windows are all read while the run still reads others. It is
// a cache. Once everything agrees, a part is used if its windows still have the same
// readings and its output has the same columns. Otherwise it is staged anew.
type Ahead struct {
	set     *Set
	preview func() *reconcile.Snapshot
	prepare func(*unit)
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu      sync.Mutex
	outs    []preparer
	units   map[*reading.Window][]*unit
	ready   []*unit           // whose windows are all read
	adding  []*reading.Window // that added columns, as they were then
	begun   bool
	workers int
}

// preparer is an output whose parts can be staged one by one.
type preparer interface {
	output
	// columns returns the columns of the output, and the statistics of its rows.
	columns(ctx context.Context) ([]schemas.Column, transform.Stats, error)
	// parts returns the parts that the output has of a snapshot.
	parts(s *reconcile.Snapshot) []*outputPart
	// prepare stages the objects of a part. Those that are staged stay in the part
	// even after an error.
	prepare(ctx context.Context, p *outputPart, columns []schemas.Column) error
}

// unit is a part that may be staged ahead.
type unit struct {
	out     preparer
	windows []*reading.Window // of the run
	part    *outputPart       // with copies of the windows from when they were read
	left    int               // windows that are not read yet
	adding  []*reading.Window // that had added columns when the part was staged
	columns string            // of the staged objects; "" if the part could not be staged
}

// NewAhead returns an Ahead for the outputs of a set, which stages nothing before Begin.
func NewAhead(s *Set) *Ahead { return &Ahead{set: s, stop: func() {}} }

// Begin allows to stage parts until Wait or Stop returns. preview returns what is known
// of the run's snapshot while windows are read, with the windows of its plan.
func (a *Ahead) Begin(ctx context.Context, preview func() *reconcile.Snapshot) {
	encoders := a.set.job.Encoders
	a.mu.Lock()
	defer a.mu.Unlock()
	ctx, a.stop = context.WithCancel(ctx)
	a.preview, a.units = preview, map[*reading.Window][]*unit{}
	a.prepare = func(u *unit) {
		_ = encoders.Hold(ctx, func() error { // a part that failed is staged anew
			u.prepare(ctx)
			return nil
		})
	}
	for _, t := range a.set.live() {
		if out, ok := t.out.(preparer); ok {
			a.outs = append(a.outs, out)
			for _, p := range out.parts(preview()) {
				a.add(&unit{out: out, windows: p.windows, part: p})
			}
		}
	}
}

// add notes a unit. It leaves out a unit with a window that nobody counted. The results
// of such a window may change how windows are divided into parts.
func (a *Ahead) add(u *unit) {
	for _, w := range u.windows {
		if w.Planned.Count == extract.Unknown {
			return
		}
		if !w.Done {
			u.left++
		}
	}
	for _, w := range u.windows {
		a.units[w] = append(a.units[w], u)
	}
	if u.left == 0 && len(u.windows) > 0 {
		a.complete(u)
	}
}

// complete notes that all windows of a unit are read. The unit keeps them as they are,
// because the run may read some of them again.
func (a *Ahead) complete(u *unit) {
	u.part.windows = make([]*reading.Window, len(u.windows))
	for i, w := range u.windows {
		u.part.windows[i] = copyOf(w)
	}
	a.ready = append(a.ready, u)
}

func copyOf(w *reading.Window) *reading.Window {
	is := *w
	return &is
}

// Read notes that a window is read, and stages the parts that are complete by that in
// the background. A window that is read again is of no interest.
func (a *Ahead) Read(w *reading.Window) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(w.Stats.Added) > 0 {
		a.adding = append(a.adding, copyOf(w))
	}
	for _, u := range a.units[w] {
		if u.left--; u.left == 0 {
			a.complete(u)
		}
	}
	if !a.begun && len(a.ready) > 0 { // pages were read, so that the labels are known
		a.begun = true
		for _, out := range a.outs {
			out.at().snapshot = a.preview()
		}
	}
	for n := min(len(a.ready), cap(a.set.job.Encoders)); a.workers < n; a.workers++ {
		a.group.Go(a.work)
	}
}

// work stages units until none is ready.
func (a *Ahead) work() {
	for {
		a.mu.Lock()
		if len(a.ready) == 0 {
			a.workers--
			a.mu.Unlock()
			return
		}
		u := a.ready[0]
		a.ready = a.ready[1:]
		u.adding = a.adding
		a.mu.Unlock()
		a.prepare(u)
	}
}

// prepare stages the part, if its columns do not depend on what other windows hold.
func (u *unit) prepare(ctx context.Context) {
	p := u.out.at()
	if p.held() != nil {
		return
	}
	columns, err := p.shown(slices.Concat(u.adding, u.part.windows), nil)
	if err != nil || slices.ContainsFunc(columns, func(c schemas.Column) bool { return c.ListAs == schemas.ListColumns }) {
		return
	}
	if u.out.prepare(ctx, u.part, columns) == nil {
		u.columns, _ = p.described(columns)
	}
}

// Wait waits until nothing more is staged ahead, and leaves the parts to their outputs.
// No window may be read meanwhile.
func (a *Ahead) Wait() {
	a.group.Wait()
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for w, units := range a.units {
		for _, u := range units {
			if u.windows[0] == w && u.left <= 0 {
				p := u.out.at()
				p.early = append(p.early, u)
			}
		}
	}
	a.units = nil
}

// Stop does the same as Wait, but gives up what is not staged yet.
func (a *Ahead) Stop() {
	a.stop()
	a.Wait()
}

// takeEarly gives parts the objects that were staged ahead, as far as they still hold
// what the parts hold. It removes the others from the destination.
func (p *place) takeEarly(ctx context.Context, parts []*outputPart, columns []schemas.Column) error {
	is, err := p.described(columns)
	if err != nil {
		return err
	}
	at := make(map[*reading.Window]*outputPart, len(parts))
	for _, part := range parts {
		if len(part.windows) > 0 {
			at[part.windows[0]] = part
		}
	}
	var stale []load.Prepared
	for _, u := range p.early {
		if part := at[u.windows[0]]; u.columns == is && part != nil && u.holds(part) {
			part.prepared, part.spans, part.staged = u.part.prepared, u.part.spans, true
			continue
		}
		stale = append(stale, u.part.objects()...)
	}
	p.early = nil
	return load.AbortAll(ctx, p.dest, stale...)
}

// holds tells whether a part consists of the same readings as the unit.
func (u *unit) holds(p *outputPart) bool {
	if p.String() != u.part.String() || !slices.Equal(p.windows, u.windows) {
		return false
	}
	for i, w := range p.windows {
		if w.Number != u.part.windows[i].Number {
			return false
		}
	}
	return true
}
