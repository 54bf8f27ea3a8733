package yeartest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// patience is how long a process may take before the test gives up on it. It
// is no measurement: a slow machine only takes longer to fail.
const patience = 2 * time.Minute

// run is one run of formetl and what becomes of it.
type run struct {
	number   int
	pipeline *pipeline
	flags    []string
	at       time.Time // virtual
	told     time.Time // what the process takes it to be
	seed     uint64

	// What it meets.
	outage    outage
	outageAt  int64   // the request that it begins at, 0 for before the first
	storm     float64 // share of requests that go wrong
	busy      int     // HTTP status of busy answers
	perDay    int
	fault     string // where it kills itself, "" for nowhere
	killAt    int64  // the request that it is killed at, 0 for none
	killAfter bool   // when that is answered
	meddleAt  int    // the request that people meddle at, 0 for none

	// What comes of it.
	arrived    atomic.Int64 // requests that the service saw
	process    atomic.Pointer[os.Process]
	start, end moment
	code       int
	killed     bool
	stderr     string
	took, cpu  time.Duration
	report     *report            // nil where it wrote none
	origins    map[string]*origin // by form
}

// origin is where the reading of a form's data began: with this run, or with
// an earlier one that it resumed from.
type origin struct {
	start       moment
	told, ended time.Time // by the clock of that run
}

// report is what the test reads of a run's report.
type report struct {
	RunID    string       `json:"run_id"`
	ExitCode int          `json:"exit_code"`
	Error    string       `json:"error"`
	Forms    []formReport `json:"forms"`
	// Outcomes are those of all attempts, also of such that never arrived.
	Outcomes map[string]int `json:"request_outcomes"`
}

// formReport is an entry of a report, one for each form.
type formReport struct {
	Form      string        `json:"form"`
	Range     readback.Span `json:"range"`
	Continued string        `json:"continued"`
	Rows      int64         `json:"rows"`
	Rejected  int64         `json:"rejected"`
	Reread    int           `json:"windows_read_again"`
	Error     string        `json:"error"`
	Verified  *struct {
		Match  bool   `json:"match"`
		Method string `json:"method"`
	} `json:"verified"`
	Changes *struct {
		Method     string `json:"method"`
		Reason     string `json:"reason"`
		Changed    int    `json:"changed"`
		StaleParts int    `json:"stale_parts"`
		StaleLeft  int    `json:"stale_left"`
	} `json:"result_changes"`
}

// knew tells whether a run of a form knew what had changed.
func (f formReport) knew() bool { return f.Changes != nil && f.Changes.Method == "changes" }

// leftStale tells whether the run left parts that are known to be stale.
func (f formReport) leftStale() bool { return f.Changes != nil && f.Changes.StaleLeft > 0 }

// of are the entries of a form.
func (r *report) of(form string) []formReport {
	if r == nil {
		return nil
	}
	var list []formReport
	for _, f := range r.Forms {
		if f.Form == form {
			list = append(list, f)
		}
	}
	return list
}

// did tells whether the run brought a form to its end.
func (r *run) did(form string) bool {
	entries := r.report.of(form)
	for _, e := range entries {
		if e.Error != "" {
			return false
		}
	}
	return len(entries) > 0 && !r.killed
}

func (r *run) String() string {
	var met []string
	note := func(is bool, format string, args ...any) {
		if is {
			met = append(met, fmt.Sprintf(format, args...))
		}
	}
	note(!r.told.Equal(r.at), "its clock is wrong by %s", r.told.Sub(r.at))
	note(r.outage != inReach, "the service %s from request %d on", r.outage, r.outageAt)
	note(r.storm > 0, "%.0f %% of requests go wrong", 100*r.storm)
	note(r.perDay < usualPerDay, "%d requests a day", r.perDay)
	note(r.fault != "", "killed at %s", r.fault)
	note(r.killAt > 0, "killed at request %d, answered: %t", r.killAt, r.killAfter)
	note(r.meddleAt > 0, "results change at request %d", r.meddleAt)
	return fmt.Sprintf("run %d of %s at %s %s: ended with %d, killed: %t; %s", r.number, r.pipeline.name,
		r.at.Format(time.RFC3339), strings.Join(r.flags, " "), r.code, r.killed, strings.Join(met, ", "))
}

func (r *run) random() *rand.Rand { return rand.New(rand.NewPCG(r.seed, 7)) }

// kill kills the process with -9.
func (r *run) kill() {
	if p := r.process.Load(); p != nil {
		_ = p.Kill() // or it has ended by itself
	}
}

// perform runs formetl to its end.
func (w *world) perform(t *testing.T, r *run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	file := filepath.Join(w.dir, "report.json")
	_ = os.Remove(file) // or there is none
	args := append([]string{"run", w.write(t, r.pipeline, r.perDay), "--report", file, "--progress", "off", "--log-format", "json"}, r.flags...)
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = w.dir, &stderr
	cmd.Env = []string{
		"FORMETL_API_KEY=" + testKey, "HOME=" + w.dir, "TZ=UTC", "TMPDIR=" + os.TempDir(),
		"FORMETL_NOW=" + r.told.Format(time.RFC3339Nano), "FORMETL_BACKOFF=1ms,4ms,100ms", "FORMETL_FAULT=" + r.fault,
	}
	r.start = w.at()
	w.service.weather(t, r)
	w.service.SetFaults(formservice.Faults{BusyStatus: r.busy, IgnoreSort: !w.way.sorts})
	w.service.expect(r, func() { w.meddle(r) })
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.process.Store(cmd.Process)
	err := cmd.Wait()
	r.took, r.stderr = time.Since(began), stderr.String()
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	w.service.settle()
	r.end = w.at()
	if ctx.Err() != nil {
		t.Fatalf("%s\nit did not end:\n%s", r, r.stderr)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		r.code, r.killed = exit.ExitCode(), ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	} else if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err == nil {
		r.report = &report{}
		err = json.Unmarshal(data, r.report)
	}
	if err != nil && !r.killed {
		t.Fatalf("%s\nits report: %v\n%s", r, err, r.stderr)
	}
}
