package cli

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// canaryRun is one command of the canary test and the exit code that shows
// that it did what it is here for.
type canaryRun struct {
	name   string
	code   int
	faults string
	args   []string
}

// canaryWorld is the services and files that the commands use. Inputs lie
// outside of the folder that is grepped.
type canaryWorld struct {
	root, inputs         string // what is written; what is given
	service              *formservice.Server
	url, crooked, tlsURL string
}

func newCanaryWorld(t *testing.T) *canaryWorld {
	t.Helper()
	w := &canaryWorld{root: t.TempDir(), inputs: t.TempDir(), crooked: newCrooked(t)}
	service, server := newService(canary, smallForm(), largeForm("orders", 450), uploadsForm())
	t.Cleanup(server.Close)
	tls := httptest.NewUnstartedServer(service)
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of every refused certificate
	tls.StartTLS()
	t.Cleanup(tls.Close)
	service.API = formservice.Both
	w.service, w.url, w.tlsURL = service, server.URL, tls.URL
	write(t, w.inputs, "key", canary+"\n")
	return w
}

// definition writes a definition whose outputs lie in the grepped folder.
func (w *canaryWorld) definition(t *testing.T, name, url, extra string) string {
	t.Helper()
	return write(t, w.inputs, name+".yaml", fmt.Sprintf(`version: 1
name: %s
vars: {api: v1}
source: {base_url: %q, api: "${var:api}", account: acme, timezone: UTC, requests: {retries: 0, timeout: 5s, per_minute: 0}}
forms: [form1, orders]
state: %s
load:
  - path: %[4]s/%[1]s/{form}.csv
  - {path: "%[4]s/%[1]s/lake/{form}/", format: parquet, partition: month}
%[5]s`, name, url, filepath.Join(w.root, "state"), filepath.Join(w.root, "out"), extra))
}

