package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas/plain"
)

// ProgressAuto is the mode of --progress that draws a bar on a terminal only.
const ProgressAuto = "auto"

const (
	// recordEvery is the time between two records of a run's progress.
	recordEvery = 30 * time.Second
	// mostMarks bounds the time over which the rate is taken to five minutes.
	mostMarks = 11
	// widest is how many columns the bar takes; of a narrower terminal it takes all.
	widest = 100
)

// Progress shows how far a run is, with all its forms: by a bar where a person watches, else by
// a record in the log every half minute. So an operator sees that the run is alive, how fast
// it is and how long it will take.
type Progress struct {
	bars bool
	out  io.Writer

	mu     sync.Mutex
	forms  map[string]pipelines.Progress // how far each form is that was heard of
	ended  map[string]bool               // forms that are done or failed
	all    int                           // forms of the run
	marks  []mark                        // of the last records, oldest first
	screen *mpb.Progress                 // nil while no bar is drawn
	bar    *mpb.Bar

	// What the bar reads while mu may be held.
	until atomic.Pointer[time.Time] // requests wait for their budget until then, nil for not
	head  atomic.Pointer[string]    // what the bar begins with
	aside atomic.Pointer[string]    // see Say
}

// mark is how many results had been read at a time.
type mark struct {
	at      time.Time
	results int64
}

// NewProgress returns the progress of a command by the mode of --progress. With
// JSON logs there is no bar, because every line on standard error is a record.
func (l *Log) NewProgress(mode string) (*Progress, error) {
	if mode != ProgressAuto && mode != "on" && mode != "off" {
		return nil, fmt.Errorf("--progress %q: give auto, on or off", mode)
	}
	on := mode == "on" || mode == ProgressAuto && IsTerminal(l.out)
	return &Progress{bars: on && !l.JSON(), out: l.out}, nil
}

// Shown tells whether a bar is drawn.
func (p *Progress) Shown() bool { return p.bars }

// LogLevel is the least level that a run logs unless --log-level says another:
// a bar and records of what goes well would get in each other's way.
func (p *Progress) LogLevel() slog.Level {
	if p.bars {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Start begins to show a run. Without a bar it logs at each tick, every half minute where ticks
// is nil. stop ends that, with the bar where it is.
func (p *Progress) Start(ctx context.Context, log *slog.Logger, began time.Time, ticks <-chan time.Time) (stop func()) {
	p.forms, p.ended, p.all, p.marks = map[string]pipelines.Progress{}, map[string]bool{}, 0, []mark{{at: began}}
	if p.bars {
		return p.finish
	}
	if ticks == nil {
		ticks = time.Tick(recordEvery)
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case now := <-ticks:
				p.record(ctx, log, now)
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		group.Wait()
	}
}

// Update notes how far a form is. It is called from several goroutines.
func (p *Progress) Update(u pipelines.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.Done || u.Failed {
		p.ended[u.Form] = true
	}
	if !u.Failed { // a form that failed gives no numbers
		p.all = max(p.all, u.Forms)
		p.forms[u.Form] = u
	}
	if p.bars && len(p.forms) > 0 {
		p.draw(u.Form)
	}
}

// Wait notes that requests wait for their budget. The rate says nothing of the time remaining
// meanwhile. It is called from several goroutines.
func (p *Progress) Wait(until time.Time) { p.until.Store(&until) }

// Say lets the bar end with a text.
func (p *Progress) Say(text string) { p.aside.Store(&text) }

// waits tells whether requests wait for their budget, and how long.
func (p *Progress) waits(now time.Time) (time.Duration, bool) {
	until := p.until.Load()
	if until == nil {
		return 0, false
	}
	return until.Sub(now), now.Before(*until)
}

// sum adds up what is known of the forms. remaining is how many results are still to be read, if
// that is known.
func (p *Progress) sum() (sum pipelines.Progress, remaining int64, known bool) {
	known = len(p.forms) >= p.all && len(p.forms) > 0
	for form, f := range p.forms {
		sum.Windows, sum.WindowsDone, sum.Rows, sum.Requests = sum.Windows+f.Windows, sum.WindowsDone+f.WindowsDone, sum.Rows+f.Rows, sum.Requests+f.Requests
		switch {
		case p.ended[form]:
		case f.Expected == extract.Unknown:
			known = false
		default:
			remaining += max(0, f.Expected-f.Rows)
		}
	}
	return sum, remaining, known
}

// draw draws the bar anew after news of a form.
func (p *Progress) draw(form string) {
	if p.screen == nil {
		p.screen = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(widest), mpb.WithAutoRefresh())
		read := func(text *atomic.Pointer[string]) string {
			if s := text.Load(); s != nil {
				return *s + " "
			}
			return ""
		}
		says := func(decor.Statistics) string {
			if d, waits := p.waits(time.Now()); waits {
				return fmt.Sprintf(" waits %s for the budget", d.Round(time.Second))
			}
			return " " + read(&p.aside)
		}
		// A bar that begins without a total completes only when it is told to.
		p.bar = p.screen.AddBar(0,
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return read(&p.head) }), decor.CountersNoUnit("%d / %d results")),
			mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO), decor.Any(says)))
	}
	head := plain.Line(form)
	if p.all > 1 {
		head = fmt.Sprintf("%d of %s", len(p.ended), Plural(p.all, "form"))
	}
	p.head.Store(&head)
	sum, remaining, known := p.sum()
	if known || remaining > 0 {
		p.bar.SetTotal(sum.Rows+remaining, false)
	}
	p.bar.SetCurrent(sum.Rows)
}

// finish leaves the bar as it is, complete or not, and waits until it is drawn.
func (p *Progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen != nil {
		p.bar.Abort(false)
		p.screen.Wait()
		p.screen = nil
	}
}

// record logs how far the run is.
func (p *Progress) record(ctx context.Context, log *slog.Logger, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum, remaining, known := p.sum()
	rate := p.rate(now, sum.Rows)
	attrs := []slog.Attr{
		slog.Int("forms_done", len(p.ended)), slog.Int("forms", p.all), slog.Int64("windows_done", sum.WindowsDone), slog.Int64("windows", sum.Windows),
		slog.Int64("results", sum.Rows), slog.Int64("requests", sum.Requests), slog.Float64("rate", math.Round(rate*10)/10),
	}
	if _, waits := p.waits(now); known && rate > 0 && !waits {
		attrs = append(attrs, slog.Duration("time_left", time.Duration(float64(remaining)/rate*float64(time.Second)).Round(time.Second)))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "running", attrs...)
}

// rate is how many results were read in a second, over the last records.
func (p *Progress) rate(now time.Time, results int64) float64 {
	first := p.marks[0]
	if p.marks = append(p.marks, mark{now, results}); len(p.marks) > mostMarks {
		p.marks = p.marks[1:]
	}
	took := now.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return max(0, float64(results-first.results)/took)
}
