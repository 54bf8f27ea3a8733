package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/clitest"
	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/extract/formservice"
)

// watchedLog is standard error, on which a test waits for a text.
type watchedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
	want string
	seen chan bool // closed once want is there
}

func (w *watchedLog) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.text.String(), w.want)
	n, err := w.text.Write(b)
	if !before && strings.Contains(w.text.String(), w.want) {
		close(w.seen)
	}
	return n, err
}

// TestHeartbeatOfRun holds that a run which waits for the service says that it is alive,
// in text and in JSON, and that a run under a bar does not.
func TestHeartbeatOfRun(t *testing.T) {
	for _, c := range []struct {
		args  []string
		beats bool
	}{{nil, true}, {[]string{"--log-format", "json"}, true}, {[]string{"--progress", "on"}, false}} {
		tick := make(chan time.Time, 1)
		stderr := &watchedLog{want: "running", seen: make(chan bool)}
		service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{smallForm()}}
		var once sync.Once
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "results") && c.beats {
				once.Do(func() { // the run goes on when its heartbeat was seen
					tick <- time.Now().Add(time.Minute)
					select {
					case <-stderr.seen:
					case <-r.Context().Done():
					}
				})
			}
			service.ServeHTTP(w, r)
		}))
		dir := t.TempDir()
		file := pipelineFile(t, dir, "good", server.URL, "", "forms: [form1]\nload: [{path: 'out/{form}.csv'}]")
		args := append([]string{"run", file}, c.args...)
		asked := false
		p := &process{
			stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: stderr, log: telemetry.NewLog(stderr, args),
			lookup: func(name string) (string, bool) { return testKey, name == "FORMETL_API_KEY" },
			ticks: func() (<-chan time.Time, func()) {
				asked = true
				return tick, func() {}
			},
		}
		code := p.run(t.Context(), func() {}, rootCommand(p), args)
		server.Close()
		text := stderr.text.String()
		if code != 0 || asked != c.beats || strings.Contains(text, "running") != c.beats {
			t.Fatalf("%v ended with %d:\n%s", args, code, text)
		}
		if c.beats && !strings.Contains(text, "windows_done") {
			t.Errorf("%v:\n%s", args, text)
		}
	}
}

// TestFormsAreLoggedWhenTheyEnd: the record of a form comes while another one is read.
func TestFormsAreLoggedWhenTheyEnd(t *testing.T) {
	stderr := &watchedLog{want: `"msg":"form done"`, seen: make(chan bool)}
	service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{smallForm(), largeForm("orders", 45)}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "orders") {
			select {
			case <-stderr.seen:
			case <-r.Context().Done():
			}
		}
		service.ServeHTTP(w, r)
	}))
	defer server.Close()
	file := pipelineFile(t, t.TempDir(), "good", server.URL, "", "forms: [orders, form1]\nload: [{path: 'out/{form}.csv'}]")
	args := []string{"run", file, "--log-format", "json"}
	p := &process{
		stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: stderr, log: telemetry.NewLog(stderr, args),
		lookup: func(name string) (string, bool) { return testKey, name == "FORMETL_API_KEY" },
	}
	if code := p.run(t.Context(), func() {}, rootCommand(p), args); code != 0 {
		t.Fatalf("%d:\n%s", code, &stderr.text)
	}
	for line := range strings.Lines(stderr.text.String()) {
		values, _, err := logLine(line)
		if err != nil {
			t.Fatal(err)
		}
		if values["msg"] != "form done" {
			continue
		}
		if values["form"] != "form1" || values["rows"] != 4.0 || values["outcome"] != "done" || values["requests"] == 0.0 || values["duration"] == 0.0 {
			t.Errorf("the first form that ended: %s", line)
		}
		break
	}
}

