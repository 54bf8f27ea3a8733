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

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"

	"github.com/prometheus/common/expfmt"

	"github.com/prometheus/common/model"
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

// TestFormsAreLoggedWhenTheyEnd: the record of a form comes while another one is read, and
// the run says now and then that it is alive.
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
	tick := make(chan time.Time, 1)
	tick <- time.Now()
	p := &process{
		stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: stderr, log: console.NewLog(stderr, args),
		lookup: func(name string) (string, bool) { return testKey, name == "FORMETL_API_KEY" },
		ticks:  tick,
	}
	if code := p.run(t.Context(), func() {}, rootCommand(p), args); code != 0 || !strings.Contains(stderr.text.String(), `"msg":"running"`) {
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
// output's reason in short stands where it failed too), one hint says what to do next, and in JSON every line names pipeline and run.
func TestErrorsAreToldOnce(t *testing.T) {
	_, server := newService(testKey, smallForm(), largeForm("orders", 45))
	defer server.Close()
	dir := t.TempDir()
	out := "load: [{path: 'out/{form}.csv'}, {path: 'lake/{form}/', format: csv}]"
	write(t, dir, "afile", "not a folder")
	write(t, dir, "lost/part-20260101T000000-20260102T000000-000001-0000.ndjson", "{}\n")
	for _, c := range []struct {
		name, says string
		code       int
		args       []string
	}{
		{"a form that is not there", "error 102", console.ExitNoInput, []string{"run", pipelineFile(t, dir, "gone", server.URL, "", "forms: [form1, gone]\n"+out)}},
		{"a refused key", "error 100", console.ExitNoPermission, []string{"run", pipelineFile(t, dir, "refused", server.URL, "", "forms: [form1, orders]\n"+out)}},
		{"an output that cannot be", "move it away, or choose another path", console.ExitCantCreate, []string{"run", pipelineFile(t, dir, "blocked", server.URL, "", "forms: [form1]\nload: [{path: 'afile/x.csv'}]")}},
		{"parts that no manifest lists", "no _manifest.json", console.ExitCantCreate, []string{"run", pipelineFile(t, dir, "lost", server.URL, "", "forms: [form1]\nload: [{path: 'lost/', format: ndjson}]")}},
		{"a definition that is wrong", "nme", console.ExitConfig, []string{"run", write(t, dir, "bad.yaml", "version: 1\nname: bad\nnme: x\n")}},
		{"a definition that is not there", "no such file", console.ExitConfig, []string{"run", filepath.Join(dir, "missing.yaml")}},
		{"an export of no form", "HTTP status 404", console.ExitNoInput, append([]string{"export", "--form", "gone", "-o", filepath.Join(dir, "x.csv"), "--state", dir}, serviceArgs(server.URL)...)},
	} {
		for _, format := range []string{"text", "json"} {
			key := testKey
			if c.code == console.ExitNoPermission {
				key = "wrong"
			}
			code, _, text := inProcess(key, append(c.args, "--log-format", format)...)
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			told := strings.Count(text, c.says)
			if code != c.code || told == 0 || told > 1 && c.code != console.ExitConfig || strings.Count(text, "hint") != 1 || strings.Contains(text, "no further form is started") && c.code != console.ExitNoPermission {
				t.Errorf("%s, %s: ended with %d, and it is told %d times:\n%s", c.name, format, code, told, text)
			}
			if format == "text" {
				continue
			}
			for _, line := range lines {
				values, _, err := logLine(line)
				if values["hint"] != nil && (values["error"] == nil || values["exit_code"] != float64(c.code)) {
					t.Errorf("%s: the failure is told by %s", c.name, line)
				}
				if err != nil || values["pipeline"] == nil || values["run_id"] == nil {
					t.Errorf("%s: %v: %s", c.name, err, line)
				}
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
	if code, _, stderr := inProcess(testKey, "run", good, bad, missing, "--report", report, "--metrics", prom); code != console.ExitConfig {
		t.Fatalf("%d: %s", code, stderr)
	}
	metrics := readMetrics(t, prom)
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
	if code, _, stderr := inProcess(testKey, "run", good, "--report", report, "--metrics", prom); code != 0 {
		t.Fatalf("%d: %s", code, stderr)
	}
	data, err = os.ReadFile(report)
	var one map[string]any
	if err != nil || json.Unmarshal(data, &one) != nil || one["hint"] != nil || one["version"] == nil || one["host"] == nil {
		t.Errorf("%v: %s", err, data)
	}
	if ok := readMetrics(t, prom)[runSuccess]["good form1"]; ok != 1 {
		t.Errorf("the success is %v", ok)
	}

	// Where the forms cannot be listed, they are an empty list.
	none := write(t, dir, "none.yaml", "version: 1\nname: none\n"+
		"source: {base_url: \"http://127.0.0.1:1\", account: acme, timezone: UTC, requests: {retries: 0}}\nforms: [\"*\"]\nload: [{path: \"{form}.csv\"}]\n")
	code, _, stderr := inProcess(testKey, "run", none, "--report", report)
	if data, err = os.ReadFile(report); code != console.ExitTemporary || err != nil || !strings.Contains(string(data), `"forms": []`) {
		t.Errorf("%d, %v: %s%s", code, err, data, stderr)
	}
}

// readMetrics reads a metrics file: the samples by family and by the values of
// their labels in the order of the file, joined by a space.
func readMetrics(t testing.TB, file string) map[string]map[string]float64 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]map[string]float64{}
	for name, family := range families {
		metrics[name] = map[string]float64{}
		for _, sample := range family.GetMetric() {
			values := make([]string, len(sample.GetLabel()))
			for i, label := range sample.GetLabel() {
				values[i] = label.GetValue()
			}
			metrics[name][strings.Join(values, " ")] = sample.GetGauge().GetValue()
		}
	}
	return metrics
}
