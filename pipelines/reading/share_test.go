package reading

import (
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/checkpoint"
)

// running returns the work of goroutines that read the stretches of one window.
func running(list ...*stretch) *shared {
	s := newShared(&Reader{}, nil)
	j := &job{w: &Window{}}
	s.jobs = []*job{j}
	for _, st := range list {
		st.w, st.job = j.w, j
		j.running = append(j.running, st)
	}
	return s
}

// half is a stretch of which a hundred results were read, each third id one.
func half(after, through, expected int64) *stretch {
	const read = 100
	return &stretch{
		gap:  gap{extracttest.Window("2026-01-01", "2026-02-01"), checkpoint.Gap{After: after, Through: through}},
		read: read, first: after + 1, last: after + 3*read, expected: expected, divisible: true,
	}
}

func TestDivideStretches(t *testing.T) {
	for name, c := range map[string]struct {
		st           *stretch
		after, least int64 // where the upper part begins, and what it is expected to hold
	}{
		"to the end of the window": {half(0, checkpoint.Last, 1100), 300 + 3*478, 522},
		"to an id":                 {half(0, 3300, extract.Unknown), 300 + 3*478, 522},
		"an odd number of pages":   {half(0, checkpoint.Last, 700), 300 + 3*283, 317},
		"too few are left":         {half(0, checkpoint.Last, 399), 0, 0},
		"nobody knows how many":    {half(0, checkpoint.Last, extract.Unknown), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(c.st)
			through := c.st.gap.Through
			up := s.take()
			switch {
			case c.least == 0 && up != nil:
				t.Errorf("it is divided at %d", up.gap.After)
			case c.least == 0:
			case up == nil:
				t.Error("it is not divided")
			case up.gap.After < c.after-6 || up.gap.After > c.after+6 || up.gap.Through != through || c.st.gap.Through != up.gap.After:
				t.Errorf("divided into %+v and %+v", c.st.gap, up.gap)
			case up.expected < c.least-3 || up.expected > c.least:
				t.Errorf("%d results are expected", up.expected)
			}
		})
	}
}

// TestRestAfterPages: how many results are left is estimated by the ids of all pages so far.
func TestRestAfterPages(t *testing.T) {
	st := half(0, 1000, extract.Unknown)
	st.read, st.first, st.last = 0, 0, 0
	for first := int64(1); first < 400; first += 200 {
		var b page.Builder
		b.Begin()
		for id := first; id < first+200; id += 2 {
			b.Result(id)
		}
		p := b.Finish()
		st.note(p)
		p.Release()
	}
	st.note(nil) // no page follows
	if results, ids := st.rest(); results != 301 || ids != 601 {
		t.Errorf("%d results among %d ids, want 301 among 601", results, ids)
	}
}

// TestLargestFirst: of several stretches the one with most left is divided, unless
// nothing shows that the service pages by ids, or no request of it follows.
func TestLargestFirst(t *testing.T) {
	small, large, unsure := half(0, 3000, 0), half(3000, 9000, 0), half(9000, checkpoint.Last, 5000)
	unsure.divisible = false
	s := running(small, large, unsure)
	if got := s.largest(); got != large {
		t.Errorf("%+v", got)
	}
	large.divisible = false
	if got := s.largest(); got != small {
		t.Errorf("%+v", got)
	}
}

// TestSettle: what a stretch holds too few of is expected above it.
func TestSettle(t *testing.T) {
	lower, upper := half(0, 3000, 600), half(3000, checkpoint.Last, 600)
	s := running(lower, upper)
	s.received(lower, nil, false)
	if upper.expected != 1100 || lower.divisible {
		t.Errorf("%d are expected above", upper.expected)
	}
	s.received(lower, nil, false)
	if upper.expected != 1100 {
		t.Errorf("%d are expected above after the second time", upper.expected)
	}
}
