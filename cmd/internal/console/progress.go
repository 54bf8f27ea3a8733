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
	// mostMarks bounds the number of marks, and so the time for the rate to five minutes.
	mostMarks = 11
	// widest is the most columns of the terminal that the bar takes.
	widest = 100
)

// Progress shows the progress of a run with all its forms: by a bar where a person watches,
// otherwise by a record in the log every half minute. So an operator sees that the run is
// alive, how fast it is and how long it will take.
type Progress struct {
	bars bool
	out  io.Writer

	mu     sync.Mutex
	forms  map[string]pipelines.Progress // the last news of each form that has sent some
	ended  map[string]bool               // forms that are done or failed
	all    int                           // forms of the run
	marks  []mark                        // results at the last records, oldest first
	screen *mpb.Progress                 // nil while no bar is drawn
	bar    *mpb.Bar

	// Values that the bar reads, also while mu is held.
	until atomic.Pointer[time.Time] // requests wait for their budget until then; nil if they do not
	head  atomic.Pointer[string]    // the text at the beginning of the bar
	files atomic.Int64              // uploaded files asked for
	aside atomic.Pointer[string]    // see Say
}

// mark is how many results had been read at a certain time.
type mark struct {
	at      time.Time
	results int64
}

// NewProgress returns the progress display of a command for the value of --progress. With JSON logs
// there is no bar, because every line on standard error must be a record.
func (l *Log) NewProgress(mode string) (*Progress, error) {
	if mode != ProgressAuto && mode != "on" && mode != "off" {
		return nil, fmt.Errorf("--progress %q: give auto, on or off", mode)
	}
	on := mode == "on" || mode == ProgressAuto && IsTerminal(l.out)
	return &Progress{bars: on && !l.JSON(), out: l.out}, nil
}

// Shown tells whether a bar is drawn.
func (p *Progress) Shown() bool { return p.bars }

// LogLevel returns the least level that a run logs without --log-level. With a bar it is higher,
// because bar and records of what goes well would get in each other's way.
func (p *Progress) LogLevel() slog.Level {
	if p.bars {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Start begins to show a run. Without a bar it logs a record at each tick, or every half minute if
// ticks is nil. stop ends the records, or leaves the bar where it stands.
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

// Update records the progress of a form. It is safe for concurrent use.
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

// Wait records that requests wait for their budget. Until then the time remaining is not
// estimated from the rate. Wait is safe for concurrent use.
func (p *Progress) Wait(until time.Time) { p.until.Store(&until) }

// Say puts a text at the end of the bar.
func (p *Progress) Say(text string) { p.aside.Store(&text) }

// waits tells whether requests wait for their budget, and how much longer.
func (p *Progress) waits(now time.Time) (time.Duration, bool) {
	until := p.until.Load()
	if until == nil {
		return 0, false
	}
	return until.Sub(now), now.Before(*until)
}

// sum adds up the progress of the forms. remaining is how many results are still to be read; known
// is false if that is not known of every form.
func (p *Progress) sum() (sum pipelines.Progress, remaining int64, known bool) {
	known = len(p.forms) >= p.all && len(p.forms) > 0
	for form, f := range p.forms {
		sum.Windows, sum.WindowsDone, sum.Rows, sum.Requests = sum.Windows+f.Windows, sum.WindowsDone+f.WindowsDone, sum.Rows+f.Rows, sum.Requests+f.Requests
		sum.Files += f.Files
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
		fetched := func(decor.Statistics) string {
			if n := p.files.Load(); n > 0 {
				return ", " + Plural(n, "file")
			}
			return ""
		}
		// A bar that begins without a total does not complete by itself.
		p.bar = p.screen.AddBar(0,
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return read(&p.head) }), decor.CountersNoUnit("%d / %d results"), decor.Any(fetched)),
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
	p.files.Store(sum.Files)
	p.bar.SetCurrent(sum.Rows)
}

// finish leaves the bar as it stands, complete or not, and waits until it is drawn.
func (p *Progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen != nil {
		p.bar.Abort(false)
		p.screen.Wait()
		p.screen = nil
	}
}

// record logs the progress of the run.
func (p *Progress) record(ctx context.Context, log *slog.Logger, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum, remaining, known := p.sum()
	rate := p.rate(now, sum.Rows)
	attrs := []slog.Attr{
		slog.Int("forms_done", len(p.ended)), slog.Int("forms", p.all), slog.Int64("windows_done", sum.WindowsDone), slog.Int64("windows", sum.Windows),
		slog.Int64("results", sum.Rows), slog.Int64("requests", sum.Requests), slog.Float64("rate", math.Round(rate*10)/10),
	}
	if sum.Files > 0 {
		attrs = append(attrs, slog.Int64("files", sum.Files))
	}
	if _, waits := p.waits(now); known && rate > 0 && !waits {
		attrs = append(attrs, slog.Duration("time_left", time.Duration(float64(remaining)/rate*float64(time.Second)).Round(time.Second)))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "running", attrs...)
}

// rate returns how many results were read per second since the oldest mark.
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
