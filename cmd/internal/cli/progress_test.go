package cli

import (
	"bytes"
	"io"
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
		"none":            {{Form: "f", Rows: 0, Expected: 0, Done: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var out terminal
			p, err := (&app{stderr: &out, logFormat: formatText}).newProgress(progressOn)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for _, u := range updates {
					p.update(u)
				}
				p.finish()
				p.finish() // harmless
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
	if p, err := (&app{stderr: io.Discard, logFormat: formatText}).newProgress(progressAuto); err != nil || p.on {
		t.Errorf("auto without a terminal: on %v, %v", p.on, err)
	}
	if p, err := (&app{stderr: io.Discard, logFormat: formatJSON}).newProgress(progressOn); err != nil || p.on {
		t.Errorf("with JSON logs: on %v, %v", p.on, err)
	}
	if _, err := (&app{stderr: io.Discard}).newProgress("sometimes"); err == nil {
		t.Error("an unknown mode is taken")
	}
}
