package console

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas/plain"
)

// mostBars is how many forms have a bar at once. A further form gets one when
// another form ends.
const mostBars = 6

// Progress draws a bar for each form that is being read. The bar of a form that
// ended makes room for another form's, and the last bar stays.
type Progress struct {
	on  bool
	out io.Writer

	mu     sync.Mutex
	screen *mpb.Progress       // nil while nothing is shown
	bars   map[string]*mpb.Bar // by form
	ended  string              // a form that ended and whose bar may be replaced, "" for none

	until atomic.Pointer[time.Time] // when requests go on that wait for their budget, nil for none
	aside atomic.Pointer[string]    // see Say
}

// ProgressAuto is the mode of --progress that draws bars on a terminal only.
const ProgressAuto = "auto"

// NewProgress returns the bars of a command by the mode of --progress. With
// JSON logs there are none, because every line on standard error is a record.
func (l *Log) NewProgress(mode string) (*Progress, error) {
	if mode != ProgressAuto && mode != "on" && mode != "off" {
		return nil, fmt.Errorf("--progress %q: give auto, on or off", mode)
	}
	on := mode == "on" || mode == ProgressAuto && IsTerminal(l.out)
	return &Progress{on: on && !l.JSON(), out: l.out}, nil
}

// Shown tells whether bars are drawn.
func (p *Progress) Shown() bool { return p.on }

// LogLevel is the least level that a run logs unless --log-level says another:
// bars and records of what goes well would get in each other's way.
func (p *Progress) LogLevel() slog.Level {
	if p.on {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Update shows how far a form's run is. It is called from several goroutines.
func (p *Progress) Update(u pipelines.Progress) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.Failed {
		p.end(u.Form)
		return
	}
	bar := p.bar(u.Form)
	if bar == nil {
		return
	}
	if u.Expected != extract.Unknown {
		bar.SetTotal(max(u.Expected, u.Rows), false)
	}
	bar.SetCurrent(u.Rows)
	if u.Done {
		bar.SetTotal(-1, false) // complete, whatever was expected
		p.end(u.Form)
	}
}

// Wait lets the bars say that requests wait for their budget.
func (p *Progress) Wait(until time.Time) { p.until.Store(&until) }

// Say lets the bars end with a text.
func (p *Progress) Say(text string) { p.aside.Store(&text) }

// says is what a bar says of a wait, or else of anything, "" for nothing.
func (p *Progress) says(decor.Statistics) string {
	if until := p.until.Load(); until != nil {
		if left := time.Until(*until).Round(time.Second); left > 0 {
			return fmt.Sprintf(" waits %s for the budget", left)
		}
	}
	if text := p.aside.Load(); text != nil {
		return " " + *text
	}
	return ""
}

// bar is the bar of a form, a new one where it has none, and nil where
// mostBars are drawn already.
func (p *Progress) bar(form string) *mpb.Bar {
	if p.ended != "" && p.ended != form { // the same form may be run again
		p.drop(p.ended)
	}
	p.ended = ""
	if bar := p.bars[form]; bar != nil || len(p.bars) == mostBars {
		return bar
	}
	if p.screen == nil {
		p.screen = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(Width(p.out)), mpb.WithAutoRefresh())
		p.bars = map[string]*mpb.Bar{}
	}
	// A bar that begins without a total completes only when it is told to.
	p.bars[form] = p.screen.AddBar(0,
		mpb.PrependDecorators(decor.Name(plain.Line(form)+" "), decor.CountersNoUnit("%d / %d results")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO), decor.Any(p.says)))
	return p.bars[form]
}

// end removes the bar of a form. The only bar stays as it is until another form
// needs one.
func (p *Progress) end(form string) {
	switch {
	case p.bars[form] == nil:
	case len(p.bars) == 1:
		p.ended = form
	default:
		p.drop(form)
	}
}

func (p *Progress) drop(form string) {
	p.bars[form].Abort(true)
	delete(p.bars, form)
}

// Finish stops the bars where they are, complete or not, and waits until they
// are drawn.
func (p *Progress) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen == nil {
		return
	}
	for _, bar := range p.bars {
		bar.Abort(false)
	}
	p.screen.Wait()
	p.screen, p.bars, p.ended = nil, nil, ""
}
