package reading

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/checkpoint"
)

// A window is read by one request after the other, because each request begins behind
// the last id of the page before. So that several requests are under way, goroutines share a
// window: one without work takes the upper half of the ids that another has not asked for.
// Each goroutine reads a stretch of the window in the order of ids.

// leastShared is how many full pages a stretch must still have unread to be divided. Each
// division may cost one more request, for a page that is not full.
const leastShared = 3

// stretch is a range of a window's ids that one goroutine reads. gap.Through falls when
// another goroutine takes the upper part.
type stretch struct {
	w   *Window
	job *job
	gap gap

	// head holds the first pages of the stretch if they were read before the schema was
	// known, and source reads on behind these pages.
	head   []*page.Page
	source *extract.WindowReader

	expected    int64 // number of results that the stretch should hold, or extract.Unknown
	read        int64 // number of results received so far
	first, last int64 // the first and the last id received
	divisible   bool  // set while more requests follow, so that the stretch can be divided
	tail        bool  // asked for in case: the window or group holds less than was counted
	open        bool  // see extract.WindowReader.Open
}

// rest returns how many results a stretch probably still has to receive, and over how
// many ids they spread. Both are 0 if there is nothing yet to estimate them by.
func (st *stretch) rest() (results, ids int64) {
	if !st.divisible || st.read == 0 {
		return 0, 0
	}
	perID := float64(st.read) / float64(st.last-st.first+1)
	if st.gap.Through != checkpoint.Last {
		ids = st.gap.Through - st.last
		return int64(float64(ids) * perID), ids
	}
	results = max(0, st.expected-st.read)
	return results, int64(float64(results) / perID)
}

// job is a window that is being read, perhaps by several goroutines.
type job struct {
	w       *Window
	again   bool       // the window was read again, because a result moved within it
	waiting []*stretch // stretches that no goroutine reads yet
	running []*stretch
}

// shared is the work of the goroutines that read windows side by side.
type shared struct {
	r *Reader

	mu      sync.Mutex
	changed sync.Cond // signals that there may be work, or that no more work will come
	windows []*Window // windows of which nothing has been requested yet
	jobs    []*job
}

func newShared(r *Reader, windows []*Window) *shared {
	s := &shared{r: r, windows: slices.Clone(windows)}
	s.changed.L = &s.mu
	return s
}

