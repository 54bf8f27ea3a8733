package extract

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/extract/transport"
)

const (
	// DefaultTarget is the most results of a window that auto plans, if the counts are
	// right: forty pages of API v1.
	DefaultTarget = 4000
	// Unknown is the count of a window that was not counted.
	Unknown    = -1
	maxWindows = 1 << 20 // a plan of more windows comes from a mistake in the definition
)

// Range is a span of time of one form's results, and how to divide it into windows.
type Range struct {
	Window    Window      // the span; if it has no upper bound, auto plans one window
	Period    Period      // auto or fixed
	Partition Unit        // no window crosses the unit's boundaries
	Target    int         // most results of an auto window; 0 means DefaultTarget
	Cuts      []time.Time // no window crosses these times, such as the start of the next run
	Uncounted bool        // the plan sends no count requests
	PageSize  int         // most results of a page; 0 means PageSize
	Most      int64       // most requests for counts that planning may send; 0 means no bound
	Finer     bool        // auto may spend a count on each ten pages, not forty: smaller windows
	// Endless means that the results of the range are counted without its upper bound. So the count
	// is too high where results are dated later than the range ends.
	Endless bool
	// HasResult tells whether a window holds a result. Where nothing is counted, it serves to find
	// the beginning of a range without a lower bound. If it is nil, such a range cannot be
	// divided by a period or by partitions.
	HasResult func(ctx context.Context, w Window) (bool, error)
	// Unverified means that what was read is not compared with counts afterwards. So a window
	// counts as empty only if the service was asked for its own count.
	Unverified bool
}

// pageSize returns how many results a full page holds.
func (r Range) pageSize() int64 { return int64(cmp.Or(r.PageSize, PageSize)) }

// Planned is one window of a plan.
type Planned struct {
	Window Window
	Count  int64 // results that the planner counted, Unknown if not counted
	Group  int   // index into Plan.Groups; the windows of a group share one count
}

// Plan is the result of planning: the windows in which to read a range.
type Plan struct {
	Range    Range
	Windows  []Planned // in order of time, without gaps; those with a count of 0 need no reading
	Groups   []int64   // results of each group of adjacent windows, Unknown if not counted
	Total    int64     // results in the range when planned, Unknown if not counted
	Requests int       // count requests that planning cost
}

// Pages estimates how many Get Results requests the plan needs, Unknown without a count.
func (p *Plan) Pages() int64 {
	if p.Total == Unknown {
		return Unknown
	}
	var pages int64
	size := p.Range.pageSize()
	rest, uncounted := slices.Clone(p.Groups), make([]int64, len(p.Groups))
	for _, w := range p.Windows {
		switch {
		case w.Count == Unknown:
			uncounted[w.Group]++
		case w.Count > 0:
			rest[w.Group] -= w.Count
			pages += w.Count/size + 1
		}
	}
	for g, n := range uncounted {
		if n > 0 { // each window ends with a page that is half full on average
			pages += max(n, (max(0, rest[g])+n*size/2)/size)
		}
	}
	return pages
}

// Counter counts a form's results in a window.
type Counter func(ctx context.Context, w Window) (int64, error)

// NewPlan plans the windows of a range. It counts spans of time and halves them at calendar
// boundaries: spans with too many results for one window, and wide spans with few results.
// It asks for a count only if the count saves more requests than it costs. Empty spans get
// windows with a count of 0.
func NewPlan(ctx context.Context, r Range, askCount Counter) (*Plan, error) {
	r.Target = cmp.Or(max(0, r.Target), DefaultTarget)
	p := &planner{Range: r}
	p.askCount = func(ctx context.Context, w Window) (int64, error) {
		if n := p.asked.Add(1); r.Most > 0 && n > r.Most {
			return 0, costly(fmt.Sprintf("counting the results, before any is read, needs more than the %d requests that max_requests allows; nothing was read", r.Most), fewerRequests)
		}
		return askCount(ctx, w)
	}
	plan := &Plan{Range: r, Total: Unknown}
	var err error
	if !r.Uncounted {
		whole := r.Window
		if r.Endless {
			whole.To = time.Time{}
		}
		if plan.Total, err = p.askCount(ctx, whole); err != nil {
			return nil, err
		}
	}
	p.total = plan.Total
	whole := []Planned{{Window: r.Window, Count: plan.Total}}
	switch {
	case plan.Total != 0 && !r.Period.Auto():
		plan.Windows, err = p.fixed(ctx)
	case plan.Total == 0 || r.Window.To.IsZero():
		plan.Windows, err = p.cutAt(whole)
	case r.Uncounted:
		c := p.whole()
		if r.Window.From.IsZero() && r.Partition != UnitNone {
			if c.lower, err = p.beginning(ctx, r.Partition.period()); err != nil {
				return nil, err
			}
		}
		plan.Windows, err = p.windows([]section{c})
	default:
		plan.Windows, err = p.auto(ctx)
	}
	if err != nil {
		return nil, err
	}
	if plan.Groups = p.groups; plan.Groups == nil {
		plan.Groups = []int64{plan.Total}
	}
	plan.Requests = int(p.asked.Load())
	return plan, nil
}

