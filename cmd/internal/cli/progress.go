package cli

import (
	"fmt"
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
)

const (
	progressAuto = "auto"
	progressOn   = "on"
	progressOff  = "off"

	progressUsage = "progress bar: auto (on a terminal), on or off; never with --log-format json"
)

// mostBars is how many forms are shown at once; further ones are shown as
// those end.
const mostBars = 6

// progress is a bar for each form that is under way. A form that ended makes
// room for the others; the last one's bar stays.
type progress struct {
	on  bool
	out io.Writer

	mu     sync.Mutex
	screen *mpb.Progress       // nil while nothing is shown
	bars   map[string]*mpb.Bar // by form
	ended  string              // a form that has a bar still and needs none
}

// newProgress reads --progress. JSON logs have no bar: every line on standard
// error is a record.
func (a *app) newProgress(mode string) (*progress, error) {
	p := &progress{out: a.stderr}
	switch mode {
	case progressOn:
		p.on = true
	case progressAuto:
		p.on = isTerminal(a.stderr)
	case progressOff:
	default:
		return nil, fmt.Errorf("--progress %q: give auto, on or off", mode)
	}
	p.on = p.on && a.logFormat != formatJSON
	return p, nil
}

// update shows how far a form's run is. It is called from several goroutines.
func (p *progress) update(u pipelines.Progress) {
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
		bar.SetTotal(-1, false) // whole, whatever was expected
		p.end(u.Form)
	}
}

// bar is the form's, a new one where it has none; nil where there is no room.
func (p *progress) bar(form string) *mpb.Bar {
	switch {
	case p.ended == form:
		p.ended = "" // what it went on with was done, and more is to do
	case p.ended != "":
		p.drop(p.ended)
		p.ended = ""
	}
	if bar := p.bars[form]; bar != nil || len(p.bars) == mostBars {
		return bar
	}
	if p.screen == nil {
		p.screen = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(60), mpb.WithAutoRefresh())
		p.bars = map[string]*mpb.Bar{}
	}
	// A bar that begins without a total completes only when it is told to.
	p.bars[form] = p.screen.AddBar(0,
		mpb.PrependDecorators(decor.Name(cell(form)+" "), decor.CountersNoUnit("%d / %d results")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
	return p.bars[form]
}

// end lets the bar of a form go, unless it is the only one: then it stays as
// it is until another one comes.
func (p *progress) end(form string) {
	switch {
	case p.bars[form] == nil:
	case len(p.bars) == 1:
		p.ended = form
	default:
		p.drop(form)
	}
}

func (p *progress) drop(form string) {
	p.bars[form].Abort(true)
	delete(p.bars, form)
}

// finish leaves the bars as they are, whole or not, and waits until they are
// drawn.
func (p *progress) finish() {
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
