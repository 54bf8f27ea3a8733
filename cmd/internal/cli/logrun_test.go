package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
)

// logLine reads a line of a JSON log: an object, and its keys in order, none
// of them twice.
func logLine(line string) (values map[string]any, keys []string, err error) {
	dec := json.NewDecoder(strings.NewReader(line))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return nil, nil, fmt.Errorf("no JSON object (%w): %q", err, line)
	}
	values = map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		key, _ := token.(string)
		if slices.Contains(keys, key) {
			return nil, nil, fmt.Errorf("%s is there twice: %s", key, line)
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, nil, err
		}
		keys, values[key] = append(keys, key), value
	}
	return values, keys, nil
}

// pipelineFile writes a definition of a service.
func pipelineFile(t *testing.T, dir, name, url, requests, rest string) string {
	t.Helper()
	return write(t, dir, name+".yaml", fmt.Sprintf(`version: 1
name: %s
source: {base_url: %s, account: acme, timezone: America/Chicago, requests: {retries: 2, %s}}
%s
`, name, url, requests, rest))
}

const twoForms = `forms: [form1, orders]
extract: {to: 2026-03-01}
load: [{path: "out/{form}.csv"}, {path: "lake/{form}/", format: parquet, partition: month}]`

// TestLogOfRuns reads the log of a run as programs do: two definitions, one of
// which fails in one form, against a service that is busy at first. The failure is one record.
func TestLogOfRuns(t *testing.T) {
	dir := t.TempDir()
	service, server := newService(testKey, smallForm(), largeForm("orders", 450))
	defer server.Close()
	service.SetFaults("busy-first=2")
	good := pipelineFile(t, dir, "good", server.URL, "", twoForms)
	bad := pipelineFile(t, dir, "bad", server.URL, "", "forms: [form1, gone]\nload: [{path: 'bad/{form}.csv'}]")
	p := command(t, dir, testKey, "run", good, bad, "--log-format", "json", "--log-level", "debug")
	if code := p.code(t, p.Run()); code != console.ExitNoInput {
		t.Fatalf("exit code %d: %s", code, p.stderr.String())
	}
	last := map[string]map[string]any{} // by pipeline
	var failed map[string]any
	summaries, lines := 0, strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	for _, line := range lines {
		values, keys, err := logLine(line)
		if err != nil || !slices.Equal(keys[:3], []string{"time", "level", "msg"}) {
			t.Fatalf("%v: %s", err, line)
		}
		if values["level"] == "ERROR" {
			if failed != nil || values["form"] != "gone" || values["exit_code"] != 66.0 || values["error"] == nil || values["hint"] == nil {
				t.Errorf("a failure is told by %s", line)
			}
			failed = values
		}
		pipeline, _ := values["pipeline"].(string)
		if id, _ := values["run_id"].(string); pipeline == "" || id == "" || last[pipeline] != nil && last[pipeline]["run_id"] != id {
			t.Errorf("no pipeline or run: %s", line)
		}
		if values["msg"] == "run finished" {
			summaries++
		}
		last[pipeline] = values
	}
	if summaries != 2 {
		t.Errorf("%d summaries for two definitions", summaries)
	}
	wantSummary(t, last["good"], map[string]any{
		"level": "INFO", "msg": "run finished", "exit_code": 0.0, "rows": 447.0, "rejected": 0.0, "forms": 2.0, "forms_failed": 0.0, "undated": 0.0,
		"watermark": last["good"]["watermark"],
	})
	wantSummary(t, last["bad"], map[string]any{
		"level": "INFO", "msg": "run finished", "exit_code": 66.0, "rows": 4.0, "rejected": 0.0, "forms": 2.0, "forms_failed": 1.0, "undated": 0.0,
	})
	if failed == nil || failed["run_id"] != last["bad"]["run_id"] {
		t.Errorf("the failure is %v", failed)
	}
	if r, _ := last["good"]["retries"].(float64); r < 2 {
		t.Errorf("%v retries", r)
	}
	if strings.Contains(p.stderr.String(), testKey) {
		t.Error("the key is in the log")
	}
}

// wantSummary compares a summary: these values, and for the other keys that
// every summary has any number.
func wantSummary(t *testing.T, got, want map[string]any) {
	t.Helper()
	for _, key := range []string{"requests", "retries", "bytes", "duration"} {
		if n, ok := got[key].(float64); !ok || n < 0 {
			t.Errorf("%s is %v", key, got[key])
		}
		want[key] = got[key]
	}
	for _, key := range []string{"time", "pipeline", "run_id"} {
		want[key] = got[key]
	}
	for key := range got {
		if _, known := want[key]; !known {
			t.Errorf("the summary has the key %s too: %v", key, got)
		}
	}
	for key, value := range want {
		if v, there := got[key]; !there || v != value {
			t.Errorf("%s is %v, want %v", key, v, value)
		}
	}
}

// TestComeBackAt holds that the summary of a run whose budget of the day is
// used up says when the next request may be sent, and never a moment earlier.
func TestComeBackAt(t *testing.T) {
	dir := t.TempDir()
	_, server := newService(testKey, largeForm("orders", 450))
	defer server.Close()
	began := time.Now()
	p := command(t, dir, testKey, "run", "--log-format", "json", "--report", "report.json",
		pipelineFile(t, dir, "poor", server.URL, "per_day: 3", "forms: [orders]\nload: [{path: 'out/{form}.csv'}]"))
	if code := p.code(t, p.Run()); code != console.ExitTemporary {
		t.Fatalf("exit code %d: %s", code, p.stderr.String())
	}
	for line := range strings.Lines(p.stderr.String()) {
		values, _, err := logLine(line)
		if err != nil {
			t.Fatal(err)
		}
		if values["msg"] != "run finished" {
			continue
		}
		text, _ := values["come_back_at"].(string)
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || at.Before(began.Add(24*time.Hour)) || at.After(time.Now().Add(24*time.Hour+time.Second)) || at.Location() != time.UTC {
			t.Errorf("%v: come back at %q, began at %s", err, text, began)
		}
		report, err := os.ReadFile(filepath.Join(dir, "report.json"))
		if err != nil || strings.Count(string(report), `"exit_code": 75`) != 2 || !strings.Contains(string(report), `"request_outcomes": {`) {
			t.Errorf("%v: report %s", err, report)
		}
		return
	}
	t.Errorf("no summary: %s", p.stderr.String())
}

// runSuccess is the metric that tells whether the last run of a form was done.
const runSuccess = "formetl_last_run_success"
