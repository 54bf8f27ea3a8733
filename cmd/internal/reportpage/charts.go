package reportpage

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/detail"
)

// Measures of the charts, in units of which the page's width has chartWidth.
const (
	chartWidth = 960.0
	plotLeft   = 92.0 // labels stand left of it
	plotRight  = 952.0
	axisHeight = 22.0
	trafficH   = 84.0
	daysH      = 170.0
	mostRows   = 300 // of the time line
)

// svg begins a chart that is height units high. A screen reader reads title and description.
func (m *markup) svg(height float64, title, description string) {
	a, b := m.id("t"), m.id("d")
	m.open("svg", "viewBox", fmt.Sprintf("0 0 %s %s", number(chartWidth), number(height)), "role", "img", "aria-labelledby", a+" "+b)
	m.element("title", title, "id", a)
	m.element("desc", description, "id", b)
}

// label is a text of a chart. anchor is start, middle or end.
func (m *markup) label(x, y float64, anchor, text string) {
	m.element("text", text, "x", number(x), "y", number(y), "text-anchor", either(anchor == "start", "", anchor))
}

// line is a thin line of a chart.
func (m *markup) line(x1, y1, x2, y2 float64) {
	m.void("path", "class", "grid", "d", fmt.Sprintf("M%s %sL%s %s", number(x1), number(y1), number(x2), number(y2)))
}

// box is the path of a rectangle.
func box(x, y, w, h float64) string {
	return fmt.Sprintf("M%s %sh%sv%sh%sz", number(x), number(y), number(w), number(h), number(-w))
}

// key explains the colours of a chart: classes and their meanings in turn.
func (m *markup) key(pairs ...string) {
	m.open("p", "class", "key")
	for i := 0; i+1 < len(pairs); i += 2 {
		m.open("span")
		m.element("i", "", "class", pairs[i])
		m.text(pairs[i+1])
		m.end("span")
	}
	m.end("p")
}

// clock is the axis of the time of a run.
type clock struct{ all time.Duration }

func (c clock) x(at time.Duration) float64 {
	return plotLeft + (plotRight-plotLeft)*float64(at)/float64(c.all)
}

// step is the distance of two marks: about eight of them are on the axis.
func (c clock) step() time.Duration {
	for _, s := range []time.Duration{
		time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour,
	} {
		if c.all/s <= 9 {
			return s
		}
	}
	return (c.all / 8).Round(24*time.Hour) + 24*time.Hour
}

// mark is a moment of the axis, in the unit of its step.
func (c clock) mark(at time.Duration) string {
	switch step := c.step(); {
	case at == 0:
		return "0"
	case step < time.Second && c.all < time.Second:
		return fmt.Sprintf("%d ms", at.Milliseconds())
	case step < time.Minute && c.all < 3*time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", at.Seconds()), ".0") + " s"
	case step < time.Hour && c.all < 3*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", at.Minutes()), ".0") + " min"
	}
	return fmt.Sprintf("%d h", int(at.Hours()))
}

// timeline shows when each window was read, and the requests below it on the same axis.
func (m *markup) timeline(f *pipelines.FormReport, d *detail.Form, room room) {
	if len(d.Traffic.Moments) == 0 { // nothing was asked for
		return
	}
	axis := clock{max(f.EndedAt.Sub(f.StartedAt), d.Traffic.Step*time.Duration(len(d.Traffic.Moments)), time.Millisecond)}
	spans := merged(d.Spans, min(mostRows, room.bars))
	for _, s := range spans {
		axis.all = max(axis.all, s.Asked.Ended)
	}
	traffic := coarser(d.Traffic, axis, room)
	m.element("h3", "Time line")
	m.open("figure")
	row := rowHeight(len(spans))
	upper := 26 + row*float64(len(spans))
	m.svg(upper+trafficH+axisHeight, "Time line of form "+clip(f.Form, mostName), timelineText(d, axis))
	if len(spans) > 0 {
		m.label(plotLeft, 11, "start", "Windows by when they were asked for")
	}
	m.runAxis(axis, upper+trafficH)
	m.spans(spans, axis, row)
	m.traffic(traffic, axis, upper)
	m.end("svg")
	m.open("figcaption")
	m.timelineKey(spans, traffic)
	m.end("figcaption", "figure")
}

// coarser makes the moments of the traffic so long that the chart can show them.
func coarser(t detail.Traffic, axis clock, room room) detail.Traffic {
	for most := min(200, room.bars); len(t.Moments) > 0 && axis.all > time.Duration(most)*t.Step; {
		t = t.Coarser()
	}
	return t
}

