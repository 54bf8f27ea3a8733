package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/formetl/formetl/cmd/internal/campaign/model"
	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/load/loadtest/s3server"
)

// patience is how long a process may take before a life gives up on it. It is
// no measurement: a slow machine only takes longer to fail.
const patience = 2 * time.Minute

// outcome is how a process ended, and what the life knows of it.
type outcome struct {
	start, end model.Moment
	began      time.Time // by the clock that it was told
	took       time.Duration
	code       int
	killed     bool // by SIGKILL
	stopped    bool // it was signalled before it ended
	stdout     string
	stderr     string
	requests   int
	report     *report // nil where it wrote none
}

// report is what the oracle reads of a run's report.
type report struct {
	RunID string       `json:"run_id"`
	Forms []formReport `json:"forms"`
}

// formReport is an entry of a report.
type formReport struct {
	Range     readback.Span `json:"range"`
	Continued string        `json:"continued"`
	Kept      int           `json:"windows_kept"`
	Rows      int64         `json:"rows"`
	Error     string        `json:"error"`
	Verified  *struct {
		Match  bool   `json:"match"`
		Method string `json:"method"`
	} `json:"verified"`
	Changes *readback.Changes `json:"result_changes"`
}

// process is formetl as a process of its own.
type process struct {
	cmd            *exec.Cmd
	ctx            context.Context //nolint:containedctx // it bounds the process
	cancel         context.CancelFunc
	stdout, stderr bytes.Buffer

	mu        sync.Mutex
	running   bool
	signalled bool
}

// process prepares formetl for a step.
func (l *life) process(s *step, args ...string) *process {
	p := &process{}
	p.ctx, p.cancel = context.WithTimeout(context.Background(), patience)
	p.cmd = exec.CommandContext(p.ctx, l.program, args...) //nolint:gosec // the program that main built
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = l.site.dir, &p.stdout, &p.stderr
	none := filepath.Join(l.site.dir, "none")
	p.cmd.Env = []string{
		"GORACE=atexit_sleep_ms=0", // a program with the race detector sleeps a second at its end otherwise
		"FORMETL_API_KEY=" + string(l.key), "HOME=" + l.site.dir, "XDG_CACHE_HOME=" + filepath.Join(l.site.dir, "cache"), "TZ=UTC", "TMPDIR=" + os.TempDir(),
		"FORMETL_NOW=" + l.now.Add(s.skew).Format(time.RFC3339Nano), "FORMETL_BACKOFF=1ms,4ms,100ms", "FORMETL_FAULT=" + s.fault,
		"AWS_ACCESS_KEY_ID=" + s3server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3server.SecretKey,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + none, "AWS_SHARED_CREDENTIALS_FILE=" + none,
	}
	if l.site.database != nil {
		p.cmd.Env = append(p.cmd.Env, "PG="+l.site.database.dsn())
	}
	return p
}

// start starts the process.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.cmd.Start()
	p.running = err == nil
	return err
}

// stop sends the process a signal, unless it has ended.
func (p *process) stop(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running && p.cmd.Process.Signal(s) == nil {
		p.signalled = true
	}
}

// wait waits for the end of a process that was started.
func (p *process) wait() (*outcome, error) {
	defer p.cancel()
	err := p.cmd.Wait()
	p.mu.Lock()
	p.running = false
	p.mu.Unlock()
	o := &outcome{stdout: p.stdout.String(), stderr: p.stderr.String(), stopped: p.signalled}
	if p.ctx.Err() != nil {
		return o, fmt.Errorf("%v did not end within %s", p.cmd.Args, patience)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return o, err
	}
	if exit != nil {
		status, ok := exit.Sys().(syscall.WaitStatus)
		o.code, o.killed = exit.ExitCode(), ok && status.Signaled() && status.Signal() == syscall.SIGKILL
		if ok && status.Signaled() && !o.killed {
			o.code = 128 + int(status.Signal()) // before it could see to signals, as a shell tells it
		}
	}
	return o, nil
}

// perform performs a step to its end. A twin gives a second outcome.
func (l *life) perform(s *step) ([]*outcome, error) {
	count := 1
	if s.twin {
		count = 2
	}
	l.def.perDay = s.perDay
	if err := l.write(); err != nil {
		return nil, err
	}
	faults := l.service.form.Faults
	faults.IgnoreSort, faults.DateHeaderOff = faults.IgnoreSort || s.forgets, l.ahead(s)
	l.service.form.SetFaults(faults)
	processes := make([]*process, count)
	for i := range processes {
		reportFile := l.site.reportFile(i)
		_ = os.Remove(reportFile) // or there is none
		processes[i] = l.process(s, l.arguments(s, reportFile)...)
	}
	first := processes[0]
	sky := weather{seed: l.random.Uint64(), storm: s.storm, empty: s.empty, outage: s.outage, outageAt: s.outageAt, before: map[int][]func(){}, after: map[int][]func(){}}
	manners := l.manners(l.def)
	if s.kind == stepRange {
		manners.within = append(manners.within, s.span())
	}
	if s.kind == stepExport {
		manners = l.manners(l.export)
	}
	var mu sync.Mutex // requests may come side by side
	change := func() {
		mu.Lock()
		defer mu.Unlock()
		l.people.change(l.now, manners)
		l.figures["changes while reading"]++
	}
	for _, n := range s.changes {
		sky.before[n] = append(sky.before[n], change)
	}
	if s.restless {
		sky.always = change
	}
	if s.signal != 0 && s.stopAt > 0 {
		at := sky.before
		if s.answered {
			at = sky.after
		}
		at[s.stopAt] = append(at[s.stopAt], func() { first.stop(s.signal) })
	}
	start := l.people.form.At()
	l.service.expect(sky)
	began := time.Now()
	for _, p := range processes {
		if err := p.start(); err != nil {
			return nil, err
		}
	}
	if s.signal != 0 && s.stopAt == 0 {
		timer := time.AfterFunc(s.stopAfter, func() { first.stop(s.signal) })
		defer timer.Stop()
	}
	return l.outcomes(s, processes, start, began)
}

// outcomes waits for the processes of a step.
func (l *life) outcomes(s *step, processes []*process, start model.Moment, began time.Time) ([]*outcome, error) {
	all := make([]*outcome, 0, len(processes))
	var problems []error
	for i, p := range processes {
		o, err := p.wait()
		problems = append(problems, err)
		if data, failed := os.ReadFile(l.site.reportFile(i)); failed == nil {
			o.report, err = readReport(data)
			problems = append(problems, err)
		}
		all = append(all, o)
	}
	requests := l.service.settle()
	if l.site.bucket != nil {
		l.site.bucket.settle()
	}
	if l.site.database != nil {
		problems = append(problems, l.site.database.settle())
	}
	for _, o := range all {
		o.start, o.end, o.began, o.took, o.requests = start, l.people.form.At(), l.now.Add(s.skew), time.Since(began), requests
	}
	return all, errors.Join(problems...)
}

// readReport reads a report, which is a list where a command did several runs.
func readReport(data []byte) (*report, error) {
	all := []report{{}}
	err := json.Unmarshal(data, &all[0])
	if err != nil {
		err = json.Unmarshal(data, &all)
	}
	whole := &report{}
	for _, r := range all {
		whole.Forms = append(whole.Forms, r.Forms...)
	}
	if err != nil {
		err = fmt.Errorf("the report: %w", err)
	}
	return whole, err
}

// reportFile is where the report of a process of a step goes.
func (s *site) reportFile(n int) string { return filepath.Join(s.dir, fmt.Sprintf("report%d.json", n)) }
