package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
)

// What was read is compared with the service's counts (Get Results Count). Usually one
// count over the range agrees. If not, halves of the range are counted until the windows
// are found that changed, and those are read again. A form that changes all the time may
// never agree exactly. So in the end a window passes if its number of results lies between
// its counts before and after the last reading. A window that differs from a count which
// stands still does not pass.
//
// A run that continues the datasets reads only what changed. One count over all their
// time shows whether anything else differs, such as a result that was deleted. Then that
// time is halved by counts in the same way, down to the parts that differ.

// proof is a span of time that must hold as many results as the service counts.
type proof struct {
	of     proven
	window extract.Window
	older  *reading.Older // the older span, if the proof is of one

	counts      *[]int64 // the service's counts so far; the first is from before the reading
	last        int64    // the last count of the range, still with results of the second before it
	reads       int64    // Reader.Reads at the last count; -1 before the first
	held        int64    // results of the first dataset that differs from the count, or of the first
	rounds      int      // how often the count and what was read did not agree
	still       reading.Standstill
	thorough    bool // whether windows are compared even if the range agrees, see recount
	lookedAfter bool // whether results after the range were looked for
}

// proven says what a proof compares with the service's count.
type proven int

const (
	ofRange proven = iota // the windows of the run's range
	ofAsked               // the windows of the range that was asked for, if datasets widened it
	ofOlder               // the windows of an older span
	ofAll                 // the datasets, as they will be after this run
)

// counted returns the service's last count of a proof's time: so many results should be held.
func (p *proof) counted() int64 { return (*p.counts)[len(*p.counts)-1] }

// SumsUp tells whether all that the datasets hold after the run is compared with one count.
func (c *Reconciler) SumsUp() bool { return c.Verifies() && c.Changes.continues() }

// verify compares what was read with the service's counts, and reads again what differs.
func (c *Reconciler) verify(ctx context.Context) (err error) {
	if !c.Verifies() {
		c.Verified = &load.Verified{Extracted: reading.Results(reading.OfRange(c.Windows)), Reason: c.Reader.Uncounted()}
		return c.lateUncounted(ctx)
	}
	var p *proof
	if c.SumsUp() {
		p = c.proofOfAll()
		err = c.prove(ctx, p)
	} else {
		p = &proof{of: ofRange, window: c.Interval.Read, counts: &[]int64{c.Plan.Total}, last: c.Plan.Total}
		err = c.proveWindows(ctx, p)
	}
	if err != nil {
		return err
	}
	c.differing(p, p.counted())
	c.Verified = &load.Verified{Counted: p.counted(), Extracted: p.held, Match: p.counted() == p.held}
	c.Reader.At(PointVerified)
	return nil
}

// proofOfAll returns the proof of a run that continues the datasets, which compares all that
// they hold with one count. Later calls return the same proof.
func (c *Reconciler) proofOfAll() *proof {
	if c.all == nil {
		c.all = &proof{of: ofAll, window: c.datasetTime(), counts: &[]int64{c.Changes.Counted}}
	}
	return c.all
}

// proveWindows proves the range that was read, the results without a date, older spans, and
// the range that was asked for, if datasets widened it and a single file holds just that.
func (c *Reconciler) proveWindows(ctx context.Context, p *proof) error {
	asked := &proof{of: ofAsked, window: c.Interval.Asked, counts: &[]int64{extract.Unknown}, reads: -1}
	for {
		if err := c.prove(ctx, p); err != nil {
			return err
		}
		if err := c.proveUndated(ctx, p); err != nil {
			return err
		}
		read := c.Reader.Reads()
		if c.Interval.Asked != c.Interval.Read && c.Files {
			if err := c.prove(ctx, asked); err != nil {
				return err
			}
			c.counted.own = asked.counted()
		}
		for _, r := range c.older {
			if err := c.prove(ctx, &proof{of: ofOlder, window: r.Window, older: r, counts: &r.Counts}); err != nil {
				return err
			}
		}
		if c.Reader.Reads() == read {
			return nil // otherwise windows were read again and must agree, too
		}
	}
}

