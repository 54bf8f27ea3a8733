package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

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
		Rows: 7, Rejected: 2, Replaced: 1,
		Verified: &load.Verified{Match: true, Counted: 4}, ResultChanges: &pipelines.ChangesReport{Method: load.MethodChanges, Changed: 5},
		Undated: 3, Drift: []string{"a column more"},
		Outputs: []output.Report{{Path: "-", Rows: 7, Bytes: 10}},
	}, {Form: "g", Error: "failed"}}}, true)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 7 {
		t.Errorf("%d lines:\n%s", len(lines), &out)
	}
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &map[string]any{}); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, want := range []string{"7 results written to standard output", "2 results rejected", "1 invalid character replaced by �", "with a date and 3 without", "this machine's zone", "5 results changed since the last run", "note: a column more", "note: 2 results rejected; with -o FILE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// TestLengthsOfTime holds that JSON has the seconds that people would write.
func TestLengthsOfTime(t *testing.T) {
	var out bytes.Buffer
	jsonLog(t, &out).Info("x", slog.Duration("pause", 1511*time.Millisecond))
	if !strings.Contains(out.String(), `"pause":1.511}`) {
		t.Error(out.String())
	}
}

// disk has room for as many bytes as the buffer's capacity.
type disk struct{ bytes.Buffer }

func (d *disk) Write(p []byte) (int, error) { return d.Buffer.Write(p[:min(len(p), d.Available())]) }

// TestTornRecord: a record after one that a full disk cut is on a line of its own.
func TestTornRecord(t *testing.T) {
	out := disk{*bytes.NewBuffer(make([]byte, 0, 20))}
	log := jsonLog(t, &out).Logger
	log.Info("cut")
	log.Info("lost")
	out.Grow(1000)
	if log.Info("whole"); !json.Valid(out.Bytes()[21:]) {
		t.Error(out.String())
	}
}

// TestSpoken: at a terminal a record is a line for a person, without the run and what is zero.
func TestSpoken(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(&spoken{Handler: slog.NewTextHandler(nil, nil), out: &out}).With("run_id", "r1", "form", "orders")
	log.Debug("x")
	log.Warn("not written", slog.Int("rows", 1234), slog.Bool("breaking", false), slog.Duration("pause", 1500*time.Millisecond),
		slog.Group("files", slog.Int("stored", 2)), "count_requests", 0, "error", errors.New("the disk is full"), "hint", "free some")
	log.Info("form done", "path", "out.csv")
	const want = "warning: orders: not written: the disk is full (rows 1,234, pause 1.5s, files [stored=2])\nformetl: hint: free some\norders: form done (path out.csv)\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestLogRejects holds the warning of a run whose results were rejected in part.
func TestLogRejects(t *testing.T) {
	var out bytes.Buffer
	log := jsonLog(t, &out).Logger
	report := &pipelines.Report{Definition: "p.yaml", Forms: []*pipelines.FormReport{
		{Form: "a", Rejected: 2, Outputs: []output.Report{{DeadLetters: "/lake/a/_rejects/r.jsonl"}, {DeadLetters: "/out/a.csv.rejects.jsonl"}}},
		{Form: "b", Outputs: []output.Report{{Path: "/lake/b/"}}},
		{Form: "c", Rejected: 3, Outputs: []output.Report{{DeadLetters: "/lake/c/_rejects/r.jsonl"}}},
		{Form: "too many", Rejected: 500, Error: "failed"}, // its error tells it
	}}
	LogRejects(t.Context(), log, report)
	const want = `"level":"WARN","msg":"results were rejected and are in no output; the files in dead_letters say which and why","form":"c","rejected":3,` +
		`"dead_letters":"/lake/c/_rejects/r.jsonl","hint":"fix the schema, then run ` + "`formetl replay p.yaml`" + `"}`
	if !strings.HasSuffix(out.String(), want+"\n") || !strings.Contains(out.String(), `"form":"a","rejected":2,"dead_letters":"/lake/a/_rejects/r.jsonl, /out/a.csv.rejects.jsonl"`) {
		t.Errorf("%s\nwant %s", &out, want)
	}
	out.Reset()
	report.Forms = report.Forms[1:2]
	if LogRejects(t.Context(), log, report); out.Len() > 0 {
		t.Errorf("nothing was rejected: %s", &out)
	}
}

// TestAllDefinitions: what editors read has nothing before it, and only where all is about
// definitions.
func TestAllDefinitions(t *testing.T) {
	wrong := func(file string) error { return &definition.Error{File: file} }
	if !allDefinitions(errors.Join(wrong("a.yaml"), wrong("b.yaml"))) {
		t.Error("two definitions are about definitions")
	}
	if allDefinitions(errors.Join(wrong("a"), errors.New("x"))) || allDefinitions(errors.New("x")) {
		t.Error("other errors are not about definitions")
	}
}

// TestFailJSON: each failed run has a record of its own, which names it, and so has what
// failed besides.
func TestFailJSON(t *testing.T) {
	held := &RunError{Pipeline: "a", RunID: "run1", NamesPipeline: true, Err: &load.HeldError{Path: "/lake/"}}
	full := &RunError{Pipeline: "b", RunID: "run2", NamesPipeline: true, Err: &load.Error{Kind: load.ErrFailed, Op: "write", Path: "/x", Err: errors.New("disk full")}}
	report := &load.Error{Kind: load.ErrUnusable, Op: "write the report", Path: "r.json", Err: errors.New("denied")}
	for _, c := range []struct {
		err  error
		want []string // of each record the run and the exit code
	}{
		{held, []string{"a run1 75"}},
		{errors.New("no run"), []string{"last run9 70"}},
		{fmt.Errorf("stopped; %w", held), []string{"a run1 75"}},
		{&pipelines.FormsError{Forms: 3, Errors: []error{held, full, report}}, []string{"a run1 75", "b run2 74", "last run9 73"}},
	} {
		var out bytes.Buffer
		l := jsonLog(t, &out)
		l.About("last", "run9")
		l.Fail(c.err, func(err error) string { return fmt.Sprint("code ", ExitCode(err)) })
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != len(c.want) {
			t.Fatalf("%v: %d records:\n%s", c.err, len(lines), &out)
		}
		for i, line := range lines {
			var r struct {
				Msg      string `json:"msg"`
				Pipeline string `json:"pipeline"`
				RunID    string `json:"run_id"`
				ExitCode int    `json:"exit_code"`
				Hint     string `json:"hint"`
				Error    string `json:"error"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s %s %d", r.Pipeline, r.RunID, r.ExitCode); got != c.want[i] || r.Msg != "failed" || r.Error == "" || r.Hint != fmt.Sprint("code ", r.ExitCode) {
				t.Errorf("%v: %s, want %s", c.err, line, c.want[i])
			}
		}
	}
}

// TestOutcomes: each exit code of a form has a word of its own kind.
func TestOutcomes(t *testing.T) {
	for code, want := range map[int]string{ExitOK: "done", ExitData: "problem with the data", ExitInterrupted: "stopped", ExitTerminated: "stopped", 1: "failed"} {
		if got := Outcome(code, true); got != want {
			t.Errorf("%d is %q", code, got)
		}
	}
	if got := Outcome(ExitNoPermission, false); got != "not begun" {
		t.Errorf("a form that was not begun is %q", got)
	}
}
