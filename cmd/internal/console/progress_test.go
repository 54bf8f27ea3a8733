package console

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vbauerster/mpb/v8/decor"

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
		"more than shown": manyForms(3 * mostBars),
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
				for _, u := range updates {
					p.Update(u)
				}
				p.Finish()
				p.Finish() // harmless
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

// manyForms begins so many forms before the first of them is done.
func manyForms(n int) (updates []pipelines.Progress) {
	for _, done := range []bool{false, true} {
		for i := range n {
			updates = append(updates, pipelines.Progress{Form: fmt.Sprintf("f%02d", i), Rows: 5, Expected: 9, Done: done})
		}
	}
	return updates
}

// TestProgressOfSeveralForms: a few bars at once, one of them for each form
// that is under way; those that end make room.
func TestProgressOfSeveralForms(t *testing.T) {
	var out terminal
	p, err := NewLog(&out, nil).NewProgress("on")
	if err != nil {
		t.Fatal(err)
	}
	shown := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(p.bars)); !slices.Equal(got, want) {
			t.Errorf("bars of %q, want %q", got, want)
		}
	}
	first := manyForms(mostBars + 2)[:mostBars+2]
	for _, u := range first {
		p.Update(u)
	}
	shown("f00", "f01", "f02", "f03", "f04", "f05")
	p.Update(pipelines.Progress{Form: "f01", Rows: 9, Expected: 9, Done: true})
	p.Update(pipelines.Progress{Form: "f03", Failed: true})
	p.Update(pipelines.Progress{Form: "f06", Rows: 6, Expected: 9})
	shown("f00", "f02", "f04", "f05", "f06")
	for _, form := range []string{"f00", "f02", "f04", "f05", "f06"} {
		p.Update(pipelines.Progress{Form: form, Rows: 9, Expected: 9, Done: true})
	}
	shown("f06") // the last one stays
	p.Update(pipelines.Progress{Form: "f07", Rows: 1, Expected: 9})
	shown("f07")
	p.Finish()
	if !strings.Contains(out.drawn(), "f07") {
		t.Errorf("drawn %q", out.drawn())
	}
}

func TestProgressModes(t *testing.T) {
	if p, err := NewLog(io.Discard, nil).NewProgress(ProgressAuto); err != nil || p.Shown() {
		t.Errorf("auto without a terminal: on %v, %v", p.on, err)
	}
	if p, err := NewLog(io.Discard, []string{"--log-format=json"}).NewProgress("on"); err != nil || p.Shown() {
		t.Errorf("with JSON logs: on %v, %v", p.on, err)
	}
	if _, err := NewLog(io.Discard, nil).NewProgress("sometimes"); err == nil {
		t.Error("an unknown mode is taken")
	}
}

// TestProgressWaits: a bar that stands still says what it waits for, and until when.
func TestProgressWaits(t *testing.T) {
	var out terminal
	p, err := NewLog(&out, nil).NewProgress("on")
	if err != nil {
		t.Fatal(err)
	}
	p.Wait(time.Now().Add(time.Hour))
	p.Update(pipelines.Progress{Form: "f", Rows: 1, Expected: 5})
	p.Finish()
	if text := out.drawn(); !strings.Contains(text, "waits 1h0m0s for the budget") && !strings.Contains(text, "waits 59m5") {
		t.Errorf("drawn %q", text)
	}
	if p.Wait(time.Now()); p.says(decor.Statistics{}) != "" {
		t.Error("a bar waits for a moment that has come")
	}
}
