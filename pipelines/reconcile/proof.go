package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
)

// verify compares what was read with the service's counts (Get Results Count).
// Usually one count over the range agrees. If not, verify counts halves of the
// range until it finds the windows that changed, and reads those again. A form that
// changes all the time may never agree exactly. So in the end a window passes if
// its number of results lies between its counts before and after the last reading.
func (c *Reconciler) verify(ctx context.Context) error {
	if !c.Verifies() {
		c.Verified = &load.Verified{Extracted: reading.Results(reading.OfRange(c.Windows)), Reason: "not asked for"}
		switch {
		case c.Reader.Filtered():
			c.Verified.Reason = "not applicable: counts know neither searches nor views"
		case c.Reader.Countless != "":
			c.Verified.Reason = c.Reader.Countless
		}
		return c.lateUncounted(ctx)
	}
	if c.SumsUp() {
		return c.verifyWhole(ctx)
	}
	v := &verification{c: c, before: c.Plan.Total, last: c.Plan.Total}
	for {
		if err := v.settle(ctx); err != nil {
			return err
		}
		if err := v.undated(ctx); err != nil {
			return err
		}
		read := c.Reader.Reads()
		if err := c.verifyOlder(ctx); err != nil {
			return err
		}
		if c.Reader.Reads() == read {
			break // otherwise windows were read again and must agree, too
		}
	}
	if err := v.countOwn(ctx); err != nil {
		return err
	}
	c.Verified = &load.Verified{Counted: v.after, Extracted: v.extracted(), Match: v.after == v.extracted()}
	c.Reader.At(PointVerified)
	return nil
}

// settle reads windows again until they agree with their counts. A window whose count
// moves all the time passes if its results lie between its counts. One whose count stands
// still does not.
func (v *verification) settle(ctx context.Context) error {
	for {
		agrees, err := v.whole(ctx)
		if err != nil || agrees {
			return err
		}
		changed, err := v.changed(ctx)
		if err != nil {
			return err
		}
		if v.thorough && len(changed) == 0 {
			return nil
		}
		again, wrong := v.judge(changed)
		if len(wrong) > 0 {
			untold, err := v.c.untold(ctx, wrong)
			if err != nil {
				return err
			}
			return &VerifyError{Counted: v.after, Extracted: v.extracted(), Windows: spans(wrong), Untold: untold}
		}
		if len(again) == 0 {
			if len(changed) > 0 && reading.Plausible([]int64{v.before, v.after}, v.extracted()) {
				return nil
			}
			again = changed
		}
		if err := v.c.again(); err != nil { // also where the range's count is not the sum of its windows'
			return err
		}
		if err := v.c.readChanged(ctx, again); err != nil {
			return err
		}
	}
}

// judge sorts the windows that do not agree with their last count. again are those to read
// once more. wrong are those whose count stood still meanwhile. The others lie between
// their counts.
func (v *verification) judge(changed []*reading.Window) (again, wrong []*reading.Window) {
	for _, w := range changed {
		w.Disagreed++
		switch {
		case w.Disagreed > reading.Rereads && w.Plausible():
		case w.Still.Disagrees(w.Counts[len(w.Counts)-1], w.Results()):
			wrong = append(wrong, w)
		default:
			again = append(again, w)
		}
	}
	return again, wrong
}

// untold tells whether no count of the service can be believed: those of windows that are
// not among the wrong ones do not agree either. A count that agreed before may have done so
// by chance, while results came. So it counts only where nothing else was read.
func (c *Reconciler) untold(ctx context.Context, wrong []*reading.Window) (bool, error) {
	if c.Reader.CountMethod() != load.MethodPagination {
		return false, nil
	}
	others := slices.DeleteFunc(reading.OfRange(c.Windows), func(w *reading.Window) bool { return w.Results() == 0 || slices.Contains(wrong, w) })
	asked := 0
	for _, w := range others {
		overlap, err := c.Reader.Overlap(ctx, w.Planned.Window.From)
		if err != nil {
			return false, err
		}
		if overlap > 0 {
			continue // two counts that are one too high or too low have the right difference
		}
		n, err := c.Reader.Counter()(ctx, w.Planned.Window)
		if err != nil || n == w.Results() {
			return false, err
		}
		if asked++; asked == reading.Rereads {
			break
		}
	}
	return asked > 0 || !c.Reader.CountsAgreed(), nil
}

