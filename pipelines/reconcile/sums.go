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

// sums compares the datasets, as they will be after this run, with the service's count.
type sums struct {
	c      *Reconciler
	counts []int64 // the service's counts of all that the datasets should hold
	still  reading.Standstill
	held   int64 // results of the first dataset that differs, or else of the first one
}

// SumsUp tells whether all of the datasets is compared with one count.
func (c *Reconciler) SumsUp() bool { return c.Verifies() && c.Changes != nil && c.Changes.Continues }

// verify reads again what does not agree with the count.
func (s *sums) verify(ctx context.Context) error {
	c := s.c
	if s.counts == nil {
		s.counts = []int64{c.Changes.Counted}
	}
	for round := 0; ; round++ {
		if round > 0 && s.compare() != nil {
			if err := c.again(); err != nil {
				return err
			}
			if err := s.recount(ctx); err != nil {
				return err
			}
		}
		if s.compare() != nil && s.held < s.counted() {
			if asked, err := c.Reader.ReadTails(ctx, c.Windows); err != nil {
				return err
			} else if asked {
				if err := c.settleDuplicates(ctx); err != nil {
					return err
				}
			}
		}
		wrong, err := s.differing(ctx, round)
		if err != nil {
			return err
		}
		counted := s.counted()
		switch {
		case len(wrong) == 0, round >= reading.Rereads && reading.Plausible(s.counts[max(0, len(s.counts)-2):], s.held):
			s.still.Agrees()
			c.Verified = &load.Verified{Counted: counted, Extracted: s.held, Match: counted == s.held}
			c.Reader.At(PointVerified)
			return nil
		case s.still.Disagrees(counted, s.held):
			return &VerifyError{Counted: counted, Extracted: s.held, Windows: windowsIn(wrong), Untold: !c.Reader.CountsAgreed()}
		}
		c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "the count does not agree",
			slog.Int64("counted", counted), slog.Int64("extracted", s.held), slog.Int("windows", len(wrong)))
		if err := s.readDiffering(ctx, wrong); err != nil {
			return err
		}
	}
}

// counted returns the last count.
func (s *sums) counted() int64 { return s.counts[len(s.counts)-1] }

// compare returns the time of the first dataset that does not agree with the last
// count, or nil if all agree.
func (s *sums) compare() []span {
	counted := s.counted()
	for i, m := range wholeOf(s.c.Parts) {
		line := s.c.timelineOf(m)
		n := sum(line)
		if i == 0 || n != counted {
			s.held = n
		}
		if n != counted {
			return line
		}
	}
	return nil
}

// differing returns the spans of the datasets that do not agree with the last count. The
// first round looks only where results are missing most probably.
func (s *sums) differing(ctx context.Context, round int) ([]span, error) {
	line := s.compare()
	if line == nil {
		return nil, nil
	}
	return s.halve(ctx, line, s.counted(), round > 0)
}

// recount asks for the count of all results that the datasets should hold, and then
// what changed since the feed was asked before. It reads that. So a new result that
// is counted is read too, and cannot hide that another one was deleted.
func (s *sums) recount(ctx context.Context) error {
	c := s.c
	if err := s.count(ctx); err != nil {
		return err
	}
	more, err := c.Changes.More(ctx, c.Reader.Form)
	if err != nil || len(more) == 0 {
		return err
	}
	return c.older.readNamed(ctx, more)
}

// count asks for the count of all results that the datasets should hold.
func (s *sums) count(ctx context.Context) error {
	n, err := s.c.count(ctx, s.c.whole())
	s.counts = append(s.counts, n)
	return err
}

// halve returns those of the spans that do not agree. counted is how many results
// they hold by the counts. Without thorough it suspects few spans, see suspects.
func (s *sums) halve(ctx context.Context, line []span, counted int64, thorough bool) ([]span, error) {
	if sum(line) == counted {
		return nil, nil
	}
	likely := suspects(line, thorough)
	if len(likely) == 1 {
		return line[likely[0] : likely[0]+1], nil // the next round shows if it was another one
	}
	middle := divide(line, likely, s.c.whole().To.Add(-s.c.Reader.Def.Extract.Lookback))
	lower, upper := line[:middle], line[middle:]
	n, err := s.c.count(ctx, extract.Window{From: lower[0].From, To: lower[len(lower)-1].To})
	if err != nil {
		return nil, err
	}
	found, err := s.halve(ctx, lower, n, thorough)
	if err != nil {
		return nil, err
	}
	more, err := s.halve(ctx, upper, counted-n, thorough)
	return slices.Concat(found, more), err
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
func (s *sums) readDiffering(ctx context.Context, line []span) error {
	c := s.c
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
	if err := c.older.read(ctx, spans, "the service counts otherwise"); err != nil {
		return err
	}
	return c.settleDuplicates(ctx)
}