type planner struct {
	Range
	askCount Counter
	asked    atomic.Int64
	total    int64 // results of the range, Unknown if not counted
	groups   []int64
	begins   time.Time // no counted result is dated earlier; zero if unknown
}

// section is a part of the range that may still be halved.
type section struct {
	Window
	lower  time.Time // if From is zero: no counted result is dated earlier than this
	n      int64
	budget int64 // count requests that may still be spent on halving this section
}

// whole returns the range as one section.
func (p *planner) whole() section {
	c := section{Window: p.Window, lower: Epoch, n: p.total}
	if !Epoch.Before(p.Window.To) {
		c.lower = p.Window.To.Add(-time.Second)
	}
	return c
}

// span returns the section's window, beginning at lower if From is zero.
func (c section) span() Window {
	if c.From.IsZero() {
		return Window{c.lower, c.To}
	}
	return c.Window
}

// auto halves the range until every window is small enough. Equal data give an equal plan,
// because only the counts of a section decide how it is halved.
func (p *planner) auto(ctx context.Context) ([]Planned, error) {
	// Each further cut costs one count and at most one half-filled page. With one cut for
	// every forty pages, all requests together stay below 1.05 times the pages plus three,
	// the counts of the verification included.
	pagesPerCut := int64(40)
	if p.Finer { // a tenth of the pages: single windows will be read again, see Range.Finer
		pagesPerCut = 10
	}
	whole, size := p.whole(), p.pageSize()
	whole.budget = (p.total + size - 1) / size / pagesPerCut
	var mu sync.Mutex
	var sections []section
	err := Halving[*section]{
		AtOnce: true,
		Visit: func(ctx context.Context, c *section, n int64, exact bool) (bool, error) {
			if c == nil {
				return false, nil
			}
			// n may be a difference of two counts, and wrong by a few where results come and go.
			// So the verification counts empty windows too; without it they are counted here.
			c.n = max(0, n)
			deeper := p.worthHalving(*c)
			if c.n == 0 && !exact && p.Unverified {
				var err error
				if c.n, err = p.askCount(ctx, c.Window); err != nil {
					return false, err
				}
			}
			if !deeper {
				mu.Lock()
				defer mu.Unlock()
				sections = append(sections, *c)
			}
			return deeper, nil
		},
		Divide: p.divide,
	}.Halve(ctx, &whole, p.total, true)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(sections, func(a, b section) int { return a.To.Compare(b.To) })
	return p.windows(sections)
}

// divide halves a section, and counts the lower half. An empty lower half of a section without a
// beginning is returned as nil: the upper half then takes in its time, without a lower bound.
func (p *planner) divide(ctx context.Context, c *section) (lower, upper *section, inLower int64, err error) {
	middle, _ := halve(c.span())
	lower, upper = &section{Window: Window{c.From, middle}, lower: c.lower}, &section{Window: Window{middle, c.To}}
	if inLower, err = p.askCount(ctx, lower.Window); err != nil {
		return nil, nil, 0, err
	}
	if p.Partition.Spans(c.span()) == 1 {
		c.budget--
	}
	lower.budget = (2*c.budget*min(inLower, c.n) + c.n) / (2 * c.n) // rounded
	upper.budget = c.budget - lower.budget
	if inLower == 0 && c.From.IsZero() {
		upper.From, upper.lower, lower = time.Time{}, middle, nil
	}
	return lower, upper, inLower, nil
}

// windows turns the sections into windows: it cuts sections at the boundaries of the
// partitions, and joins neighbouring sections without results.
func (p *planner) windows(sections []section) ([]Planned, error) {
	var ws []Planned
	if first := sections[0]; first.From.IsZero() && first.lower.After(p.whole().lower) {
		p.begins = first.lower
	}
	for _, c := range sections {
		if last := len(ws) - 1; c.n == 0 && last >= 0 && ws[last].Count == 0 {
			ws[last].Window.To = c.To
			continue
		}
		group := len(p.groups)
		p.groups = append(p.groups, c.n)
		if c.n == 0 || p.Partition.Spans(c.span()) <= 1 {
			ws = append(ws, Planned{c.Window, c.n, group})
			continue
		}
		cuts := tile(c.span(), p.Partition.period())
		cuts[0].From = c.From
		for _, w := range cuts {
			ws = append(ws, Planned{w, Unknown, group})
		}
	}
	return p.cutAt(ws)
}