// wake lets all goroutines look whether they must stop.
func (s *shared) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// work reads stretches until all windows are read.
func (s *shared) work(ctx context.Context) error {
	for s.await(ctx) {
		err := s.r.Slots.Hold(ctx, func() error {
			st := s.take()
			if st == nil {
				return nil // another goroutine was faster
			}
			return s.read(ctx, st)
		})
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// await waits until there is work. It returns false if all windows are read or ctx ended.
func (s *shared) await(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil {
		if len(s.windows) > 0 || slices.ContainsFunc(s.jobs, func(j *job) bool { return len(j.waiting) > 0 }) || s.largest() != nil {
			return true
		}
		if len(s.jobs) == 0 {
			return false
		}
		s.changed.Wait()
	}
	return false
}

// take returns a stretch to read: a waiting one of a window that is begun, otherwise the first
// one of a new window, otherwise the upper part of what another goroutine reads. It returns
// nil if there is no work.
func (s *shared) take() *stretch {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.jobs, func(j *job) bool { return len(j.waiting) > 0 })
	switch {
	case at >= 0:
	case len(s.windows) > 0:
		j := &job{w: s.windows[0]}
		s.windows = s.windows[1:]
		j.w.Tries++
		j.waiting = stretchesOf(j.w)
		at, s.jobs = len(s.jobs), append(s.jobs, j)
	default:
		st := s.largest()
		if st == nil {
			return nil
		}
		at = slices.Index(s.jobs, st.job)
		st.job.waiting = append(st.job.waiting, st.upper(s.r.PageSize()))
	}
	j := s.jobs[at]
	st := j.waiting[0]
	st.job, j.waiting, j.running = j, j.waiting[1:], append(j.running, st)
	return st
}

// stretchesOf returns the stretches of a window that are still to be read, and at least one.
func stretchesOf(w *Window) []*stretch {
	if begun := w.begun; len(begun) > 0 {
		w.begun = nil
		return begun
	}
	todo := []gap{wholeOf(extract.Window{})}
	if w.Undated == nil {
		if todo = w.unread(); len(todo) == 0 {
			todo = w.unasked()
		}
	}
	expected := w.Planned.Count
	if expected != extract.Unknown {
		expected = max(0, expected-w.Results()) / int64(max(1, len(todo)))
	}
	list := make([]*stretch, len(todo))
	for i, g := range todo {
		list[i] = &stretch{w: w, gap: g, expected: expected}
	}
	return list
}

// largest returns the stretch with the most results still to be received, or nil if no stretch
// has enough to be divided.
func (s *shared) largest() (most *stretch) {
	rest := leastShared*s.r.PageSize() - 1
	for _, j := range s.jobs {
		for _, st := range j.running {
			if n, ids := st.rest(); n > rest && ids > 1 {
				most, rest = st, n
			}
		}
	}
	return most
}

// upper takes the upper half of what a stretch has not received yet, and returns that half as
// a stretch. size is how many results a full page holds.
func (st *stretch) upper(size int64) *stretch {
	rest, ids := st.rest()
	lower := lowerHalf(rest, size)
	up := &stretch{w: st.w, gap: st.gap, expected: rest - lower}
	up.gap.After = st.last + int64(float64(ids)*float64(lower)/float64(rest))
	st.gap.Through, st.expected = up.gap.After, st.read+lower
	return up
}

// lowerHalf returns how many of the rest results stay with a stretch that is divided. They
// fill pages of size results, so that no request is spent on a page with a few results. How
// many results a span of ids holds is an estimate, so one standard deviation is subtracted.
func lowerHalf(rest, size int64) int64 {
	full := (rest/2 + size - 1) / size * size
	return full - int64(math.Sqrt(float64(full)))
}

// lastToRead returns the last id that a stretch is to read. It falls when another goroutine takes
// the stretch's upper half.
func (s *shared) lastToRead(st *stretch) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.gap.Through
}

// received notes that a page of a stretch was received, or, with nil, that there is no further
// page. ended tells that no request follows. received removes results from the page that
// belong to the part of another goroutine.
func (s *shared) received(st *stretch, p *page.Page, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := pageLen(p); n > 0 && st.gap.Through != checkpoint.Last && p.ID(n-1) > st.gap.Through {
		p.Filter(func(id int64) bool { return id <= st.gap.Through })
	}
	st.note(p)
	over := p == nil || ended
	if st.divisible = !over; over {
		s.passOn(st)
	}
	s.changed.Broadcast()
}

// note counts the results of a received page, which may be nil, and notes its highest id.
func (st *stretch) note(p *page.Page) {
	if pageLen(p) == 0 {
		return
	}
	if st.read == 0 {
		st.first = p.ID(0)
	}
	st.read, st.last = st.read+int64(p.Len()), p.ID(p.Len()-1)
}

func pageLen(p *page.Page) int {
	if p == nil {
		return 0
	}
	return p.Len()
}

// passOn adds the results that a stretch was expected to hold and did not to what is expected
// of the uppermost stretch.
func (s *shared) passOn(st *stretch) {
	if st.expected == extract.Unknown {
		return
	}
	for _, other := range st.job.running {
		if other != st && other.gap.Through == checkpoint.Last && other.gap.window == st.gap.window {
			other.expected += st.expected - st.read
			st.expected = st.read
		}
	}
}

// read reads a stretch, and ends the job of its window if no other stretch is left.
func (s *shared) read(ctx context.Context, st *stretch) error {
	err := s.r.readStretch(ctx, st, s)
	if err != nil {
		return err
	}
	j := st.job
	s.mu.Lock()
	j.running = slices.DeleteFunc(j.running, func(is *stretch) bool { return is == st })
	last := len(j.running)+len(j.waiting) == 0
	s.mu.Unlock()
	if last {
		err = s.end(ctx, j)
	}
	return err
}

