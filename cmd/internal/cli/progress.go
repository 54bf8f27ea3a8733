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

// progress is the bar of one form at a time.
type progress struct {
	on  bool
	out io.Writer

	mu   sync.Mutex
	bars *mpb.Progress
	bar  *mpb.Bar
	form string
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
	if p.form != u.Form {
		p.end()
		p.begin(u)
	}
	if u.Expected != extract.Unknown {
		p.bar.SetTotal(max(u.Expected, u.Rows), false)
	}
	p.bar.SetCurrent(u.Rows)
	if u.Done {
		p.bar.SetTotal(-1, true) // whole, whatever was expected
		p.end()
	}
}

func (p *progress) begin(u pipelines.Progress) {
	p.form = u.Form
	p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(60), mpb.WithAutoRefresh())
	// A bar that begins without a total completes only when it is told to.
	p.bar = p.bars.AddBar(0,
		mpb.PrependDecorators(decor.Name(u.Form+" "), decor.CountersNoUnit("%d / %d results")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
}

// end leaves the bar as it is, whole or not, and waits until it is drawn.
func (p *progress) end() {
	if p.bar == nil {
		return
	}
	p.bar.Abort(false) // nothing for a bar that is whole
	p.bars.Wait()
	p.bar, p.bars = nil, nil
}

// finish ends the bar and waits until it is drawn.
func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.form = ""
}
