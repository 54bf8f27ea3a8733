package console

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
)

// signalled is a log whose lines can be waited for.
type signalled struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan bool
}

func (s *signalled) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.wrote <- true }()
	return s.text.Write(b)
}

// TestHeartbeat beats by a clock of its own: it tells what was read of all forms, how
// fast, and how long the rest takes once all forms are known.
func TestHeartbeat(t *testing.T) {
	out := &signalled{wrote: make(chan bool, 1)}
	tick, began := make(chan time.Time), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h, stop := StartHeartbeat(t.Context(), slog.New(jsonHandler(out, slog.LevelInfo)), began, tick)
	beat := func(after time.Duration, want map[string]float64) {
		t.Helper()
		out.text.Reset()
		tick <- began.Add(after)
		<-out.wrote
		var line map[string]any
		if err := json.Unmarshal(out.text.Bytes(), &line); err != nil || line["msg"] != "running" {
			t.Fatalf("%v: %s", err, &out.text)
		}
		for key, value := range want {
			if got, there := line[key]; value < 0 && there || value >= 0 && got != value {
				t.Errorf("after %s %s is %v, want %v", after, key, got, value)
			}
		}
	}
	const none = -1
	beat(30*time.Second, map[string]float64{"results": 0, "windows": 0, "rate": 0, "time_left": none})
	h.Update(pipelines.Progress{Form: "a", Forms: 2, Rows: 600, Expected: 1000, Requests: 7, Windows: 4, WindowsDone: 2})
	beat(time.Minute, map[string]float64{
		"forms": 2, "forms_done": 0, "results": 600, "requests": 7, "windows": 4, "windows_done": 2, "rate": 10, "time_left": none,
	})
	h.Update(pipelines.Progress{Form: "b", Forms: 2, Rows: 600, Expected: extract.Unknown, Requests: 3, Windows: 1})
	beat(2*time.Minute, map[string]float64{"results": 1200, "requests": 10, "windows": 5, "rate": 10, "time_left": none})
	h.Update(pipelines.Progress{Form: "b", Failed: true})
	beat(2*time.Minute, map[string]float64{"forms_done": 1, "results": 1200, "time_left": 40})
	h.Wait(began.Add(3 * time.Minute)) // requests wait for their budget: the rate tells nothing
	beat(150*time.Second, map[string]float64{"results": 1200, "time_left": none})
	h.Update(pipelines.Progress{Form: "a", Forms: 2, Rows: 1000, Expected: 1000, Requests: 9, Windows: 4, WindowsDone: 4, Done: true})
	beat(4*time.Minute, map[string]float64{"forms_done": 2, "windows_done": 4, "results": 1600, "time_left": 0})
	for i := range mostMarks {
		beat(time.Hour+time.Duration(i)*time.Minute, nil)
	}
	beat(2*time.Hour, map[string]float64{"rate": 0, "time_left": none}) // the rate is that of the last beats
	stop()
}
