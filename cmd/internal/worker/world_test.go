package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

const (
	bucket = "lake"
	// canary is the API key of the service. It must appear nowhere.
	canary = "canary-key-of-the-form-service"
)

// world is a form service, a bucket, and a definition that any worker can run.
type world struct {
	t        testing.TB
	name     string // of the pipeline, the task queue and the prefix
	dir      string // of the definitions
	service  *formservice.Server
	forms    []*formservice.Form
	temporal string
}

// settings say what a world's definition holds.
type settings struct {
	concurrency, perMinute int
	extract                string
	load                   string // the output; "" is the bucket
}

// newWorld serves forms, and writes a definition of a dataset for each.
func newWorld(t testing.TB, s settings, forms ...*formservice.Form) *world {
	t.Helper()
	need(t)
	dir := t.TempDir()
	w := &world{t: t, name: strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())), dir: dir, forms: forms, temporal: shared.temporal.Address}
	w.name += "-" + filepath.Base(filepath.Dir(dir)) // of this run of the test
	w.service = &formservice.Server{Key: canary, Forms: forms}
	server := httptest.NewServer(w.service)
	t.Cleanup(server.Close)
	if s.extract == "" {
		s.extract = "from: 2026-01-01, to: 2026-02-01, window: 1d"
	}
	out := fmt.Sprintf("{path: \"s3://%s/%s/{form}/\", format: ndjson, partition: day, s3: {endpoint: %q, path_style: true}}", bucket, w.name, shared.buckets.URL)
	if s.load != "" {
		out = s.load
	}
	state := fmt.Sprintf("{path: \"s3://%s/%s-state/\", s3: {endpoint: %q, path_style: true}}", bucket, w.name, shared.buckets.URL)
	w.write(fmt.Sprintf(`version: 1
name: %s
source: {base_url: %q, account: acme, timezone: UTC, requests: {concurrency: %d, per_minute: %d, timeout: 5s}}
forms: ["*"]
state: %s
extract: {%s}
columns:
  - {name: id, from: result_id, type: int64}
  - {name: value, from: "item:1", type: string}
load: [%s]
`, w.name, server.URL, s.concurrency, s.perMinute, state, s.extract, out))
	return w
}

func (w *world) write(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.definition(), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) definition() string { return filepath.Join(w.dir, "pipeline.yaml") }

// january is a form with so many results on each day of January.
func january(name string, each int) *formservice.Form {
	form := formservice.NewForm(name, []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Value"}}, nil)
	form.Metas = []string{"date_finish", "date_update"}
	fill(form, 2026, 31, each)
	return form
}

// fill adds results to the first days of a year.
func fill(form *formservice.Form, year, days, each int) {
	for d := range days {
		for i := range each {
			at := time.Date(year, 1, 1+d, i%24, i%60, i%59, 0, time.UTC)
			insert(form, at, fmt.Sprintf("row-%s-%d-%d", form.Directory, d, i))
		}
	}
}

// insert adds a result that was finished and changed at a time.
func insert(form *formservice.Form, at time.Time, value string) {
	when := at.Format(formservice.WallTime)
	_, err := form.Insert(formservice.Result{
		Metas: []formservice.Meta{{ID: "date_finish", Value: when}, {ID: "date_update", Value: when}},
		Items: []formservice.Answer{{ID: "1", Type: "text", Index: 1, Values: []string{value}}},
	})
	if err != nil {
		panic(err) // the test made a result that no form takes
	}
}

// environment is what a program of the world knows. The key is in it alone.
func (w *world) environment(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + os.TempDir(), "FORMETL_API_KEY=" + canary, "TEMPORAL_ADDRESS=" + w.temporal,
		"AWS_ACCESS_KEY_ID=" + needs.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + needs.S3SecretKey, "AWS_REGION=us-east-1",
	}, more...)
}

// program is a program that runs.
type program struct {
	cmd    *exec.Cmd
	output *output
	ended  chan struct{}
	err    error
}

// output collects what a program writes.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// start starts a program, which ends with the test.
func (w *world) start(path string, env []string, args ...string) *program {
	w.t.Helper()
	p := &program{cmd: exec.CommandContext(context.WithoutCancel(w.t.Context()), path, args...), output: &output{}, ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = env, w.dir, p.output, p.output
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	w.t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGKILL)
		<-p.ended
		if strings.Contains(p.output.String(), canary) {
			w.t.Errorf("the key is in the output of %s", filepath.Base(path))
		}
		if w.t.Failed() {
			w.t.Logf("%v:\n%s", args, tail(p.output.String()))
		}
	})
	return p
}

func tail(text string) string {
	if len(text) > 4000 {
		return "…" + text[len(text)-4000:]
	}
	return text
}

func (p *program) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// code waits for the end of a program, and returns its exit code.
func (p *program) code() int {
	<-p.ended
	if failed, ok := errors.AsType[*exec.ExitError](p.err); ok {
		return failed.ExitCode()
	}
	return 0
}

// worker starts a worker for the world's task queue.
func (w *world) worker() *program {
	return w.start(shared.worker, w.environment("XDG_CACHE_HOME="+w.t.TempDir()), "run", "--task-queue", w.name, "--definitions", w.dir)
}

// workflow starts the workflow of the definition, and waits for its end.
func (w *world) workflow(args ...string) *program {
	return w.start(shared.worker, w.environment(), append([]string{"start", filepath.Base(w.definition()), "--definitions", w.dir, "--task-queue", w.name}, args...)...)
}

// formetl runs the definition by one process.
func (w *world) formetl(args ...string) *program {
	return w.start(shared.formetl, w.environment(), args...)
}

// check holds that each form's dataset has every result once.
func (w *world) check(forms ...*formservice.Form) {
	w.t.Helper()
	for _, form := range forms {
		w.checkAt(filepath.Join(shared.buckets.Dir, bucket, w.name, form.Directory), form)
	}
}

func (w *world) checkAt(root string, form *formservice.Form) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(root, load.ManifestName))
	if err != nil {
		w.t.Errorf("%s: %v", form.Directory, err)
		return
	}
	var manifest load.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		w.t.Fatal(err)
	}
	got := map[int64]string{}
	for _, p := range manifest.Parts {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.Path)))
		if err != nil {
			w.t.Errorf("%s: %v", form.Directory, err)
			return
		}
		for line := range bytes.Lines(data) {
			var row struct {
				ID    int64
				Value string
			}
			if err := json.Unmarshal(line, &row); err != nil {
				w.t.Fatal(err)
			}
			if _, twice := got[row.ID]; twice {
				w.t.Errorf("%s: result %d is there twice", form.Directory, row.ID)
			}
			got[row.ID] = row.Value
		}
	}
	n := 0
	form.Each(func(r formservice.Result) bool {
		if n++; got[r.ID] != r.Items[0].Values[0] {
			w.t.Errorf("%s: result %d is %q, want %q", form.Directory, r.ID, got[r.ID], r.Items[0].Values[0])
			return false
		}
		return true
	})
	if len(got) != n {
		w.t.Errorf("%s: %d rows, want %d", form.Directory, len(got), n)
	}
}

// text is the definition's text.
func (w *world) text() string {
	w.t.Helper()
	data, err := os.ReadFile(w.definition())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// after waits until the service has answered so many requests.
func (w *world) after(requests int, unless *program) {
	w.t.Helper()
	for {
		if len(w.service.Log()) >= requests {
			return
		}
		select {
		case <-unless.ended:
			w.t.Fatalf("the workflow ended after %d requests:\n%s", len(w.service.Log()), tail(unless.output.String()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
