package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// jsonLog is a log of JSON records that was started.
func jsonLog(t *testing.T, out io.Writer) *Log {
	t.Helper()
	l := NewLog(out, []string{"--log-format", "json"})
	if err := l.Start(slog.LevelInfo); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestFormatIn(t *testing.T) {
	for args, want := range map[string]string{
		"": "text", "run x": "text", "--log-format json run": "json", "run --log-format=json": "json",
		"run --log-format": "text", "run -- --log-format json": "text", "run --log-format json --log-format text": "text",
	} {
		if got := formatIn(strings.Fields(args)); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

// TestTellJSON holds that every line is an object, whatever it is about.
func TestTellJSON(t *testing.T) {
	var out bytes.Buffer
	l := jsonLog(t, &out)
	l.level = "error"
	if err := l.Start(slog.LevelInfo); err != nil {
		t.Fatal(err)
	}
	l.Tell(slog.LevelInfo, "two\nlines", slog.Int("n", 1))
	l.Info("below the level")
	l.Fail(errors.Join(&definition.Error{File: "a.yaml", Problems: []definition.Problem{{Line: 1, Column: 2, Message: "bad"}}}, errors.New("x\ny")), func(error) string { return "see formetl run --help" })
	l.Panic("it\nbroke", "goroutine 1\n")
	l.Summarize(&pipelines.Report{Forms: []*pipelines.FormReport{{
		Form: "f", Timezone: "UTC",
		ReadReport: pipelines.ReadReport{Rejected: 2, Replaced: 1},
		CheckReport: pipelines.CheckReport{
			Verified: &load.Verified{Match: true, Counted: 4}, ResultChanges: &pipelines.ChangesReport{Method: load.MethodChanges, Changed: 5, StaleLeft: 1},
		},
		NoticeReport: pipelines.NoticeReport{Undated: 3, Drift: []string{"a column more"}},
		Outputs:      []output.Report{{Path: "-", Rows: 7, Bytes: 10}},
	}, {Form: "g", Error: "failed"}}}, true)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 6 {
		t.Errorf("%d lines:\n%s", len(lines), &out)
	}
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &map[string]any{}); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, want := range []string{"7 results to standard output", "2 rejected", "1 forbidden character replaced", "with a date, and 3 without one", "this machine's zone", "5 results changed since the last run", "1 stale part left for the next runs", "note: a column more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// TestExplain holds that all definitions' problems are shown, each with its line.
func TestExplain(t *testing.T) {
	wrong := func(file string) error {
		return &definition.Error{File: file, Problems: []definition.Problem{{Line: 3, Column: 1, Key: "k", Message: "is bad", Excerpt: "k: 1"}}}
	}
	both := errors.Join(wrong("a.yaml"), wrong("b.yaml"))
	want := "a.yaml:3:1: k: is bad\n     3 | k: 1\nb.yaml:3:1: k: is bad\n     3 | k: 1"
	if got := Explain(both); got != want || !allDefinitions(both) {
		t.Errorf("%s", got)
	}
	if allDefinitions(errors.Join(wrong("a"), errors.New("x"))) || allDefinitions(errors.New("x")) {
		t.Error("other errors are not about definitions")
	}
}