// cutAt splits each window that contains one of the times in Range.Cuts, at that time.
func (p *planner) cutAt(ws []Planned) ([]Planned, error) {
	for _, t := range p.Cuts {
		i := slices.IndexFunc(ws, func(w Planned) bool {
			return w.Window.From.Before(t) && (w.Window.To.IsZero() || t.Before(w.Window.To))
		})
		if i < 0 || t.IsZero() {
			continue
		}
		w, n, g := ws[i].Window, ws[i].Count, ws[i].Group
		parts := []Planned{{Window{w.From, t}, Unknown, g}, {Window{t, w.To}, Unknown, g}}
		switch {
		case n == 0:
			parts[0].Count, parts[1].Count = 0, 0
		case w.From.IsZero() && t.Before(p.begins): // before the first result
			parts = []Planned{{Window{w.From, t}, 0, g}, {Window{t, p.begins}, 0, g}, {Window{p.begins, w.To}, n, g}}
		}
		ws = slices.Replace(ws, i, i+1, parts...)
	}
	if len(ws) > maxWindows {
		return nil, &transport.Error{Code: 78, Problem: fmt.Sprintf("the range is divided into more than %d windows, which formetl refuses; set a longer extract.window, or a shorter range (extract.from)", maxWindows)}
	}
	return ws, nil
}

// worthHalving tells whether to halve a section: one that spans several partitions and is worth
// a count (worthAsking), or one with more results than Range.Target while its budget lasts.
func (p *planner) worthHalving(c section) bool {
	_, can := halve(c.span())
	k := p.Partition.Spans(c.span())
	switch {
	case c.n == 0 || !can:
		return false
	case k > 1:
		return p.worthAsking(c, k)
	}
	return c.n > int64(p.Target) && c.budget > 0
}

// worthAsking tells whether to halve a section of k partitions by a count, rather than
// read each partition. It returns true if the section has no lower bound, is wide
// (results may cluster), or has too many results per partition. It also returns true
// if finding the section's few results costs less than a request for each partition.
func (p *planner) worthAsking(c section, k int) bool {
	const wide = 8
	if c.From.IsZero() || k > wide || c.n/int64(k) > int64(p.Target) {
		return true
	}
	finding := float64(c.n) * (1 + math.Log2(max(1, float64(k)/float64(c.n))))
	return finding+float64(c.n) < float64(k)
}

// suspect looks at the lower half of a range without a beginning, if that half ends before online
// forms existed. If it holds all results, and the upper half holds them too, the service ignores
// dates: suspect returns a *BreachError.
func (p *planner) suspect(ctx context.Context, lower Window, n int64) error {
	if n == 0 || n < p.total || lower.To.Year() > 1995 {
		return nil
	}
	upper := Window{lower.To, p.Window.To}
	if rest, err := p.askCount(ctx, upper); err != nil || rest < p.total {
		return err
	}
	return &BreachError{Ignores: "the range of dates", Proof: fmt.Sprintf("%d results were counted in each of two ranges of dates that do not overlap: %s and %s", n, lower.Dates(), upper.Dates())}
}

// fixed divides the range at the boundaries of the period and of the partitions.
func (p *planner) fixed(ctx context.Context) ([]Planned, error) {
	w := p.Window
	if w.To.IsZero() {
		return nil, &transport.Error{Code: 78, Problem: fmt.Sprintf("the range has no end, which extract.window: %s needs; set extract.to, or write extract.window: auto", p.Period)}
	}
	from := w.From
	if from.IsZero() {
		var err error
		if from, err = p.beginning(ctx, p.Period); err != nil {
			return nil, err
		}
		if from.After(p.whole().lower) {
			p.begins = from
		}
	}
	var ws []Planned
	for _, span := range tile(Window{from, w.To}, p.Period, p.Partition.period()) {
		ws = append(ws, Planned{Window: span, Count: Unknown})
	}
	if len(ws) > 0 {
		ws[0].Window.From = w.From
	}
	return p.cutAt(ws)
}

// beginning finds a time before which a range without a beginning holds no result. The time is
// the start of a period.
func (p *planner) beginning(ctx context.Context, period Period) (time.Time, error) {
	c, holds := p.whole(), p.HasResult
	switch {
	case !p.Uncounted:
		holds = func(ctx context.Context, lower Window) (bool, error) {
			n, err := p.askCount(ctx, lower)
			if err == nil {
				err = p.suspect(ctx, lower, n)
			}
			return n > 0, err
		}
	case holds == nil:
		return time.Time{}, &transport.Error{Code: 78, Problem: "the range has no beginning, and formetl cannot find one, because these results cannot be counted; set extract.from"}
	default: // no request has told yet whether the range holds a result
		if some, err := holds(ctx, c.span()); err != nil || !some {
			return period.Start(c.To), err
		}
	}
	for period.next(c.lower).Before(c.To) {
		middle, ok := halve(c.span())
		if !ok {
			break
		}
		early, err := holds(ctx, Window{From: Epoch, To: middle}) // undated results may match a lone upper bound
		if err != nil {
			return time.Time{}, err
		}
		if early {
			c.To = middle
		} else {
			c.lower = middle
		}
	}
	return period.Start(c.lower), nil
}