// commands are all commands as they succeed, and as their flags are wrong.
func (w *canaryWorld) commands(t *testing.T) []canaryRun {
	good := w.definition(t, "good", w.url, "")
	service := serviceArgs(w.url)
	with := func(args ...string) []string { return append(args, service...) }
	literal := write(t, w.inputs, "literal.yaml", fmt.Sprintf("version: 1\nname: x\nsource: {base_url: %q, account: acme, api_key: '%s', timezone: UTC}\nforms: [form1]\nload: [{path: a.csv}]\n", w.url+"/?fs_api_key="+canary, canary))
	return []canaryRun{
		{"run", 0, "", []string{"run", good, "--report", filepath.Join(w.root, "report.json"), "--metrics", filepath.Join(w.root, "metrics.prom")}},
		{"run with a page", 0, "", []string{"run", good, "--report", filepath.Join(w.root, "page.html"), "--full"}},
		{"run with a key file", 0, "", []string{"run", good, "--api-key-file", filepath.Join(w.inputs, "key"), "--progress", "on"}},
		{"dry run", 0, "", []string{"run", good, "--dry-run"}},
		{"plan", 0, "", []string{"plan", good}},
		{"plan as JSON", 0, "", []string{"plan", good, "--json"}},
		{"doctor", 0, "", []string{"doctor", good}},
		{"doctor with a key file", 0, "", []string{"doctor", good, "--api-key-file", filepath.Join(w.inputs, "key")}},
		{"validate", 0, "", []string{"validate", good}},
		{"schema show", 0, "", []string{"schema", "show", good}},
		{"schema infer", 0, "", with("schema", "infer", "--form", "form1", "-o", "form1.yaml")},
		{"export", 0, "", with("export", "--form", "form1", "-o", "form1.csv", "--report", "export.html", "--state", "state")},
		{"export to stdout", 0, "", with("export", "--form", "form1")},
		{"export of files", 0, "file-redirect=0.4,file-busy=0.2", with("export", "--form", "uploads", "-o", "uploads.csv", "--files", "uploads")},
		{"forms", 0, "", with("forms", "--json")},
		{"status", 0, "", with("status", "--form", "form1")},
		{"publish", 0, "", with("publish", "--form", "form1")},
		{"count", 0, "", with("count", "--form", "form1")},
		{"copy", 0, "", with("copy", "--form", "form1", "--yes")},
		{"copy refused", console.ExitUsage, "", with("copy", "--form", "form1")},
		{"init", 0, "", []string{"init", "--base-url", w.url, "--account", "acme", "--form", "form1", "--timezone", "UTC", "-o", filepath.Join(w.root, "init.yaml")}},
		{"init with a key file", 0, "", []string{"init", "--base-url", w.url, "--account", "acme", "--form", "form1", "--timezone", "UTC", "-o", filepath.Join(w.root, "filed.yaml"), "--api-key-file", filepath.Join(w.inputs, "key")}},
		{"init with a key for a reference", console.ExitUsage, "", []string{"init", "--base-url", w.url, "--account", "acme", "--form", "form1", "--api-key-reference", canary}},
		{"demo", 0, "", []string{"demo", "--results", "100", "--dir", "demo"}},
		{"rejects", 0, "", []string{"run", w.definition(t, "rejects", w.url, "columns:\n  - {name: id, from: result_id, type: int64}\n  - {name: price, from: \"item:353-0-0\", type: int64}\n"), "--form", "form1"}},
		{"too many rejects", console.ExitData, "", []string{"run", w.definition(t, "strict", w.url, "schema: {max_rejects: 0, columns: [{name: price, from: \"item:353-0-0\", type: int64}]}\n"), "--form", "form1"}},
		{"a key in a definition", console.ExitConfig, "", []string{"validate", literal}},
		{"a key in a definition that is run", console.ExitConfig, "", []string{"run", literal}},
		{"a key as a flag", console.ExitUsage, "", with("forms", "--api-key="+canary)},
		{"a key in the address", console.ExitUsage, "", []string{"forms", "--account", "acme", "--base-url", w.url + "/?fs_api_key=" + canary}},
		{"a key as a password", console.ExitUsage, "", []string{"forms", "--account", "acme", "--base-url", "https://user:" + canary + "@127.0.0.1/"}},
		{"an output that cannot be", console.ExitCantCreate, "", with("export", "--form", "form1", "-o", filepath.Join(w.inputs, "key", "x.csv"))},
		{"an unknown form", console.ExitNoInput, "", with("status", "--form", "gone")},
		{"an unknown account", console.ExitNoInput, "", []string{"forms", "--base-url", w.url, "--account", "nobody"}},
	}
}

// byV2 are commands that send the key as a bearer token.
func (w *canaryWorld) byV2(t *testing.T) []canaryRun {
	t.Helper()
	good := filepath.Join(w.inputs, "good.yaml")
	with := func(args ...string) []string { // the limits of API v2 would make the test wait
		return append(append(args, serviceArgs(w.url)...), "--api", "v2", "--requests-per-minute", "0")
	}
	return []canaryRun{
		{"run by v2", 0, "", []string{"run", good, "--var", "api=v2", "--full", "--report", filepath.Join(w.root, "v2.json"), "--metrics", filepath.Join(w.root, "metrics.prom")}},
		{"run by auto", 0, "", []string{"run", good, "--var", "api=auto"}},
		{"doctor by v2", 0, "", []string{"doctor", good, "--var", "api=v2"}},
		{"export by v2", 0, "", with("export", "--form", "form1", "-o", filepath.Join(w.root, "v2.csv"), "--report", filepath.Join(w.root, "v2.html"), "--state", filepath.Join(w.root, "state"))},
		{"forms by v2", 0, "", with("forms", "--json")},
		{"status by v2", 0, "", with("status", "--form", "form1")},
		{"publish by v2", 0, "", with("publish", "--form", "form1")},
		{"count by v2", 0, "", with("count", "--form", "form1")},
		{"copy by v2", console.ExitUsage, "", with("copy", "--form", "form1", "--yes")},
		{"an unknown form by v2", console.ExitNoInput, "", with("status", "--form", "gone")},
	}
}

