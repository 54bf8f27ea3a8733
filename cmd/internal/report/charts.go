package report

import (
	"fmt"
	"math"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
)

// Measures of a chart, in units of which the page's width has 960.
const (
	plotLeft   = 64.0 // labels stand left of it
	plotWidth  = 888.0
	plotHeight = 170.0
	axisHeight = 22.0
)

// chart is a drawing. A screen reader reads its title and what it is about.
type chart struct {
	Title, About string
	Height       float64
	Bars         []bar
	Labels       []label
	Key          []meaning // of the colours that the chart has
}

type bar struct {
	Class      string // says its colour
	Title      string
	X, Y, W, H float64
}

type label struct {
	X, Y         float64
	Anchor, Text string // Anchor is start, middle or end
}

type meaning struct{ Class, Text string }

// tenth rounds a coordinate: one decimal is less than a pixel.
func tenth(v float64) float64 { return math.Round(v*10) / 10 }

func (c *chart) bar(class, title string, x, y, w, h float64) {
	c.Bars = append(c.Bars, bar{class, title, tenth(x), tenth(y), tenth(w), tenth(h)})
}

func (c *chart) label(x, y float64, anchor, text string) {
	c.Labels = append(c.Labels, label{tenth(x), tenth(y), anchor, text})
}

// explain makes the key, of those meanings whose colours are in the chart.
func (c *chart) explain(meanings ...meaning) {
	has := map[string]bool{}
	for _, b := range c.Bars {
		has[b.Class] = true
	}
	for _, m := range meanings {
		if has[m.Class] {
			c.Key = append(c.Key, m)
		}
	}
}

// TimeLine shows how many results each span of the form's range has. It is nil if there are
// no two spans, or no results.
func (f form) TimeLine() *chart {
	var all, rejected, highest int64
	windows := 0
	for _, s := range f.Spans {
		all, rejected, windows = all+s.Results, rejected+s.Rejected, windows+s.Windows
		highest = max(highest, s.Results+missing(s))
	}
	if len(f.Spans) < 2 || highest == 0 {
		return nil
	}
	c := &chart{Title: "Time line", Height: plotHeight + axisHeight}
	c.About = fmt.Sprintf("%s of %s, %s rejected; a bar shows %s at most.",
		console.Plural(all, "result"), console.Plural(windows, "window"), console.Thousands(rejected), console.Thousands(highest))
	c.spans(f.Spans, highest)
	c.explain(meaning{"accent", "rows"}, meaning{"bad", "rejected"}, meaning{"soft", "planned and not read"})
	return c
}

// missing is how many results of a span the plan counted that were not read.
func missing(s pipelines.Span) int64 {
	if s.Planned == nil {
		return 0
	}
	return max(0, *s.Planned-s.Results)
}

// spans draws a bar for each span.
func (c *chart) spans(spans []pipelines.Span, highest int64) {
	ticks := niceStep(highest)
	end := max(1, (highest+ticks-1)/ticks) * ticks
	scale := (plotHeight - 10) / float64(end)
	for n := int64(0); n <= end; n += ticks {
		y := plotHeight - scale*float64(n)
		c.bar("grid", "", plotLeft, y, plotWidth, 1)
		c.label(plotLeft-8, y+4, "end", console.Thousands(n))
	}
	step := plotWidth / float64(len(spans))
	w := min(step-min(step*0.2, 4), 40)
	labels := int(math.Ceil(84 / step)) // the distance of two
	for i, s := range spans {
		x, y := plotLeft+step*float64(i), plotHeight
		if i%labels == 0 && x <= plotLeft+plotWidth-60 && !s.From.IsZero() {
			c.label(x, plotHeight+15, "start", s.From.Format(time.DateOnly))
		}
		title := fmt.Sprintf("%s: %s, %s rejected", fromTo(s.From.Time, s.To.Time), console.Plural(s.Results, "result"), console.Thousands(s.Rejected))
		for _, part := range []struct {
			class string
			n     int64
		}{{"accent", s.Results - s.Rejected}, {"bad", s.Rejected}, {"soft", missing(s)}} {
			if part.n > 0 {
				h := max(scale*float64(part.n), 1)
				y -= h
				c.bar(part.class, title, x, y, w, h)
			}
		}
	}
}

// niceStep is the distance of two lines of an axis: 1, 2 or 5 times a power of ten, so that
// there are three to seven.
func niceStep(most int64) int64 {
	power := int64(math.Pow10(max(0, len(fmt.Sprint(most))-2)))
	for _, n := range []int64{1, 2, 5, 10} {
		if most <= 6*n*power {
			return n * power
		}
	}
	return 20 * power
}
