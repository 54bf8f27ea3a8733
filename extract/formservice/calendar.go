package formservice

import (
	"math"
	"sort"
)

// plan spreads the results over the days: days[d] is the number of the first
// result that is started on day d or later.
func (g *generated) plan() {
	count := int((g.to - g.from + daySize - 1) / daySize)
	weights := make([]int64, count)
	g.burst = -1
	var total int64
	for d := range weights {
		weights[d] = g.weight(d, count)
		total += weights[d]
	}
	crowd := int64(0)
	if count >= 5 && !g.o.Even {
		g.burst = int(g.hash(saltDay, 1<<40) % uint64(count))
		crowd = g.n / 5
	}
	if total == 0 {
		weights[0], total = 1, 1
	}
	g.days = make([]int64, count+1)
	var sum, extra int64
	for d, w := range weights {
		sum += w
		if d == g.burst {
			extra = crowd
		}
		g.days[d+1] = (g.n-crowd)*sum/total + extra
	}
}

// weight is a day's share of the results: nothing on one day in eleven and in
// one long holiday, little on two days a week.
func (g *generated) weight(d, count int) int64 {
	h := g.hash(saltDay, uint64(d))
	switch {
	case g.o.Even || count < 5:
		return 64
	case h%11 == 0, d >= count/3 && d < count/3+count/40:
		return 0
	case d%7 >= 5:
		return 4 + int64(h>>8%8)
	}
	return 24 + int64(h>>8%80)
}

// quiet tells whether a time lies on a day without results.
func (g *generated) quiet(t int64) bool {
	d := int((t - g.from) / daySize)
	return d < len(g.days)-1 && d != g.burst && g.weight(d, len(g.days)-1) == 0
}

// start returns when a result was started: it never falls with the number.
// Runs of eight results often share a second, and the middle of the burst day
// has one second that holds up to 2,000.
func (g *generated) start(n int64) int64 {
	d := sort.Search(len(g.days)-1, func(d int) bool { return g.days[d+1] > n })
	first := g.days[d]
	size := g.days[d+1] - first
	p := n - first
	at := p
	if mix(g.hash(saltTie, uint64(d)), uint64(p/8))%4 == 0 {
		at = p / 8 * 8
	}
	if d == g.burst && p >= size/2 {
		if p < size/2+min(size/10, 2000) {
			at = size / 2
		}
		at = max(at, size/2)
	}
	length := min(daySize, g.to-g.from-int64(d)*daySize)
	second := at * length / size
	if step := length / size; step > 1 { // neighbours are at least a step apart
		second += int64(g.hash(saltTie, uint64(first+at)) % uint64(step))
	}
	return g.from + int64(d)*daySize + second
}

// slots tells which result of a block is late, which is unfinished and which
// has no date; -1: none.
func (g *generated) slots(block int64) (late, open, undated int64) {
	h := g.hash(saltBlock, uint64(block))
	late = int64(h % blockSize)
	open = (late + 1 + int64(h>>8%31)) % blockSize
	undated = (late + 33 + int64(h>>16%30)) % blockSize
	if g.o.NoLate {
		late = -1
	}
	if g.o.NoUnfinished {
		open = -1
	}
	if g.o.NoUnfinished || g.o.NoUndated {
		undated = -1
	}
	return late, open, undated
}

// never is the date of what has not happened.
const never = math.MinInt64

// dates are those of one result, in wall-clock seconds, or never.
type dates struct{ start, finish int64 }

// filtered is the date that date bounds look at, or never.
func (d dates) filtered() int64 {
	if d.finish != never {
		return d.finish
	}
	return d.start
}

// dates returns when a result was started and finished.
func (g *generated) dates(n int64) dates {
	late, open, undated := g.slots(n / blockSize)
	slot := n % blockSize
	if slot == undated {
		return dates{never, never}
	}
	start := g.start(n)
	if slot == open {
		return dates{start, never}
	}
	h := g.hash(saltDelay, uint64(n))
	delay := int64(5 + h%600)
	switch {
	case slot == late:
		delay = soon + int64(h%(latest-soon))
	case h>>32%8 == 0:
		delay = int64(h>>8%soon) + 1
	}
	finish := start + delay
	if g.quiet(finish) { // nothing at all happens on a quiet day
		finish = start + min(int64(h%600), daySize-1-(start-g.from)%daySize)
	}
	if finish >= g.to {
		if !g.o.NoUnfinished {
			return dates{start, never}
		}
		finish = g.to - 1
	}
	return dates{start, finish}
}

// updated returns when result n was changed last: when it was started, finished
// or, for one finished result in 16, edited. One without dates was changed
// within the hour after the start that it does not tell.
func (g *generated) updated(n int64) int64 {
	d, h := g.dates(n), g.hash(saltContent, uint64(n))
	switch {
	case g.o.NoUpdates:
		return never
	case d.start == never:
		return min(g.start(n)+int64(h>>9%soon), g.to-1)
	case d.finish == never:
		return d.start
	case h>>5%16 == 0:
		return min(d.finish+int64(h>>9%soon), g.to-1)
	}
	return d.finish
}