// timelineKey explains the colours that the time line has.
func (m *markup) timelineKey(spans []detail.Span, t detail.Traffic) {
	has := map[string]bool{}
	for _, s := range spans {
		has[spanClass(s)] = true
	}
	for _, moment := range t.Moments {
		has["soft"] = has["soft"] || moment.Pages > 0
		has["other"] = has["other"] || moment.Others > 0
		has["bad"] = has["bad"] || moment.Failed > 0
	}
	var pairs []string
	for _, pair := range [][2]string{
		{"accent", "window"},
		{"warn", "window with retries"},
		{"again", "window read again"},
		{"soft", "page of results"},
		{"other", "count"},
		{"bad", "attempt without an answer of use"},
	} {
		if has[pair[0]] {
			pairs = append(pairs, pair[0], pair[1])
		}
	}
	m.key(pairs...)
}

// rowHeight is how high a window is on the time line.
func rowHeight(rows int) float64 {
	switch {
	case rows <= 14:
		return 18
	case rows <= 60:
		return 8
	}
	return 260 / float64(rows)
}

func timelineText(d *detail.Form, axis clock) string {
	var asked, empty, taken int
	for _, s := range d.Spans {
		empty, taken = empty+s.Empty, taken+s.Taken
		if s.Asked.Requests > 0 {
			asked += s.Windows - s.Empty
		}
	}
	return fmt.Sprintf("%s were asked for within %s; %d were known to be empty, %d taken over from an earlier run. Down: windows in order of their time. Right: the time of the run.",
		show.Plural(asked, "window"), took(axis.all), empty, taken)
}

// spans draws a bar for each span, from its first request to the end of its last.
func (m *markup) spans(spans []detail.Span, axis clock, row float64) {
	labelled := -100.0
	for i, s := range spans {
		y := 18 + row*float64(i)
		if y-labelled >= 15 {
			m.label(plotLeft-8, y+max(row/2+4, 8), "end", spanName(s))
			labelled = y
		}
		class := spanClass(s)
		if class == "" {
			if row >= 15 {
				m.label(plotLeft+6, y+row/2+4, "start", remark(s))
			}
			continue
		}
		x := axis.x(s.Asked.Began)
		m.open("path", "class", class, "d", box(x, y, max(axis.x(s.Asked.Ended)-x, 2), max(row-either(row > 6, 3, row/8), 0.9)))
		m.element("title", spanText(s))
		m.end("path")
	}
}

// spanClass is how the bar of a span looks, "" if it has none.
func spanClass(s detail.Span) string {
	switch {
	case s.Asked.Requests+s.Asked.Retries == 0:
		return ""
	case s.Again > 0:
		return "again"
	case s.Asked.Retries > 0:
		return "warn"
	}
	return "accent"
}

func spanName(s detail.Span) string {
	switch {
	case s.Kind != detail.Dated:
		return string(s.Kind)
	case s.From.IsZero():
		return "first result"
	}
	return s.From.Format(time.DateOnly)
}

func spanText(s detail.Span) string {
	name := string(s.Kind)
	if s.Kind == detail.Dated {
		name = either(s.From.IsZero(), "the first result", wall(s.From)) + " to " + either(s.To.IsZero(), "no end", wall(s.To))
	}
	text := fmt.Sprintf("%s: %s, %s, %s, took %s", name, show.Plural(s.Results, "result"), show.Plural(s.Asked.Requests, "request"), since(s.Asked.Began), took(s.Asked.Ended-s.Asked.Began))
	if s.Asked.Retries > 0 {
		text += ", retries " + show.Thousands(s.Asked.Retries)
	}
	return text
}

// runAxis draws the axis of the time of the run.
func (m *markup) runAxis(axis clock, bottom float64) {
	step := axis.step()
	for at := time.Duration(0); at <= axis.all; at += step {
		m.line(axis.x(at), 18, axis.x(at), bottom)
		m.label(axis.x(at), bottom+15, either(at == 0, "start", either(axis.x(at) > plotRight-20, "end", "middle")), axis.mark(at))
	}
	m.line(plotLeft, bottom, plotRight, bottom)
}

// traffic draws the attempts over the time of the run.
func (m *markup) traffic(t detail.Traffic, axis clock, top float64) {
	bottom := top + trafficH
	var most int64 = 1
	for _, moment := range t.Moments {
		most = max(most, moment.Pages+moment.Others+moment.Failed)
	}
	m.label(plotLeft, top+14, "start", "Requests in each "+took(max(t.Step, time.Millisecond)))
	plot := trafficH - 22
	m.label(plotLeft-8, bottom-plot+4, "end", show.Thousands(most))
	m.label(plotLeft-8, bottom, "end", "0")
	var pages, others, failed strings.Builder
	for i, moment := range t.Moments {
		x := axis.x(t.Step * time.Duration(i))
		w := max(axis.x(t.Step*time.Duration(i+1))-x-0.6, 1.2)
		y := bottom
		for _, part := range []struct {
			b *strings.Builder
			n int64
		}{{&pages, moment.Pages}, {&others, moment.Others}, {&failed, moment.Failed}} {
			if part.n > 0 {
				h := plot * float64(part.n) / float64(most)
				y -= h
				part.b.WriteString(box(x, y, w, h))
			}
		}
	}
	m.shape("soft", pages.String())
	m.shape("other", others.String())
	m.shape("bad", failed.String())
}