// end reads a window once more if a result moved within it. If the window holds fewer results
// than were counted, end asks for its tails, the ids above the last results. Otherwise the
// window is done. After the last window of a group that holds too few, it asks for the tails
// of all windows of the group.
func (s *shared) end(ctx context.Context, j *job) error {
	r, w := s.r, j.w
	if w.IDs != nil && w.holdsTwice() && !j.again {
		r.Log.LogAttrs(ctx, slog.LevelInfo, "a window is read again", slog.String("window", w.Name()), slog.String("reason", "a result came twice, because results changed meanwhile"))
		if err := r.Forget(ctx, w); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Tries++
		j.again, j.waiting = true, stretchesOf(w)
		s.changed.Broadcast()
		return nil
	}
	if !w.inGroup() && s.askTails(w, j) {
		return nil
	}
	r.isRead(w)
	s.mu.Lock()
	s.jobs = slices.DeleteFunc(s.jobs, func(is *job) bool { return is == j })
	s.mu.Unlock()
	if w.inGroup() && s.r.endsGroup(w.Group) {
		for _, is := range w.Group.Windows {
			s.askTails(is, nil)
		}
	}
	s.wake()
	return nil
}

// askTails adds the tails of a window (see Window.tails) to its job j, or to a new job if j is
// nil. It returns false if the window has no tails.
func (s *shared) askTails(w *Window, j *job) bool {
	s.r.mu.Lock()
	tails := w.tails()
	s.r.mu.Unlock()
	if len(tails) == 0 {
		return false
	}
	s.ask(w, j, tails)
	return true
}

// ask adds tails of a window to its job j, or to a new job if j is nil.
func (s *shared) ask(w *Window, j *job, tails []gap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j == nil {
		j = &job{w: w}
		s.jobs = append(s.jobs, j)
	}
	j.again = false
	for _, g := range tails {
		j.waiting = append(j.waiting, &stretch{w: w, gap: g, tail: true})
	}
	s.changed.Broadcast()
}

// ReadTails asks for the tails of windows (the ids above their last results) that were counted
// together with a dataset which holds fewer results than the service counts. It returns false
// if there are no tails.
func (r *Reader) ReadTails(ctx context.Context, windows []*Window) (asked bool, err error) {
	s := newShared(r, nil)
	for _, w := range windows {
		if w.Summed && w.IDs != nil {
			w.Summed = false
			asked = s.askTails(w, nil) || asked
		}
	}
	if !asked {
		return false, nil
	}
	return true, s.run(ctx)
}

// ReadBehind asks for the ids above the last results of windows, where they were not asked for
// yet. It returns false if there are no such ids.
func (r *Reader) ReadBehind(ctx context.Context, windows []*Window) (asked bool, err error) {
	s := newShared(r, nil)
	for _, w := range windows {
		if w.Undated != nil || w.IDs == nil {
			continue
		}
		if behind := w.unasked(); len(behind) > 0 {
			s.ask(w, nil, behind)
			asked = true
		}
	}
	return asked, s.run(ctx)
}

// endsGroup returns true if all windows of a group were read, but only the first time.
func (r *Reader) endsGroup(g *Group) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.ended || slices.ContainsFunc(g.Windows, func(is *Window) bool { return !is.Done }) {
		return false
	}
	g.ended = true
	return true
}

// Slots limits what a run does at once over all its forms. Reading a window,
// for example, takes memory for pages and batches. A goroutine with a slot
// never waits for another slot, so there is no deadlock.
type Slots chan struct{}

// NewSlots returns n slots, and at least one.
func NewSlots(n int) Slots { return make(Slots, max(1, n)) }

// Hold waits for a slot and keeps it while it calls do. If ctx ends first, it returns the cause.
func (p Slots) Hold(ctx context.Context, do func() error) error {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p }()
	return do()
}
