package crashtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// patience is how long a process may take before a test gives up on it. It
// is no measurement: a slow machine only takes longer to fail.
const patience = 2 * time.Minute

// process is formetl as a process of its own.
type process struct {
	*exec.Cmd
	ctx    context.Context //nolint:containedctx // it bounds the process
	stderr bytes.Buffer
	began  chan struct{} // closed when there is a process to kill
}

// command prepares formetl. fault is where it kills itself, "" for nowhere.
func (w *world) command(fault string, args ...string) *process {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), max(patience, w.patience))
	w.t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, shared.program, args...), ctx: ctx, began: make(chan struct{})}
	p.Dir, p.Stderr = w.dir, &p.stderr
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FORMETL_") && !strings.HasPrefix(v, "AWS_") {
			p.Env = append(p.Env, v)
		}
	}
	none := filepath.Join(w.dir, "none")
	p.Env = append(p.Env, "FORMETL_API_KEY="+testKey, "HOME="+w.dir, "XDG_CACHE_HOME="+filepath.Join(w.dir, "cache"), "TZ=UTC",
		"AWS_ACCESS_KEY_ID="+needs.S3AccessKey, "AWS_SECRET_ACCESS_KEY="+needs.S3SecretKey,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+none, "AWS_SHARED_CREDENTIALS_FILE="+none)
	if fault != "" {
		p.Env = append(p.Env, "FORMETL_FAULT="+fault)
	}
	return p
}

// pipeline prepares formetl to run the pipeline.
func (w *world) pipeline(fault string, flags ...string) *process {
	w.t.Helper()
	return w.command(fault, append([]string{"run", w.definition()}, flags...)...)
}

// outcome is how a process ended.
type outcome struct {
	code   int
	killed bool // by SIGKILL
	stderr string
}

// do runs the process to its end.
func (w *world) do(p *process) outcome {
	w.t.Helper()
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	close(p.began)
	err := p.Wait()
	if p.ctx.Err() != nil {
		w.t.Fatalf("%v did not end:\n%s", p.Args, &p.stderr)
	}
	if w.gate != nil {
		w.gate.settle()
	}
	o := outcome{stderr: p.stderr.String()}
	var exit *exec.ExitError
	if err == nil {
		return o
	}
	if !errors.As(err, &exit) {
		w.t.Fatalf("%v: %v", p.Args, err)
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	o.code, o.killed = exit.ExitCode(), ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	return o
}

// kill kills the process with -9, as soon as there is one.
func (p *process) kill() {
	<-p.began
	_ = p.Process.Kill() // or it has ended by itself
}

// run runs the pipeline, which must end well and leave no checkpoint.
func (w *world) run() {
	w.t.Helper()
	if o := w.do(w.pipeline("")); o.killed || o.code != 0 {
		w.t.Fatalf("the run ended with %d:\n%s", o.code, o.stderr)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "state", "checkpoint", "*")); err != nil || len(left) > 0 {
		w.t.Errorf("after a run that ended well there is left %v, %v", left, err)
	}
}

// runInto runs the pipeline into a fault point, which must kill it.
func (w *world) runInto(fault string) {
	w.t.Helper()
	if o := w.do(w.pipeline(fault)); !o.killed {
		w.t.Fatalf("the run was not killed at %s, it ended with %d:\n%s", fault, o.code, o.stderr)
	}
}