// count asks how many results a window holds, without those of the second before it.
func (c *Reconciler) count(ctx context.Context, w extract.Window) (int64, error) {
	n, err := c.Reader.Counter()(ctx, w)
	if err != nil {
		return 0, err
	}
	overlap, err := c.Reader.Overlap(ctx, w.From)
	return n - overlap, err
}

// readChanged reads the windows again that do not agree with their counts.
func (c *Reconciler) readChanged(ctx context.Context, changed []*reading.Window) error {
	if err := c.readAgain(ctx, changed, "the service counts otherwise", c.Reader.ForgetMiscounted); err != nil {
		return err
	}
	return c.settleDuplicates(ctx)
}

// verification compares what one run read with the service's counts.
type verification struct {
	c             *Reconciler
	before, after int64 // counts over the range before and after the reading
	last          int64 // the range's count in the last round
	// thorough is set if the range's count changed since the last round. Then a
	// missed result and a deleted one may cancel out. So windows are compared even
	// if the whole range agrees, unless the service tells what changed.
	thorough bool
	looked   bool // for results after the range
}

func (v *verification) extracted() int64 { return reading.Results(reading.OfRange(v.c.Windows)) }

// whole counts the range once more. It returns true if the count equals what
// was read and what was counted before.
func (v *verification) whole(ctx context.Context) (bool, error) {
	n := v.c.counted.read
	if n == extract.Unknown || v.c.counted.reads != v.c.Reader.Reads() {
		var err error
		if n, err = v.c.Reader.Counter()(ctx, v.c.Interval.Read); err != nil {
			return false, err
		}
	}
	v.c.counted.read = extract.Unknown
	if v.before == extract.Unknown { // nothing was counted for the plan
		v.before, v.last = n, n
	}
	if late := v.last - n; late > 0 && v.c.Plan.Range.Endless && !v.looked {
		v.looked = true
		late, err := v.c.late(ctx)
		if err != nil {
			return false, err
		}
		v.before, v.last = v.before-late, v.last-late
	}
	v.thorough = n != v.last && (v.c.Changes == nil || !v.c.Changes.Usable)
	v.after, v.last, v.c.counted.own = n, n, extract.Unknown
	if n != v.extracted() {
		overlap, err := v.c.Reader.Overlap(ctx, v.c.Interval.Read.From)
		if err != nil {
			return false, err
		}
		v.after -= overlap
	}
	if v.after != v.extracted() || v.thorough {
		return false, nil
	}
	if v.after == v.before {
		v.c.Reader.CountAgreed(v.after)
	}
	err := v.countOwn(ctx)
	return v.c.counted.own == extract.Unknown || v.c.counted.own == reading.Results(v.ownWindows()), err
}

// countOwn counts the range that was asked for, once in each round. It does so only
// if datasets widened the range and a single file holds just what was asked for.
func (v *verification) countOwn(ctx context.Context) error {
	c := v.c
	if c.counted.own != extract.Unknown || c.Interval.Asked == c.Interval.Read || !c.Files {
		return nil
	}
	n, err := c.count(ctx, c.Interval.Asked)
	c.counted.own = n
	return err
}

// ownWindows returns the windows of the range that was asked for, without undated results.
func (v *verification) ownWindows() []*reading.Window {
	return slices.DeleteFunc(ownOf(v.c.Interval, v.c.Windows), func(w *reading.Window) bool { return w.Undated != nil })
}

// changed returns the windows that do not agree with their counts. It finds
// them by halving the list of windows.
func (v *verification) changed(ctx context.Context) ([]*reading.Window, error) {
	windows, counted := reading.OfRange(v.c.Windows), v.after
	if v.c.counted.own != extract.Unknown { // the whole range agrees
		windows, counted = v.ownWindows(), v.c.counted.own
	}
	found, err := v.differing(ctx, windows, counted)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	v.c.Reader.Log.LogAttrs(ctx, slog.LevelWarn, "the count does not agree",
		slog.Int64("counted", counted), slog.Int64("extracted", reading.Results(windows)), slog.Int("windows", len(found)))
	return found, nil
}

