package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
)

// byV2 are commands that send the key as a bearer token, as they succeed and as the
// service or what stands in its place fails.
func (w *canaryWorld) byV2(t *testing.T) []canaryRun {
	good := filepath.Join(w.inputs, "good.yaml")
	service := append(serviceArgs(w.url), "--api", "v2", "--requests-per-minute", "0") // the limits of API v2 would make the test wait
	with := func(args ...string) []string { return append(args, service...) }
	report := filepath.Join(w.root, "report-v2.json")
	runs := make([]canaryRun, 0, 64)
	runs = append(runs, []canaryRun{
		{"run by v2", 0, "", []string{"run", good, "--var", "api=v2", "--full", "--report", report, "--metrics", filepath.Join(w.root, "metrics.prom")}},
		{"run by auto", 0, "", []string{"run", good, "--var", "api=auto"}},
		{"plan by v2", 0, "", []string{"plan", good, "--var", "api=v2", "--json"}},
		{"doctor by v2", 0, "", []string{"doctor", good, "--var", "api=v2"}},
		{"export by v2", 0, "", with("export", "--form", "form1", "-o", filepath.Join(w.root, "v2.csv"), "--report", filepath.Join(w.root, "v2.html"), "--state", filepath.Join(w.root, "state"))},
		{"forms by v2", 0, "", with("forms", "--json")},
		{"status by v2", 0, "", with("status", "--form", "form1")},
		{"publish by v2", 0, "", with("publish", "--form", "form1")},
		{"count by v2", 0, "", with("count", "--form", "form1")},
		{"copy by v2", exit.Usage, "", with("copy", "--form", "form1", "--yes")},
		{"an unknown form by v2", exit.NoInput, "", with("status", "--form", "gone")},
		{"an unknown account by v2", exit.NoInput, "", []string{"forms", "--api", "v2", "--base-url", w.url, "--account", "nobody"}},
	}...)
	for faults, code := range map[string]int{
		"busy=1": exit.Temporary, "busy=1,busy-status=503": exit.Temporary, "html=1": exit.Temporary, "cut=1": exit.Temporary, "truncate=1": exit.Temporary,
		"reset=1": exit.Temporary, "redirect=1": exit.Config, "redirect=1,redirect-to=" + w.crooked: exit.Config, "errors-200": 0, "v2-pagination=missing": 0,
	} {
		runs = append(runs, canaryRun{"run by v2 with " + faults, code, faults, []string{"run", good, "--var", "api=v2", "--full", "--report", report}})
	}
	for url, code := range map[string]int{
		w.crooked + "/html": exit.Config, w.crooked + "/bad/404": exit.Config, w.crooked + "/bad/500": exit.Temporary, w.crooked + "/moved": exit.Config,
		w.crooked + "/deaf": exit.Temporary, w.crooked + "/half": exit.Config, "http://127.0.0.1:1": exit.Temporary, w.tlsURL: exit.Unavailable,
		w.crooked + "/code/100": exit.Config,
	} {
		name := strings.NewReplacer("/", "_", ":", "_", ".", "_").Replace(url)
		given := w.definition(t, name, url, "")
		runs = append(runs,
			canaryRun{"run by v2 at " + url, code, "", []string{"run", given, "--var", "api=v2", "--report", report}},
			canaryRun{"forms by auto at " + url, code, "", append([]string{"forms", "--api", "auto", "--retries", "0", "--timeout", "2s", "--patience", "1s", "--requests-per-minute", "0"}, serviceArgs(url)...)})
	}
	return runs
}