// anyCode is the exit code of a failure: which one it is, exit.txtar shows.
const anyCode = -1

// failures are all faults of the service and of what may stand in its place, by both
// generations.
func (w *canaryWorld) failures(t *testing.T) []canaryRun {
	t.Helper()
	good := filepath.Join(w.inputs, "good.yaml")
	runs := make([]canaryRun, 0, 128)
	for _, api := range []string{"v1", "v2"} {
		for i, faults := range []string{
			"busy=1", "busy=1,busy-status=200", "busy=1,busy-status=429,retry-after=1", "html=1", "cut=1", "truncate=1", "reset=1", "redirect=1", "redirect=1,redirect-to=" + w.crooked,
			"old-root,latin1,errors-200,control=raw,headings=nested", "ignore-direction,no-gzip", "per-minute=3", "v2-pagination=missing",
		} {
			report := filepath.Join(w.root, "report-of-a-failure"+[]string{".json", ".html"}[i%2])
			runs = append(runs, canaryRun{"run with " + faults, anyCode, faults, []string{"run", good, "--var", "api=" + api, "--full", "--report", report, "--metrics", filepath.Join(w.root, "metrics.prom")}})
		}
		for _, url := range []string{
			w.crooked + "/code/0", w.crooked + "/code/100", w.crooked + "/code/999", w.crooked + "/html", w.crooked + "/bad/404", w.crooked + "/bad/500", w.crooked + "/moved",
			w.crooked + "/deaf", w.crooked + "/half", "http://127.0.0.1:1", "https://nowhere.invalid", w.tlsURL, strings.Replace(w.url, "http:", "https:", 1),
		} {
			name := strings.NewReplacer("/", "_", ":", "_", ".", "_").Replace(url)
			given := w.definition(t, name, url, "")
			runs = append(runs,
				canaryRun{"doctor at " + url, anyCode, "", []string{"doctor", given, "--var", "api=" + api, "--json"}},
				canaryRun{"run at " + url, anyCode, "", []string{"run", given, "--var", "api=" + api, "--report", filepath.Join(w.root, name+".json"), "--metrics", filepath.Join(w.root, name+".prom")}},
				canaryRun{"copy at " + url, anyCode, "", append([]string{"copy", "--yes", "--form", "form1", "--api", api, "--requests-per-minute", "0"}, serviceArgs(url)...)},
			)
		}
	}
	return runs
}

// TestCanary runs every command and every kind of failure with a key whose
// spellings all differ, and greps every byte that was written anywhere. The
// commands are processes of their own, so that nothing that they write can be
// missed; the failures, of which there are many, run in this one.
func TestCanary(t *testing.T) {
	needs.Slow(t)
	w := newCanaryWorld(t)
	commands, failures := w.commands(t), append(w.byV2(t), w.failures(t)...)
	for i, r := range commands {
		w.run(t, i, r, func(args ...string) (int, string, string) {
			p := command(t, w.root, canary, args...)
			code := p.code(t, p.Run())
			return code, p.stdout.String(), p.stderr.String()
		})
	}
	for i, r := range failures {
		w.run(t, len(commands)+i, r, func(args ...string) (int, string, string) { return inProcess(canary, args...) })
	}
	w.service.SetFaults("")
	w.killedRun(t)
	lines, read := leaksUnder(t, w.root, canary)
	for _, l := range lines {
		t.Error(l)
	}
	for _, must := range []string{
		"report.json", "report-of-a-failure.json", "page.html", "report-of-a-failure.html", "out/good/form1.csv.manifest.json", "out/good/lake/orders/_manifest.json",
		"out/rejects/form1.csv.rejects.jsonl", "demo/feedback.csv", "uploads/files.csv",
	} {
		if _, err := os.Stat(filepath.Join(w.root, filepath.FromSlash(must))); err != nil {
			t.Errorf("nothing to grep: %v", err)
		}
	}
	if read < 2*(len(commands)+len(failures)) {
		t.Errorf("only %d files were grepped", read)
	}
}