// prove reads again what does not agree with the service's count, until all of a proof agrees
// or lies between its counts before and after the reading.
func (c *Reconciler) prove(ctx context.Context, p *proof) error {
	for p.rounds = 0; ; p.rounds++ {
		line, err := c.compare(ctx, p)
		if err != nil || line == nil {
			p.still.Agrees()
			return err
		}
		changed, err := c.halve(ctx, p, line)
		if err != nil || p.thorough && len(changed) == 0 {
			return err
		}
		again, wrong := p.judge(changed)
		if len(wrong) > 0 {
			untold, err := c.untold(ctx, line, wrong)
			if err != nil {
				return err
			}
			return &VerifyError{Counted: p.counted(), Extracted: p.held, Windows: timesOf(wrong), Untold: untold}
		}
		if len(again) == 0 {
			if len(changed) > 0 && p.plausible() {
				return nil
			}
			again = changed
		}
		if err := c.again(); err != nil { // also where the count is not the sum of the windows' counts
			return err
		}
		c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "the service's count differs from what was read, so these windows are read again",
			slog.Int64("counted", p.counted()), slog.Int64("extracted", p.held), slog.Int("windows", len(again)))
		forget := c.Reader.ForgetMiscounted
		if p.of == ofAll {
			forget = c.Reader.Forget // the window was not counted by itself
		}
		if err := c.readSpans(ctx, again, whyCounted, forget); err != nil {
			return err
		}
		if err := c.rereadDuplicates(ctx); err != nil {
			return err
		}
	}
}

// compare counts a proof's time once more if its last count does not agree, or may hide that
// something changed. It returns the spans of the first dataset that does not agree, nil if all
// agree.
func (c *Reconciler) compare(ctx context.Context, p *proof) (line []span, err error) {
	line = c.differing(p, p.counted())
	// A count that was asked for before the reading may be outdated.
	after := p.of == ofRange || p.of == ofAsked && p.reads != c.Reader.Reads()
	if after || line != nil && (p.of == ofOlder || p.rounds > 0) {
		if err := c.recount(ctx, p); err != nil {
			return nil, err
		}
		line = c.differing(p, p.counted())
	}
	if line != nil && p.of == ofAll && p.held < p.counted() {
		asked, err := c.Reader.ReadTails(ctx, c.Windows)
		if err != nil {
			return nil, err
		}
		if asked {
			if err := c.rereadDuplicates(ctx); err != nil {
				return nil, err
			}
			line = c.differing(p, p.counted())
		}
	}
	switch {
	case line != nil:
	case p.thorough:
		line = c.lines(p)[0]
	case len(*p.counts) > 1 && (*p.counts)[0] == p.held && p.of != ofAsked:
		c.Reader.CountAgreed(p.held)
	}
	return line, nil
}

// lines returns the spans of a proof's time with what they hold, in order of time: one line of
// spans for each dataset, or one for the windows of the run.
func (c *Reconciler) lines(p *proof) (lines [][]span) {
	if p.of == ofAll {
		for _, m := range wholeOf(c.Parts) {
			lines = append(lines, c.timelineOf(m))
		}
		return lines
	}
	windows := c.Windows
	if p.of == ofAsked {
		windows = ownOf(c.Interval, windows)
	}
	line := []span{}
	for _, w := range windows {
		if w.Undated == nil && w.Older == p.older {
			line = append(line, span{Window: w.Planned.Window, results: w.Results(), window: w})
		}
	}
	return [][]span{line}
}

// differing returns the first line of a proof that does not hold as many results as counted,
// or nil. It sets held.
func (c *Reconciler) differing(p *proof, counted int64) []span {
	for i, line := range c.lines(p) {
		n := sum(line)
		if i == 0 || n != counted {
			p.held = n
		}
		if n != counted {
			return line
		}
	}
	return nil
}

// recount counts a proof's time. If the count of the range changed since the last one, a missed
// result and a deleted one may cancel out. So windows are compared even if the whole range
// agrees, unless the service tells what changed. After the count of all, it reads what
// changed since the feed was asked before. So a new result that is counted is read too, and
// cannot hide that another one was deleted.
func (c *Reconciler) recount(ctx context.Context, p *proof) (err error) {
	n := int64(extract.Unknown)
	if p.of == ofRange {
		if c.counted.reads == c.Reader.Reads() {
			n = c.counted.read
		}
		c.counted.read = extract.Unknown
	}
	if n == extract.Unknown {
		if n, err = c.Reader.Counter()(ctx, p.window); err != nil {
			return err
		}
	}
	if p.counted() == extract.Unknown { // nothing was counted for the plan
		*p.counts, p.last = []int64{n}, n
	}
	if p.of == ofRange {
		if p.last > n && c.Plan.Range.Endless && !p.lookedAfter {
			p.lookedAfter = true
			late, err := c.late(ctx)
			if err != nil {
				return err
			}
			p.last -= late
			(*p.counts)[0] -= late
		}
		p.thorough, p.last = n != p.last && (c.Changes == nil || !c.Changes.Usable), n
	}
	if p.of == ofAll || c.differing(p, n) != nil {
		overlap, err := c.Reader.Overlap(ctx, p.window.From)
		if err != nil {
			return err
		}
		n -= overlap
	}
	*p.counts, p.reads = append(*p.counts, n), c.Reader.Reads()
	if p.of == ofAll {
		_, err = c.readMore(ctx)
	}
	return err
}