// TestErrorsAreToldOnce: whatever fails, its whole text stands once on standard error (an
// output's reason in short stands where it failed too), the last line says what to do next, and in JSON every line names pipeline and run.
func TestErrorsAreToldOnce(t *testing.T) {
	_, server := newService(testKey, smallForm(), largeForm("orders", 45))
	defer server.Close()
	dir := t.TempDir()
	out := "load: [{path: 'out/{form}.csv'}, {path: 'lake/{form}/', format: csv}]"
	write(t, dir, "afile", "not a folder")
	for _, c := range []struct {
		name, says string
		code       int
		args       []string
	}{
		{"a form that is not there", "error 102", exit.NoInput, []string{"run", pipelineFile(t, dir, "gone", server.URL, "", "forms: [form1, gone]\n"+out)}},
		{"a refused key", "error 100", exit.NoPermission, []string{"run", pipelineFile(t, dir, "refused", server.URL, "", "forms: [form1, orders]\n"+out)}},
		{"an output that cannot be", "move it away, or choose another path", exit.CantCreate, []string{"run", pipelineFile(t, dir, "blocked", server.URL, "", "forms: [form1]\nload: [{path: 'afile/x.csv'}]")}},
		{"a definition that is wrong", "nme", exit.Config, []string{"run", write(t, dir, "bad.yaml", "version: 1\nname: bad\nnme: x\n")}},
		{"a definition that is not there", "no such file", exit.Config, []string{"run", filepath.Join(dir, "missing.yaml")}},
		{"an export of no form", "error 102", exit.NoInput, append([]string{"export", "--form", "gone", "-o", "x.csv"}, serviceArgs(server.URL)...)},
	} {
		for _, format := range []string{"text", "json"} {
			key := testKey
			if c.code == exit.NoPermission {
				key = "wrong"
			}
			p := command(t, dir, key, append(c.args, "--log-format", format)...)
			code := p.code(t, p.Run())
			text := p.stderr.String()
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			last := lines[len(lines)-1]
			told := strings.Count(text, c.says)
			if code != c.code || told == 0 || told > 1 && c.code != exit.Config || strings.Contains(text, "no further form") && c.code != exit.NoPermission {
				t.Errorf("%s, %s: ended with %d, and it is told %d times:\n%s", c.name, format, code, told, text)
			}
			if format == "text" {
				if !strings.HasPrefix(last, "formetl: hint: ") {
					t.Errorf("%s: the last line is %s", c.name, last)
				}
				continue
			}
			for _, line := range lines {
				values, _, err := logLine(line)
				if err != nil || values["pipeline"] == nil || values["run_id"] == nil {
					t.Errorf("%s: %v: %s", c.name, err, line)
				}
			}
			if values, _, _ := logLine(last); values["hint"] == nil || values["exit_code"] != float64(c.code) {
				t.Errorf("%s: the last line is %s", c.name, last)
			}
		}
	}
}

// TestEarlyFailure holds that report and metrics tell of a run that failed before it
// began: of each definition, under the name that it says or that of its file.
func TestEarlyFailure(t *testing.T) {
	dir := t.TempDir()
	_, server := newService(testKey, smallForm())
	defer server.Close()
	good := pipelineFile(t, dir, "good", server.URL, "", "forms: [form1]\nload: [{path: 'out/{form}.csv'}]")
	bad := write(t, dir, "bad.yaml", "version: 1\nname: nightly\nnme: x\n")
	missing := filepath.Join(dir, "missing.yaml")
	report, prom := filepath.Join(dir, "r.json"), filepath.Join(dir, "m.prom")
	p := command(t, dir, testKey, "run", good, bad, missing, "--report", report, "--metrics", prom)
	if code := p.code(t, p.Run()); code != exit.Config {
		t.Fatalf("%d: %s", code, &p.stderr)
	}
	metrics := clitest.ReadMetrics(t, prom)
	for _, pipeline := range []string{"good", "nightly", "missing"} {
		if ok, there := metrics[runSuccess][pipeline+" "]; !there || ok != 0 {
			t.Errorf("%s: %v (%v)", pipeline, ok, there)
		}
	}
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var reports []map[string]any
	if err := json.Unmarshal(data, &reports); err != nil || len(reports) != 3 {
		t.Fatalf("%v: %s", err, data)
	}
	for _, r := range reports {
		forms, is := r["forms"].([]any)
		if !is || len(forms) > 0 || r["version"] == "" || r["host"] == nil || r["exit_code"] != 78.0 || r["hint"] == nil || r["error"] == nil || r["run_id"] == nil {
			t.Errorf("%v", r)
		}
	}
	if asked, _ := reports[0]["error"].(string); !strings.Contains(asked, "another definition is wrong") {
		t.Errorf("the good one: %s", asked)
	}

	// Then all is well, and the report has no hint.
	p = command(t, dir, testKey, "run", good, "--report", report, "--metrics", prom)
	if code := p.code(t, p.Run()); code != 0 {
		t.Fatalf("%d: %s", code, &p.stderr)
	}
	data, err = os.ReadFile(report)
	var one map[string]any
	if err != nil || json.Unmarshal(data, &one) != nil || one["hint"] != nil || one["version"] == nil || one["host"] == nil {
		t.Errorf("%v: %s", err, data)
	}
	if ok := clitest.ReadMetrics(t, prom)[runSuccess]["good form1"]; ok != 1 {
		t.Errorf("the success is %v", ok)
	}
}