// run runs one command at the debug level, every other one with JSON logs, and
// greps and keeps what it told.
func (w *canaryWorld) run(t *testing.T, i int, r canaryRun, do func(args ...string) (code int, stdout, stderr string)) {
	t.Helper()
	w.service.Reset()
	w.service.SetFaults(formservice.Faults(r.faults))
	format := []string{"text", "json"}[i%2]
	code, stdout, stderr := do(append(r.args, "--log-level", "debug", "--log-format", format)...)
	if code != r.code && r.code != anyCode {
		t.Errorf("%s: ended with %d, want %d:\n%s", r.name, code, r.code, stderr)
	}
	write(t, w.root, fmt.Sprintf("told/%d.stdout", i), stdout)
	write(t, w.root, fmt.Sprintf("told/%d.stderr", i), stderr)
	for _, found := range slices.Concat(leaks([]byte(stdout), canary), leaks([]byte(stderr), canary)) {
		t.Errorf("%s told the key (%s):\n%s%s", r.name, found, stdout, stderr)
	}
}

// killedRun leaves a checkpoint, staged files and a state folder behind.
func (w *canaryWorld) killedRun(t *testing.T) {
	t.Helper()
	there := make(chan struct{})
	var seen atomic.Int64
	service, server := newService(canary, largeForm("orders", 450))
	defer server.Close()
	service.Before = func(r formservice.Request) {
		if r.Transaction == formservice.TransactionResults && seen.Add(1) == 300 {
			service.SetFaults("latency=1h")
			close(there)
		}
	}
	killed := w.definition(t, "killed", server.URL, "extract: {from: 2025-01-01, window: 1d}\n")
	p := command(t, w.root, canary, "run", killed, "--form", "orders")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-there:
	case <-time.After(patience):
		t.Errorf("the run that was to be killed never came there:\n%s", &p.stderr)
	}
	if err := p.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.Wait() // it was killed
	server.CloseClientConnections()
	rows, records := 0, 0
	_ = filepath.WalkDir(filepath.Join(w.root, "state"), func(path string, _ fs.DirEntry, _ error) error {
		switch {
		case strings.HasSuffix(path, "-rows"):
			rows++
		case strings.HasSuffix(path, "-record"), strings.HasSuffix(path, "/header"):
			records++
		}
		return nil
	})
	if rows == 0 || records < 2 {
		t.Errorf("the killed run left %d files of rows and %d others in the checkpoint to grep:\n%s", rows, records, &p.stderr)
	}
}

// TestCanaryPanic holds that a bug does not tell the key either, and is 70.
func TestCanaryPanic(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var stdout, stderr bytes.Buffer
		p := &process{stdout: &stdout, stderr: &stderr, log: console.NewLog(&stderr, []string{"--log-format", format})}
		root := &cobra.Command{Use: "formetl", RunE: func(*cobra.Command, []string) error {
			p.log.HideKey(transport.NewSecret(canary))
			panic("https://x.invalid/?fs_api_key=" + canary + " " + echo(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?fs_api_key="+lowerHex(canary), http.NoBody)))
		}}
		if code := p.run(t.Context(), func() {}, root, nil); code != console.ExitBug {
			t.Errorf("%s: a panic ended with %d", format, code)
		}
		if found := leaks(stderr.Bytes(), canary); found != nil || !strings.Contains(stderr.String(), "a bug in formetl") {
			t.Errorf("%s: told the key (%v):\n%s", format, found, &stderr)
		}
	}
}