// readMore reads what changed since the feed was asked before, and returns how much that was.
func (c *Reconciler) readMore(ctx context.Context) (int, error) {
	more, err := c.Changes.More(ctx, c.Reader.Form)
	if err != nil || len(more) == 0 {
		return 0, err
	}
	return len(more), c.readNamed(ctx, more)
}

// halve returns the spans of a line that do not agree with the service. It finds them by
// counts of halves.
func (c *Reconciler) halve(ctx context.Context, p *proof, line []span) (wrong []span, err error) {
	var lookback time.Time
	if p.of == ofAll {
		lookback = c.datasetTime().To.Add(-c.Reader.Def.Extract.Lookback)
	}
	err = extract.Halving[[]span]{
		Visit: func(ctx context.Context, line []span, n int64, exact bool) (bool, error) {
			if len(line) == 0 || sum(line) == n && (!p.thorough || countedBefore(line) == n) {
				if exact {
					c.Reader.CountAgreed(n)
				}
				return false, nil
			}
			likely := suspects(line, p.rounds > 0)
			each := p.thorough && blind(line)
			switch {
			case len(likely) > 1 && !each:
				return true, nil
			case p.of == ofAll: // a guess: the next round shows if another span differs
				wrong = append(wrong, line[likely[0]])
				return false, nil
			}
			counts := []int64{n}
			if !exact || len(line) > 1 {
				var err error
				if counts, err = c.countEach(ctx, line); err != nil {
					return false, err
				}
			}
			for i, s := range line {
				if c.differs(s.window, counts[i]) {
					wrong = append(wrong, s)
				}
			}
			return false, nil
		},
		Divide: func(ctx context.Context, line []span) (lower, upper []span, n int64, err error) {
			middle := divide(line, suspects(line, p.rounds > 0), lookback)
			lower, upper = line[:middle], line[middle:]
			n, err = c.count(ctx, timeOf(lower))
			return lower, upper, n, err
		},
	}.Halve(ctx, line, p.counted(), true)
	return wrong, err
}

// whyCounted is the reason that the log gives where something is read again because it does
// not agree with a count.
const whyCounted = "the service counts more or fewer results in it than formetl has"

// count asks how many results a window holds, without those of the second before it.
func (c *Reconciler) count(ctx context.Context, w extract.Window) (int64, error) {
	n, err := c.Reader.Counter()(ctx, w)
	if err != nil {
		return 0, err
	}
	overlap, err := c.Reader.Overlap(ctx, w.From)
	return n - overlap, err
}

// countEach counts each span of a line, several at a time.
func (c *Reconciler) countEach(ctx context.Context, line []span) ([]int64, error) {
	counts := make([]int64, len(line))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.Reader.Def.Source.Requests.Concurrency)
	for i, s := range line {
		group.Go(func() (err error) {
			counts[i], err = c.count(ctx, s.Window)
			return err
		})
	}
	return counts, group.Wait()
}

// differs notes a window's count, and tells whether another number of results was read.
func (c *Reconciler) differs(w *reading.Window, counted int64) bool {
	w.Counts = append(w.Counts, counted)
	if w.Results() != counted {
		return true
	}
	// The window's first count may be a difference of two counts, and proves nothing.
	if n := len(w.Counts); n > 2 && w.Counts[n-2] == counted {
		c.Reader.CountAgreed(counted)
	}
	w.Still.Agrees()
	return false
}