// differing returns those of the windows that do not agree. counted is how many results they
// hold by the service's count.
func (v *verification) differing(ctx context.Context, windows []*reading.Window, counted int64) (found []*reading.Window, err error) {
	err = extract.Halving[[]*reading.Window]{
		Visit: func(ctx context.Context, ws []*reading.Window, n int64, exact bool) (bool, error) {
			switch {
			case len(ws) == 0:
				return false, nil
			case v.agree(ws, n):
				if exact {
					v.c.Reader.CountAgreed(n)
				}
				return false, nil
			case len(ws) == 1:
				if !exact {
					var err error
					if n, err = v.c.count(ctx, ws[0].Planned.Window); err != nil {
						return false, err
					}
				}
				if v.differs(ws[0], n) {
					found = append(found, ws[0])
				}
				return false, nil
			case v.thorough && v.blind(ws):
				changed, err := v.countEach(ctx, ws)
				found = append(found, changed...)
				return false, err
			}
			return true, nil
		},
		Divide: func(ctx context.Context, ws []*reading.Window) (lower, upper []*reading.Window, n int64, err error) {
			lower, upper = ws[:len(ws)/2], ws[len(ws)/2:]
			n, err = v.c.count(ctx, extract.Window{From: lower[0].Planned.Window.From, To: lower[len(lower)-1].Planned.Window.To})
			return lower, upper, n, err
		},
	}.Halve(ctx, windows, counted, true)
	return found, err
}

// differs notes a window's count, and tells whether another number of results was read.
func (v *verification) differs(w *reading.Window, counted int64) bool {
	w.Counts = append(w.Counts, counted)
	if w.Results() != counted {
		return true
	}
	if n := len(w.Counts); n > 2 && w.Counts[n-2] == counted { // the first one may be a difference
		v.c.Reader.CountAgreed(counted)
	}
	w.Still.Agrees()
	return false
}

// agree tells whether windows need no closer look. What was read must equal
// their count and, if thorough is set, also their earlier count.
func (v *verification) agree(ws []*reading.Window, counted int64) bool {
	return reading.Results(ws) == counted && (!v.thorough || v.countedBefore(ws) == counted)
}

// countedBefore returns how many results the windows held by their last counts. It
// returns extract.Unknown if neither they nor the planner's groups of them were counted.
func (v *verification) countedBefore(ws []*reading.Window) int64 {
	var sum int64
	for i := 0; i < len(ws); {
		if n := len(ws[i].Counts); n > 0 {
			sum += ws[i].Counts[n-1]
			i++
			continue
		}
		group := ws[i].Group
		size := len(group.Windows)
		if size == 0 || size > len(ws)-i || !slices.Equal(group.Windows, ws[i:i+size]) {
			return extract.Unknown
		}
		sum += group.Count
		i += size
	}
	return sum
}

// blind tells whether halving is useless, because neither the windows nor
// smaller groups of them were counted before.
func (v *verification) blind(ws []*reading.Window) bool {
	for _, w := range ws {
		if len(w.Counts) > 0 || len(w.Group.Windows) < len(ws) {
			return false
		}
	}
	return true
}

