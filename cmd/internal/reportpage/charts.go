package reportpage

import (
	"fmt"
	"math"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/detail"
)

// Measures of the charts, in units of which the page's width has 960.
const (
	plotLeft   = 92.0 // labels stand left of it
	plotWidth  = 860.0
	axisHeight = 22.0
	trafficH   = 84.0
	daysH      = 170.0
	mostRows   = 300 // of the time line
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

// clock is the axis of the time of a run. Its value is the time at its end.
type clock time.Duration

func (c clock) x(at time.Duration) float64 { return plotLeft + plotWidth*float64(at)/float64(c) }

// marks returns the distance of two marks, in a unit of which the axis has at least five.
func (c clock) marks() (step, unit time.Duration, name string) {
	unit, name = time.Millisecond, "ms"
	for _, larger := range []struct {
		unit time.Duration
		name string
	}{{time.Second, "s"}, {time.Minute, "min"}, {time.Hour, "h"}, {24 * time.Hour, "days"}} {
		if time.Duration(c) >= 5*larger.unit {
			unit, name = larger.unit, larger.name
		}
	}
	return time.Duration(niceStep(int64(time.Duration(c)/unit))) * unit, unit, name
}

// draw draws the axis below the chart.
func (c clock) draw(on *chart, bottom float64) {
	step, unit, name := c.marks()
	for at := time.Duration(0); at <= time.Duration(c); at += step {
		anchor, text := "middle", fmt.Sprintf("%d %s", at/unit, name)
		switch x := c.x(at); {
		case at == 0:
			anchor, text = "start", "0"
		case x > plotLeft+plotWidth-20:
			anchor = "end"
		}
		on.bar("grid", "", c.x(at), 18, 1, bottom-18)
		on.label(c.x(at), bottom+15, anchor, text)
	}
	on.bar("grid", "", plotLeft, bottom, plotWidth, 1)
}

// timeline shows when each window was read, and the requests below it on the same axis.
func timeline(f *pipelines.FormReport, most int) *chart {
	d := f.Detail
	spans, traffic := merged(d.Spans, min(mostRows, most)), d.Traffic
	all := max(f.EndedAt.Sub(f.StartedAt), traffic.Step*time.Duration(len(traffic.Moments)), time.Millisecond)
	for _, s := range spans {
		all = max(all, s.Asked.Ended)
	}
	for all > time.Duration(min(200, most))*traffic.Step {
		traffic = traffic.Coarser()
	}
	row := min(18, 260/float64(max(1, len(spans))))
	top := 26 + row*float64(len(spans)) // of the traffic
	c := &chart{Title: "Time line", About: timelineText(d.Spans, all), Height: top + trafficH + axisHeight}
	clock(all).draw(c, top+trafficH)
	c.spans(spans, clock(all), row)
	c.traffic(traffic, clock(all), top)
	c.explain(
		meaning{"accent", "window"}, meaning{"warn", "window with retries"}, meaning{"again", "window read again"},
		meaning{"soft", "page of results"}, meaning{"other", "count"}, meaning{"bad", "attempt without an answer of use"},
	)
	return c
}

func timelineText(spans []detail.Span, all time.Duration) string {
	var asked, empty, taken int
	for _, s := range spans {
		empty, taken = empty+s.Empty, taken+s.Taken
		if s.Asked.Requests > 0 {
			asked += s.Windows - s.Empty
		}
	}
	return fmt.Sprintf("%s were asked for within %s; %d were known to be empty, %d taken over from an earlier run. Down: windows in order of their time. Right: the time of the run.",
		show.Plural(asked, "window"), took(all), empty, taken)
}

// spans draws a bar for each span, from its first request to the end of its last.
func (c *chart) spans(spans []detail.Span, axis clock, row float64) {
	if len(spans) > 0 {
		c.label(plotLeft, 11, "start", "Windows by when they were asked for")
	}
	labelled := -100.0
	for i, s := range spans {
		y := 18 + row*float64(i)
		if y-labelled >= 15 {
			name := spanName(s)
			if s.Kind == detail.Dated && !s.From.IsZero() {
				name = s.From.Format(time.DateOnly)
			}
			c.label(plotLeft-8, y+max(row/2+4, 8), "end", name)
			labelled = y
		}
		class := "accent"
		switch {
		case s.Asked.Requests+s.Asked.Retries == 0:
			if row >= 15 {
				c.label(plotLeft+6, y+row/2+4, "start", remark(s))
			}
			continue
		case s.Again > 0:
			class = "again"
		case s.Asked.Retries > 0:
			class = "warn"
		}
		text := fmt.Sprintf("%s: %s, %s, +%s, took %s", spanName(s), show.Plural(s.Results, "result"), show.Plural(s.Asked.Requests, "request"),
			took(s.Asked.Began), took(lasted(s)))
		if s.Asked.Retries > 0 {
			text += ", retries " + show.Thousands(s.Asked.Retries)
		}
		x := axis.x(s.Asked.Began)
		c.bar(class, text, x, y, max(axis.x(s.Asked.Ended)-x, 2), max(row*0.85, 0.9))
	}
}

// traffic draws the attempts over the time of the run.
func (c *chart) traffic(t detail.Traffic, axis clock, top float64) {
	var most int64 = 1
	for _, m := range t.Moments {
		most = max(most, m.Pages+m.Others+m.Failed)
	}
	bottom, plot := top+trafficH, trafficH-22
	c.label(plotLeft, top+14, "start", "Requests in each "+took(max(t.Step, time.Millisecond)))
	c.label(plotLeft-8, bottom-plot+4, "end", show.Thousands(most))
	c.label(plotLeft-8, bottom, "end", "0")
	for i, m := range t.Moments {
		x, y := axis.x(t.Step*time.Duration(i)), bottom
		w := max(axis.x(t.Step*time.Duration(i+1))-x-0.6, 1.2)
		for _, part := range []struct {
			class string
			n     int64
		}{{"soft", m.Pages}, {"other", m.Others}, {"bad", m.Failed}} {
			if part.n > 0 {
				h := plot * float64(part.n) / float64(most)
				y -= h
				c.bar(part.class, "", x, y, w, h)
			}
		}
	}
}

// days are the results of each day, or of several days in a row.
type days struct {
	Chart   *chart
	List    []detail.Day
	Dayless int64 // results whose day is not known
}

func daysOf(d *detail.Form, most int) *days {
	list, unit := stretches(d.Days, most)
	word := "day"
	switch {
	case unit == 7:
		word = "week"
	case unit > 7:
		word = fmt.Sprintf("%d weeks", unit/7)
	}
	var rows, rejected, highest int64
	for _, s := range list {
		rows, rejected, highest = rows+s.Rows, rejected+s.Rejected, max(highest, s.Rows+s.Rejected)
	}
	c := &chart{Title: "Results per " + word, Height: daysH + axisHeight}
	c.About = fmt.Sprintf("%s from %s to %s, %s rejected; a bar shows %s at most.",
		show.Plural(rows, "result"), wall(d.Days[0].Day), wall(d.Days[len(d.Days)-1].Day), show.Thousands(rejected), show.Thousands(highest))
	c.days(list, highest)
	c.explain(meaning{"accent", "rows"}, meaning{"bad", "rejected"})
	return &days{c, list, d.Dayless}
}

// days draws a bar for each day.
func (c *chart) days(list []detail.Day, highest int64) {
	const bottom = daysH
	ticks := niceStep(highest)
	end := max(1, (highest+ticks-1)/ticks) * ticks
	scale := (bottom - 10) / float64(end)
	for n := int64(0); n <= end; n += ticks {
		y := bottom - scale*float64(n)
		c.bar("grid", "", plotLeft, y, plotWidth, 1)
		c.label(plotLeft-8, y+4, "end", show.Thousands(n))
	}
	step := plotWidth / float64(len(list))
	w := min(step-min(step*0.2, 4), 40)
	labels := int(math.Ceil(84 / step)) // the distance of two
	for i, s := range list {
		x := plotLeft + step*float64(i)
		if i%labels == 0 && x <= plotLeft+plotWidth-60 {
			c.label(x, bottom+15, "start", wall(s.Day))
		}
		title := fmt.Sprintf("%s: %s, %s rejected", wall(s.Day), show.Plural(s.Rows, "result"), show.Thousands(s.Rejected))
		good, bad := scale*float64(s.Rows), scale*float64(s.Rejected)
		if s.Rows > 0 {
			good = max(good, 0.8)
			c.bar("accent", title, x, bottom-good, w, good)
		}
		if s.Rejected > 0 {
			bad = max(bad, 1.5)
			c.bar("bad", title, x, bottom-good-bad, w, bad)
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