// countedBefore returns how many results the windows of a line held by their last counts. It
// returns extract.Unknown if neither the windows nor the planner's groups of them were counted.
func countedBefore(line []span) (total int64) {
	for len(line) > 0 {
		w, size := line[0].window, 1
		if n := len(w.Counts); n > 0 {
			total += w.Counts[n-1]
		} else {
			size = len(w.Group.Windows)
			if size == 0 || size > len(line) || !slices.EqualFunc(w.Group.Windows, line[:size], func(w *reading.Window, s span) bool { return w == s.window }) {
				return extract.Unknown
			}
			total += w.Group.Count
		}
		line = line[size:]
	}
	return total
}

// blind tells whether halving a line is useless, because neither its windows nor groups of
// windows smaller than the line were counted before.
func blind(line []span) bool {
	return !slices.ContainsFunc(line, func(s span) bool { return len(s.window.Counts) > 0 || len(s.window.Group.Windows) < len(line) })
}

// judge sorts the spans that do not agree with their last count: again are those to read once
// more, and wrong those whose count stood still meanwhile. The rest lie between their counts.
// A proof of all datasets is judged as a whole, because where they differ is a guess at first.
func (p *proof) judge(changed []span) (again, wrong []span) {
	if p.of == ofAll {
		switch {
		case p.rounds >= reading.Rereads && p.plausible():
			p.still.Agrees()
			return nil, nil
		case p.still.Disagrees(p.counted(), p.held):
			return nil, changed
		}
		return changed, nil
	}
	for _, s := range changed {
		w := s.window
		w.Disagreed++
		switch {
		case w.Disagreed > reading.Rereads && w.Plausible():
		case w.Still.Disagrees(w.Counts[len(w.Counts)-1], w.Results()):
			wrong = append(wrong, s)
		default:
			again = append(again, s)
		}
	}
	return again, wrong
}

// plausible tells whether what is held lies between the counts before and after the reading.
func (p *proof) plausible() bool {
	before := 0
	if p.of == ofAll || p.of == ofOlder {
		before = max(0, len(*p.counts)-2)
	}
	return reading.Plausible([]int64{(*p.counts)[before], p.counted()}, p.held)
}

// untold tells whether no count of the service can be believed: the counts of spans that are
// not among the wrong ones do not agree either. An earlier count may have agreed by chance,
// while results came. So it is relied on only if no other span could be asked about.
func (c *Reconciler) untold(ctx context.Context, line, wrong []span) (bool, error) {
	if c.Reader.CountMethod() != load.MethodPagination {
		return false, nil
	}
	asked := 0
	for _, s := range line {
		if s.results == 0 || slices.ContainsFunc(wrong, func(w span) bool { return w.Window == s.Window }) {
			continue
		}
		overlap, err := c.Reader.Overlap(ctx, s.From)
		if err != nil {
			return false, err
		}
		if overlap > 0 {
			continue // two counts that are both one too high have the right difference, and prove nothing
		}
		n, err := c.Reader.Counter()(ctx, s.Window)
		if err != nil || n == s.results {
			return false, err
		}
		if asked++; asked == reading.Rereads {
			break
		}
	}
	return asked > 0 || !c.Reader.CountsAgreed(), nil
}

// suspects returns the indexes of the spans that may not agree with the count. Without
// thorough these are the kept parts, if there are some: a deleted result is held by a part.
// What the run read has just been there, and the service names what is new in a gap.
func suspects(line []span, thorough bool) (likely []int) {
	for i, at := range line {
		if thorough || at.window == nil && !at.gap {
			likely = append(likely, i)
		}
	}
	if len(likely) == 0 {
		return suspects(line, true)
	}
	return likely
}

// manySuspects is how many suspects a line must exceed to be divided first where the lookback
// begins.
const manySuspects = 16

// divide returns the index of the suspect at which a line is divided: the middle one.
// Most deleted results are of the last days. So a long line is first divided where
// the lookback begins.
func divide(line []span, suspects []int, lookback time.Time) int {
	at := slices.IndexFunc(suspects, func(i int) bool { return line[i].To.After(lookback) })
	if at <= 0 || len(suspects) <= manySuspects {
		at = len(suspects) / 2
	}
	return suspects[at]
}

// timeOf returns the time from the start of a line's first span to the end of its last one.
func timeOf(line []span) extract.Window {
	return extract.Window{From: line[0].From, To: line[len(line)-1].To}
}

func timesOf(line []span) (windows []extract.Window) {
	for _, s := range line {
		windows = append(windows, s.Window)
	}
	return windows
}

func sum(line []span) (n int64) {
	for _, s := range line {
		n += s.results
	}
	return n
}