// countEach counts each window, several at a time. It returns those that do not agree.
func (v *verification) countEach(ctx context.Context, ws []*reading.Window) ([]*reading.Window, error) {
	counts := make([]int64, len(ws))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(v.c.Reader.Def.Source.Requests.Concurrency)
	for i, w := range ws {
		group.Go(func() (err error) {
			counts[i], err = v.c.count(ctx, w.Planned.Window)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var changed []*reading.Window
	for i, w := range ws {
		w.Counts = append(w.Counts, counts[i])
		if w.Results() != counts[i] {
			changed = append(changed, w)
		}
	}
	return changed, nil
}

// undated compares the number of results without a date with its count. It
// counts again only if the first count does not agree. Then results have come,
// gone, or got a date. The other windows are settled first, because the results
// in them have a date.
func (v *verification) undated(ctx context.Context) error {
	c := v.c
	w := undatedWindow(c.Windows)
	if w == nil || w.Undated.Only != nil {
		return nil
	}
	n := w.Counts[0]
	for {
		if err := v.settleLeftOut(ctx); err != nil || w.Results() == n {
			return err
		}
		var total int64
		var err error
		if total, n, err = c.countUndated(ctx); err != nil {
			return err
		}
		w.Counts = append(w.Counts, n)
		switch {
		case w.Results() == n:
			return nil
		case w.Still.Disagrees(n, w.Results()):
			return &VerifyError{Counted: n, Extracted: w.Results(), Undated: true, Untold: !c.Reader.CountsAgreed()}
		case len(w.Counts) > reading.Rereads && w.Plausible():
			return nil
		}
		if w.Results() > n && !w.Undated.Started {
			// A window may lack one of them, and hold another result that is gone.
			w.Undated.Started, w.Undated.LeftOut = true, roaring64.New()
		}
		if err := v.settle(ctx); err != nil {
			return err
		}
		if w.Undated.Ranges, err = extract.UndatedRanges(ctx, c.Reader.Client, c.Reader.Name, total, n); err != nil {
			return err
		}
		if err := c.readChanged(ctx, []*reading.Window{w}); err != nil {
			return err
		}
	}
}

// settleLeftOut reads the windows again that hold results which were left out of those without a
// date, see readLeftOut.
func (v *verification) settleLeftOut(ctx context.Context) error {
	for {
		if again, err := v.c.readLeftOut(ctx); err != nil || !again {
			return err
		}
		if err := v.c.again(); err != nil {
			return err
		}
		if err := v.settle(ctx); err != nil {
			return err
		}
	}
}

// countUndated counts the results that no window with a date can hold. From all
// results it subtracts those up to the range's end and those after it. This
// takes one more request than total and extract.CountUndated. But it agrees with the
// windows, however the service treats results before 1970 and however it treats
// undated results.
func (c *Reconciler) countUndated(ctx context.Context) (total, undated int64, err error) {
	for i, w := range []extract.Window{{}, {To: c.Interval.Read.To}, {From: c.Interval.Read.To}} {
		n, err := c.count(ctx, w)
		if err != nil {
			return 0, 0, err
		}
		if i == 0 {
			total, undated = n, n
		} else {
			undated -= n
		}
	}
	return total, max(0, undated), nil
}

func spans(ws []*reading.Window) []extract.Window {
	out := make([]extract.Window, 0, len(ws))
	for _, w := range ws {
		out = append(out, w.Planned.Window)
	}
	return out
}

// A run that continues the datasets reads only what changed. One count over all
// their time shows whether anything else differs, such as a result that was
// deleted. Then the time is halved by counts, down to the parts that differ.

// SumsUp tells whether all of the datasets is compared with one count.
func (c *Reconciler) SumsUp() bool { return c.Verifies() && c.Changes != nil && c.Changes.Continues }

// verifyWhole reads again what does not agree with the count.
func (c *Reconciler) verifyWhole(ctx context.Context) error {
	if c.counts == nil {
		c.counts = []int64{c.Changes.Counted}
	}
	for round := 0; ; round++ {
		if round > 0 && c.compare() != nil {
			if err := c.again(); err != nil {
				return err
			}
			if err := c.recount(ctx); err != nil {
				return err
			}
		}
		if c.compare() != nil && c.held < c.lastCount() {
			if asked, err := c.Reader.ReadTails(ctx, c.Windows); err != nil {
				return err
			} else if asked {
				if err := c.settleDuplicates(ctx); err != nil {
					return err
				}
			}
		}
		wrong, err := c.differingSpans(ctx, round)
		if err != nil {
			return err
		}
		counted := c.lastCount()
		switch {
		case len(wrong) == 0, round >= reading.Rereads && reading.Plausible(c.counts[max(0, len(c.counts)-2):], c.held):
			c.still.Agrees()
			c.Verified = &load.Verified{Counted: counted, Extracted: c.held, Match: counted == c.held}
			c.Reader.At(PointVerified)
			return nil
		case c.still.Disagrees(counted, c.held):
			return &VerifyError{Counted: counted, Extracted: c.held, Windows: windowsIn(wrong), Untold: !c.Reader.CountsAgreed()}
		}
		c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "the count does not agree",
			slog.Int64("counted", counted), slog.Int64("extracted", c.held), slog.Int("windows", len(wrong)))
		if err := c.readDiffering(ctx, wrong); err != nil {
			return err
		}
	}
}

// lastCount returns the last count.
func (c *Reconciler) lastCount() int64 { return c.counts[len(c.counts)-1] }

// compare returns the time of the first dataset that does not agree with the last
// count, or nil if all agree.
func (c *Reconciler) compare() []span {
	counted := c.lastCount()
	for i, m := range wholeOf(c.Parts) {
		line := c.timelineOf(m)
		n := sum(line)
		if i == 0 || n != counted {
			c.held = n
		}
		if n != counted {
			return line
		}
	}
	return nil
}

// differingSpans returns the spans of the datasets that do not agree with the last count. The
// first round suspects few spans, see suspects.
func (c *Reconciler) differingSpans(ctx context.Context, round int) (wrong []span, err error) {
	line, thorough := c.compare(), round > 0
	if line == nil {
		return nil, nil
	}
	err = extract.Halving[[]span]{
		Visit: func(_ context.Context, line []span, n int64, _ bool) (bool, error) {
			if sum(line) == n {
				return false, nil
			}
			likely := suspects(line, thorough)
			if len(likely) == 1 { // the next round shows if it was another one
				wrong = append(wrong, line[likely[0]])
			}
			return len(likely) > 1, nil
		},
		Divide: func(ctx context.Context, line []span) (lower, upper []span, n int64, err error) {
			middle := divide(line, suspects(line, thorough), c.whole().To.Add(-c.Reader.Def.Extract.Lookback))
			lower, upper = line[:middle], line[middle:]
			n, err = c.count(ctx, timeOf(lower))
			return lower, upper, n, err
		},
	}.Halve(ctx, line, c.lastCount(), true)
	return wrong, err
}

// recount asks for the count of all results that the datasets should hold, and then
// what changed since the feed was asked before. It reads that. So a new result that
// is counted is read too, and cannot hide that another one was deleted.
func (c *Reconciler) recount(ctx context.Context) error {
	if err := c.countWhole(ctx); err != nil {
		return err
	}
	more, err := c.Changes.More(ctx, c.Reader.Form)
	if err != nil || len(more) == 0 {
		return err
	}
	return c.readNamed(ctx, more)
}

// countWhole asks for the count of all results that the datasets should hold.
func (c *Reconciler) countWhole(ctx context.Context) error {
	n, err := c.count(ctx, c.whole())
	c.counts = append(c.counts, n)
	return err
}

// suspects returns the indexes of the spans that may not agree. Without thorough these
// are the kept parts, if there are some: a deleted result is held by a part. What the
// run read has just been there, and the service names what is new in a gap.
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

// manySuspects is how many spans are worth a guess at where results are deleted.
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

// timeOf returns the time of a line of spans.
func timeOf(line []span) extract.Window {
	return extract.Window{From: line[0].From, To: line[len(line)-1].To}
}

func sum(line []span) (n int64) {
	for _, s := range line {
		n += s.results
	}
	return n
}

func windowsIn(line []span) (windows []extract.Window) {
	for _, s := range line {
		windows = append(windows, s.Window)
	}
	return windows
}

// readDiffering reads spans again: windows of the run once more, parts and gaps as
// older ones.
func (c *Reconciler) readDiffering(ctx context.Context, line []span) error {
	var windows []*reading.Window
	var spans []extract.Window
	for _, at := range line {
		if at.window != nil {
			windows = append(windows, at.window)
		} else {
			spans = append(spans, at.Window)
		}
	}
	if err := c.readAgain(ctx, windows, "the service counts otherwise", c.Reader.Forget); err != nil {
		return err
	}
	if err := c.readOlder(ctx, spans, "the service counts otherwise"); err != nil {
		return err
	}
	return c.settleDuplicates(ctx)
}
