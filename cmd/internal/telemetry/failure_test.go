package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
)

// TestFailJSON: each failed run has a record of its own, which names it, and so has what
// failed besides.
func TestFailJSON(t *testing.T) {
	held := &RunError{Pipeline: "a", RunID: "run1", Named: true, Err: &load.HeldError{Path: "/lake/"}}
	full := &RunError{Pipeline: "b", RunID: "run2", Named: true, Err: &load.IOError{Op: "write", Path: "/x", Err: errors.New("disk full")}}
	report := &load.CreateError{Op: "write the report", Path: "r.json", Err: errors.New("denied")}
	for _, c := range []struct {
		err  error
		want []string // of each record the run and the exit code
	}{
		{held, []string{"a run1 75"}},
		{errors.New("no run"), []string{"last run9 70"}},
		{fmt.Errorf("stopped; %w", held), []string{"a run1 75"}},
		{&account.FormsError{Forms: 3, Errors: []error{held, full, report}}, []string{"a run1 75", "b run2 74", "last run9 73"}},
	} {
		var out bytes.Buffer
		l := jsonLog(t, &out)
		l.About("last", "run9")
		l.Fail(c.err, func(err error) string { return fmt.Sprint("code ", exit.Code(err)) })
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
	for code, want := range map[int]string{exit.OK: "done", exit.Data: "data at fault", exit.Interrupted: "stopped", exit.Terminated: "stopped", 1: "failed"} {
		if got := Outcome(code, true); got != want {
			t.Errorf("%d is %q", code, got)
		}
	}
	if got := Outcome(exit.NoPermission, false); got != "not begun" {
		t.Errorf("a form that was not begun is %q", got)
	}
}
