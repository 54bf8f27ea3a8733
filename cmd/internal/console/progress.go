package console

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

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
	// drawEvery is the time after which the bar is drawn anew.
	drawEvery = 150 * time.Millisecond
	// barWidth is how many columns of the terminal the bar itself takes at most.
	barWidth = 30
)

// Progress shows the progress of a run with all its forms: by a bar where a person watches,
// otherwise by a record in the log every half minute. So an operator sees that the run is
// alive, how fast it is and how long it will take.
type Progress struct {
	bars bool
	out  *screen

	mu    sync.Mutex
	forms map[string]pipelines.Progress // the last news of each form that has sent some
	ended map[string]bool               // forms that are done or failed
	all   int                           // forms of the run
	last  string                        // the form with the latest news
	marks []mark                        // results at the last records, oldest first
	until time.Time                     // requests wait for their budget until then
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
	on := mode == "on" || mode == ProgressAuto && IsTerminal(l.out.Writer)
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

// Start begins to show a run: by a bar, or by a record in the log at each tick, every half minute if
// ticks is nil. stop ends the records, or leaves the bar where it stands.
func (p *Progress) Start(ctx context.Context, log *slog.Logger, began time.Time, ticks <-chan time.Time) (stop func()) {
	p.forms, p.ended, p.all, p.marks = map[string]pipelines.Progress{}, map[string]bool{}, 0, []mark{{at: began}}
	tell, every := func(now time.Time) { p.record(ctx, log, now) }, recordEvery
	if p.bars {
		tell, every, ticks = func(now time.Time) { p.show(began, now) }, drawEvery, nil
	}
	if ticks == nil {
		ticks = time.Tick(every)
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case now := <-ticks:
				tell(now)
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		group.Wait()
		if p.bars {
			p.out.leave(p.line(began, time.Now()))
		}
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
	p.last = u.Form
}

// Wait records that requests wait for their budget. Until then the time remaining is not
// estimated from the rate. Wait is safe for concurrent use.
func (p *Progress) Wait(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = until
}

// sum adds up the progress of the forms. remaining is how many results are still to be read; known
// is false if that is not known of every form. Failed is set if one of them failed or was stopped.
func (p *Progress) sum() (sum pipelines.Progress, remaining int64, known bool) {
	known = len(p.forms) >= p.all && len(p.forms) > 0
	for form, f := range p.forms {
		sum.Windows, sum.WindowsDone, sum.Rows, sum.Requests = sum.Windows+f.Windows, sum.WindowsDone+f.WindowsDone, sum.Rows+f.Rows, sum.Requests+f.Requests
		sum.Files, sum.FilesPlanned, sum.PerMinute = sum.Files+f.Files, sum.FilesPlanned+f.FilesPlanned, max(sum.PerMinute, f.PerMinute)
		sum.Expected, sum.Failed = sum.Expected+f.Rows, sum.Failed || p.ended[form] && !f.Done
		if !f.Done {
			sum.Expected += max(0, f.Expected-f.Rows)
		}
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

// show draws the bar.
func (p *Progress) show(began, now time.Time) {
	line := p.line(began, now)
	if line == "" && now.Sub(began) > time.Second {
		line = "planning …"
	}
	p.out.update(func() { p.out.bar = line })
}

// line returns the bar, "" before there is news of a form.
func (p *Progress) line(began, now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.forms) == 0 {
		return ""
	}
	head, share := p.last, -1.0
	if p.all > 1 {
		head = fmt.Sprintf("%d of %s", len(p.ended), plain.Plural(p.all, "form"))
	}
	sum, remaining, _ := p.sum()
	parts := []string{fmt.Sprintf("%s %s / %s results", head, plain.Thousands(sum.Rows), plain.Thousands(sum.Expected))}
	if sum.FilesPlanned > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", plain.Thousands(sum.Files), plain.Plural(sum.FilesPlanned, "file")))
	}
	if sum.Expected > sum.Rows || len(p.ended) >= p.all && !sum.Failed && sum.Expected > 0 { // before the end, more may come: results without a date
		share = float64(sum.Rows) / float64(sum.Expected)
		parts = append(parts, fmt.Sprintf("%d %%", sum.Rows*100/sum.Expected))
	}
	switch {
	case now.Before(p.until):
		parts = append(parts, fmt.Sprintf("waiting %s for the request budget", p.until.Sub(now).Round(time.Second)))
	case sum.PerMinute > 0 && (!p.until.IsZero() || sum.Requests*sum.Expected > sum.PerMinute*sum.Rows): // how long the run waits for its budget is not known
	case sum.Windows > 0 && sum.WindowsDone >= sum.Windows: // what is left, such as results without a date, may take a request each
	case remaining > 0 && sum.Rows > 0:
		left := float64(now.Sub(began)) * float64(remaining) / float64(sum.Rows)
		parts = append(parts, time.Duration(left).Round(time.Second).String()+" left")
	}
	text := strings.Join(parts, ", ")
	width := min(barWidth, Width(p.out.Writer)-utf8.RuneCountInString(text)-6) // a space, two brackets, and what refresh leaves
	if share < 0 || width < 1 {
		return text
	}
	done := int(share * float64(width))
	return text + " [" + strings.Repeat("=", done) + strings.Repeat("-", width-done) + "]"
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
	if sum.FilesPlanned > 0 {
		attrs = append(attrs, slog.Int64("files", sum.Files), slog.Int64("files_planned", sum.FilesPlanned))
	}
	if known && rate > 0 && !now.Before(p.until) {
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
