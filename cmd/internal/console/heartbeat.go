package console

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
)

// heartbeatEvery is the time between two heartbeats.
const heartbeatEvery = 30 * time.Second

// Heartbeat logs how far a run is, at each tick. So an operator sees that the run is
// alive, how fast it is and how long it will take.
type Heartbeat struct {
	log *slog.Logger

	mu    sync.Mutex
	forms map[string]pipelines.Progress // how far each form is that was heard of
	ended map[string]bool               // forms that are done or failed
	all   int                           // forms of the run
	marks []mark                        // of the last beats, oldest first
	until time.Time                     // requests wait for their budget until then
}

// mark is how many results had been read at a time.
type mark struct {
	at      time.Time
	results int64
}

// mostMarks bounds the time over which the rate is taken to five minutes.
const mostMarks = 11

// StartHeartbeat begins to log at each tick, every half minute where ticks is nil. stop ends that and waits for its end.
func StartHeartbeat(ctx context.Context, log *slog.Logger, began time.Time, ticks <-chan time.Time) (h *Heartbeat, stop func()) {
	h = &Heartbeat{log: log, forms: map[string]pipelines.Progress{}, ended: map[string]bool{}, marks: []mark{{at: began}}}
	if ticks == nil {
		ticks = time.Tick(heartbeatEvery)
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case now := <-ticks:
				h.beat(ctx, now)
			case <-done:
				return
			}
		}
	})
	return h, func() {
		close(done)
		group.Wait()
	}
}

// Update notes how far a form is. It is called from several goroutines.
func (h *Heartbeat) Update(u pipelines.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u.Done || u.Failed {
		h.ended[u.Form] = true
	}
	if u.Failed {
		return // it gives no numbers
	}
	h.all = max(h.all, u.Forms)
	h.forms[u.Form] = u
}

// Wait notes that requests wait for their budget. The rate says nothing of the time left
// meanwhile. It is called from several goroutines.
func (h *Heartbeat) Wait(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
}

// beat writes one line.
func (h *Heartbeat) beat(ctx context.Context, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var windows, done, results, requests, left int64
	known := len(h.forms) >= h.all && h.all > 0 // how much is left
	for form, p := range h.forms {
		windows, done, results, requests = windows+p.Windows, done+p.WindowsDone, results+p.Rows, requests+p.Requests
		switch {
		case h.ended[form]:
		case p.Expected == extract.Unknown:
			known = false
		default:
			left += max(0, p.Expected-p.Rows)
		}
	}
	rate := h.rate(now, results)
	attrs := []slog.Attr{
		slog.Int("forms_done", len(h.ended)), slog.Int("forms", h.all), slog.Int64("windows_done", done), slog.Int64("windows", windows),
		slog.Int64("results", results), slog.Int64("requests", requests), slog.Float64("rate", math.Round(rate*10)/10),
	}
	if known && rate > 0 && !now.Before(h.until) {
		attrs = append(attrs, slog.Duration("time_left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second)))
	}
	h.log.LogAttrs(ctx, slog.LevelInfo, "running", attrs...)
}

// rate is how many results were read in a second, over the last beats.
func (h *Heartbeat) rate(now time.Time, results int64) float64 {
	first := h.marks[0]
	if h.marks = append(h.marks, mark{now, results}); len(h.marks) > mostMarks {
		h.marks = h.marks[1:]
	}
	took := now.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return max(0, float64(results-first.results)/took)
}
