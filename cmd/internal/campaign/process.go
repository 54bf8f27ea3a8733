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
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// patience is how long a process may take before a life gives up on it. It is
// no measurement: a slow machine only takes longer to fail.
const patience = 2 * time.Minute

// process is formetl as a process of its own, and how it ended.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer

	stopped atomic.Bool // it was signalled before it ended

	start, end moment
	began      time.Time // by the clock that it was told
	took       time.Duration
	code       int
	report     *report // nil where it wrote none
}

// report is what the oracle reads of a run's report.
type report struct {
	Forms []struct {
		Range     load.Range     `json:"range"`
		Continued string         `json:"continued"`
		Kept      int            `json:"windows_kept"`
		Error     string         `json:"error"`
		Verified  *load.Verified `json:"verified"`
		Changes   *load.Changes  `json:"result_changes"`
	} `json:"forms"`
}

// arguments are those of a step's command line.
func (l *life) arguments(s *step, report string) []string {
	args := strings.Fields(s.kind)
	if s.kind == stepRange {
		args = []string{stepRun, "--from", stamp(s.span.From), "--to", stamp(s.span.To)}
	}
	if s.reads() {
		args = append(args, "--report", report, "--progress", "off")
	}
	return append(args, "--log-format", "json", l.file())
}

// perform performs a step to its end.
func (l *life) perform(s *step) (*process, error) {
	report := filepath.Join(l.dir, "report.json")
	_ = os.Remove(report) // or there is none
	p := &process{start: l.people.at, began: l.now}
	if err := os.WriteFile(l.file(), []byte(l.def.text(l.service.URL, l.bucket)), 0o600); err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p.cmd = exec.CommandContext(ctx, l.program, l.arguments(s, report)...) //nolint:gosec // the program that main built
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = l.dir, &p.stdout, &p.stderr, l.environment(s)
	sky := s.weather
	sky.seed, sky.before = l.random.Uint64(), l.meets(s, p)
	l.service.expect(sky)
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return p, err
	}
	if s.signal != 0 && s.stopAt == 0 {
		timer := time.AfterFunc(s.stopAfter, func() { p.stop(s.signal) })
		defer timer.Stop()
	}
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err, p.code = nil, exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			p.code = 128 + int(status.Signal()) // as a shell tells it
		}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%v did not end within %s", p.cmd.Args, patience)
	}
	l.service.drain()
	if l.bucket != nil {
		l.bucket.drain()
	}
	if l.database != nil {
		err = errors.Join(err, l.database.drain())
	}
	p.end, p.took = l.people.at, time.Since(began)
	if data, failed := os.ReadFile(report); failed == nil && err == nil {
		err = json.Unmarshal(data, &p.report)
	}
	return p, err
}

// environment is all that the process of a step is told beside its arguments.
func (l *life) environment(s *step) []string {
	none := filepath.Join(l.dir, "none")
	env := []string{
		"GORACE=atexit_sleep_ms=0", // a program with the race detector sleeps a second at its end otherwise
		"FORMETL_API_KEY=" + l.key, "HOME=" + l.dir, "XDG_CACHE_HOME=" + filepath.Join(l.dir, "cache"), "TZ=UTC", "TMPDIR=" + os.TempDir(),
		"FORMETL_NOW=" + l.now.Format(time.RFC3339Nano), "FORMETL_BACKOFF=1ms,4ms,100ms", "FORMETL_FAULT=" + s.fault,
		"AWS_ACCESS_KEY_ID=" + needs.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + needs.S3SecretKey,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + none, "AWS_SHARED_CREDENTIALS_FILE=" + none,
	}
	if l.database != nil {
		env = append(env, "PG="+l.database.dsn())
	}
	return env
}

// meets is what happens before the requests of a step's process.
func (l *life) meets(s *step, p *process) func(n int) {
	m := l.manners()
	if s.kind == stepRange {
		m.within = append(m.within, s.span)
	}
	return func(n int) {
		if s.restless || slices.Contains(s.changes, n) {
			l.people.change(l.now, m)
		}
		if s.signal != 0 && s.stopAt == n {
			p.stop(s.signal)
		}
	}
}

// stop sends the process a signal, unless it has ended.
func (p *process) stop(s syscall.Signal) {
	p.stopped.Store(true) // before, because it may end at once
	if p.cmd.Process.Signal(s) != nil {
		p.stopped.Store(false)
	}
}

// killed tells whether SIGKILL ended the process.
func (p *process) killed() bool { return p.code == 137 }

// unsaid makes sure that a text holds no secret in any spelling: the API key or a password.
func (l *life) unsaid(place string, text []byte) error {
	for _, secret := range []string{l.key, needs.PostgresPassword} {
		if core := secret[2:12]; bytes.Contains(text, []byte(core)) { // which nothing escapes
			return fmt.Errorf("%s holds a secret", place)
		}
	}
	return nil
}

// unwritten makes sure that no file below a folder holds a secret.
func (l *life) unwritten(folder string) error {
	files, err := readFiles(folder)
	for name, data := range files {
		err = errors.Join(err, l.unsaid(filepath.Join(folder, name), data))
	}
	return err
}