// shape draws a path.
func (m *markup) shape(class, d string) {
	if d != "" {
		m.void("path", "class", class, "d", d)
	}
}

// days shows how many results each day has.
func (m *markup) days(d *detail.Form, room room) {
	if len(d.Days) == 0 {
		return
	}
	list, unit := stretches(d.Days, room.bars)
	word := "day"
	switch {
	case unit == 7:
		word = "week"
	case unit > 7:
		word = fmt.Sprintf("%d weeks", unit/7)
	}
	var rows, rejected, most int64
	for _, s := range list {
		rows, rejected, most = rows+s.rows, rejected+s.rejected, max(most, s.rows+s.rejected)
	}
	m.element("h3", "Results per "+word)
	m.open("figure")
	m.svg(daysH+axisHeight, "Results per "+word, fmt.Sprintf("%s from %s to %s, %s rejected; a bar shows %s at most.",
		show.Plural(rows, "result"), wall(d.Days[0].Day), wall(d.Days[len(d.Days)-1].Day), show.Thousands(rejected), show.Thousands(most)))
	m.dayBars(list, most)
	m.end("svg")
	m.open("figcaption")
	if rejected > 0 {
		m.key("accent", "rows", "bad", "rejected")
	}
	if d.Dayless > 0 {
		m.element("p", show.Plural(d.Dayless, "result")+" are not shown, because no date of theirs lies in their window.", "class", "note")
	}
	m.end("figcaption", "figure")
	m.open("details")
	m.element("summary", "In numbers")
	m.open("ul", "class", "numbers")
	for _, s := range list {
		if s.rows+s.rejected > 0 {
			m.open("li")
			m.element("span", wall(s.from))
			m.element("b", show.Thousands(s.rows)+either(s.rejected > 0, " + "+show.Thousands(s.rejected)+" rejected", ""))
			m.end("li")
		}
	}
	m.end("ul", "details")
}

func (m *markup) dayBars(list []stretch, most int64) {
	bottom, top := daysH, 10.0
	ticks := niceStep(most)
	for n := int64(0); n <= most+ticks-1 && n <= 10*ticks; n += ticks {
		y := bottom - (bottom-top)*float64(n)/float64(upTo(most, ticks))
		m.line(plotLeft, y, plotRight, y)
		m.label(plotLeft-8, y+4, "end", show.Thousands(n))
	}
	w := (plotRight - plotLeft) / float64(len(list))
	labelled := -100.0
	scale := (bottom - top) / float64(upTo(most, ticks))
	for i, s := range list {
		x := plotLeft + w*float64(i)
		if day := s.from; x-labelled >= 84 && (len(list) <= 45 || day.Day() <= 7 && (i == 0 || list[i-1].from.Month() != day.Month())) {
			anchor := either(x > plotRight-60, "end", "start")
			m.label(either(anchor == "end", plotRight, x), bottom+15, anchor, day.Format(time.DateOnly))
			labelled = x
		}
		if s.rows+s.rejected == 0 {
			continue
		}
		gap := either(w < 4, 0, min(w*0.2, 4)) // bars that are a few pixels wide touch
		m.open("g")
		m.element("title", fmt.Sprintf("%s: %s, %s rejected", wall(s.from), show.Plural(s.rows, "result"), show.Thousands(s.rejected)))
		good, bad := max(scale*float64(s.rows), either(s.rows > 0, 0.8, 0)), max(scale*float64(s.rejected), either(s.rejected > 0, 1.5, 0))
		m.shape("accent", either(s.rows > 0, box(x, bottom-good, min(w-gap, 40), good), ""))
		m.shape("bad", either(s.rejected > 0, box(x, bottom-good-bad, min(w-gap, 40), bad), ""))
		m.end("g")
	}
}

// niceStep is the distance of two lines of an axis: 1, 2 or 5 times a power of ten, so that
// there are three to six.
func niceStep(most int64) int64 {
	power := int64(math.Pow10(max(0, len(fmt.Sprint(most))-2)))
	for _, n := range []int64{1, 2, 5, 10, 20, 50} {
		if most <= 5*n*power {
			return max(1, n*power)
		}
	}
	return 100 * power
}

// upTo is the end of an axis.
func upTo(most, step int64) int64 { return max(1, (most+step-1)/step) * step }
