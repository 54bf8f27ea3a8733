package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
)

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
