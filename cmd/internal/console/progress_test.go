package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
)

// terminal stands for standard error; the bar writes to it from a goroutine.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps what is drawn.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *terminal) drawn() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// TestProgressEnds: the bar ends when a run does, whole or in the middle. A
// bar that waits for what never comes would hang a failed run.
func TestProgressEnds(t *testing.T) {
	for name, updates := range map[string][]pipelines.Progress{
		"nothing":         {},
		"whole":           {{Form: "f", Rows: 5, Expected: 5}, {Form: "f", Rows: 5, Expected: 5, Done: true}},
		"in the middle":   {{Form: "f", Rows: 3, Expected: 100}},
		"unknown total":   {{Form: "f", Rows: 3, Expected: extract.Unknown}},
		"more than hoped": {{Form: "f", Rows: 30, Expected: 10}},
		"two forms":       {{Form: "f", Rows: 3, Expected: 9}, {Form: "g", Rows: 1, Expected: 1}},
		"side by side":    {{Form: "f", Rows: 3, Expected: 9}, {Form: "g", Rows: 1, Expected: 2}, {Form: "f", Rows: 9, Expected: 9, Done: true}, {Form: "g", Rows: 2, Expected: 2, Done: true}},
		"failed":          {{Form: "f", Rows: 3, Expected: 9}, {Form: "f", Failed: true}, {Form: "g", Failed: true}},
		"run again":       {{Form: "f", Rows: 3, Expected: 3, Done: true}, {Form: "f", Rows: 1, Expected: 2}},
		"none":            {{Form: "f", Rows: 0, Expected: 0, Done: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var out terminal
			p, err := NewLog(&out, nil).NewProgress("on")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for range 2 { // as a replay that runs a form twice
					stop := p.Start(t.Context(), slog.New(slog.DiscardHandler), time.Now(), nil)
					for _, u := range updates {
						p.Update(u)
					}
					stop()
				}
			}()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("the bar never ended")
			}
			if len(updates) > 0 && !strings.Contains(out.drawn(), "results") {
				t.Errorf("drawn %q", out.drawn())
			}
		})
	}
}

func TestProgressModes(t *testing.T) {
	if p, err := NewLog(io.Discard, nil).NewProgress(ProgressAuto); err != nil || p.Shown() {
		t.Errorf("auto without a terminal: on %v, %v", p.bars, err)
	}
	if p, err := NewLog(io.Discard, []string{"--log-format=json"}).NewProgress("on"); err != nil || p.Shown() {
		t.Errorf("with JSON logs: on %v, %v", p.bars, err)
	}
	if _, err := NewLog(io.Discard, nil).NewProgress("sometimes"); err == nil {
		t.Error("an unknown mode is taken")
	}
}

// TestProgressSays: a bar of several forms counts them, one that stands still says what it waits
// for, and until when, and one that was stopped still says how much was expected.
func TestProgressSays(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Hour: "waiting 1h0m0s for", -time.Second: "2 of 2 forms"} {
		var out terminal
		p, err := NewLog(&out, nil).NewProgress("on")
		if err != nil {
			t.Fatal(err)
		}
		stop := p.Start(t.Context(), slog.New(slog.DiscardHandler), time.Now(), nil)
		p.show(time.Now().Add(-time.Minute), time.Now())
		p.Wait(time.Now().Add(after))
		p.Update(pipelines.Progress{Form: "f", Forms: 2, Rows: 5, Expected: 5})
		p.Update(pipelines.Progress{Form: "g", Forms: 2, Rows: 3, Expected: 3})
		if line := p.line(time.Now(), time.Now()); strings.Contains(line, "%") { // results without a date may come
			t.Errorf("before the end: %q", line)
		}
		p.Update(pipelines.Progress{Form: "f", Forms: 2, Rows: 1, Expected: 5})
		for most, left := range map[int64]bool{0: true, 1: false} {
			p.Update(pipelines.Progress{Form: "f", Forms: 2, Rows: 1, Expected: 5, Requests: 1, PerMinute: most})
			if line := p.line(time.Now(), time.Now()); strings.Contains(line, " left") != (left && after < 0) {
				t.Errorf("with %d requests a minute: %q", most, line)
			}
		}
		p.Update(pipelines.Progress{Form: "f", Forms: 2, Rows: 1, Expected: 5, Windows: 1, WindowsDone: 1}) // the rest has no date
		if line := p.line(time.Now(), time.Now()); strings.Contains(line, " left") {
			t.Errorf("after the last window: %q", line)
		}
		p.Update(pipelines.Progress{Form: "g", Forms: 2, Rows: 3, Expected: 3, Files: 7, FilesPlanned: 9, Done: true})
		p.Update(pipelines.Progress{Form: "f", Failed: true})
		stop()
		text := out.drawn()
		if !strings.Contains(text, want) || !strings.Contains(text, "planning") || !strings.Contains(text, "50 %") || !strings.Contains(text, "4 / 8 results, 7 of 9 files") || strings.Count(text, "[") != strings.Count(text, "]") {
			t.Errorf("drawn %q", text)
		}
	}
}

// TestScreen: the status line gives way to lines, and to the end of a run or a command.
func TestScreen(t *testing.T) {
	var out terminal
	s := &screen{Writer: &out}
	s.update(func() { s.bar = "bar" })
	fmt.Fprintln(s, "a warning")
	s.update(func() { s.waits = "h does not answer" })
	(&Log{out: s}).Quiet()
	fmt.Fprintln(s, "a question")
	s.leave("bar 2")
	s.update(func() { s.bar = "next" })
	s.close()
	s.update(func() { s.bar = "late" })
	fmt.Fprintln(s, "formetl: stopped")
	var lines []string
	for line := range strings.Lines(out.drawn()) {
		lines = append(lines, line[strings.LastIndex(line, "\r")+1:])
	}
	if want := []string{"a warning\n", "a question\n", "bar 2\n", "formetl: stopped\n"}; !slices.Equal(lines, want) {
		t.Errorf("%q stay, want %q", lines, want)
	}
}

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

// TestProgressInTheLog ticks by a clock of its own: the log tells what was read of all forms, how
// fast, and how long the rest takes once all forms are known.
func TestProgressInTheLog(t *testing.T) {
	out := &signalled{wrote: make(chan bool, 1)}
	tick, began := make(chan time.Time), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := &Progress{}
	stop := h.Start(t.Context(), slog.New(jsonHandler(out, slog.LevelInfo)), began, tick)
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
