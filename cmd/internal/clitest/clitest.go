// Package clitest holds what the tests of the command line's packages share: the
// tables of the README, which they compare with the code, and a second reader
// of metrics files, which shares nothing with the one that is tested. No shipped
// file imports it.
package clitest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// ModuleRoot is the module's folder, seen from the package under test.
const ModuleRoot = "../../.."

// ReadmeTable returns the names in the first column of the table that follows
// a heading of the README.
func ReadmeTable(t testing.TB, heading string) []string {
	t.Helper()
	docs := Docs(t)
	at := regexp.MustCompile(`\n##+ ` + regexp.QuoteMeta(heading) + `\n`).FindStringIndex(docs)
	if at == nil {
		t.Fatalf("the documentation has no %q", heading)
	}
	text, _, _ := strings.Cut(docs[at[1]:], "\n#")
	var names []string
	for line := range strings.Lines(text) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok && strings.HasPrefix(line, "|") {
			for _, name := range regexp.MustCompile("`[^`]+`").FindAllString(first, -1) {
				names = append(names, strings.Trim(name, "`"))
			}
		}
	}
	return names
}

// Docs returns the README and all topics of the documentation, one behind the other.
func Docs(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"README.md", "*/*.md"} {
		files, err := filepath.Glob(filepath.Join(ModuleRoot, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString("\n" + string(data))
		}
	}
	return all.String()
}

// SameNames tells what one of two lists has and the other lacks.
func SameNames(t testing.TB, what string, documented, actual []string) {
	t.Helper()
	for _, name := range actual {
		if !slices.Contains(documented, name) {
			t.Errorf("%s %s is not in the README's table", what, name)
		}
	}
	seen := map[string]bool{}
	for _, name := range documented {
		if !slices.Contains(actual, name) || seen[name] {
			t.Errorf("the README's table has the %s %s, which is not there, or twice", what, name)
		}
		seen[name] = true
	}
}

// CheckMetrics lets Prometheus' own tool judge a file: it may neither refuse it
// nor warn of anything. Where it is not installed, only that is left out.
func CheckMetrics(t *testing.T, data []byte) {
	t.Helper()
	t.Run("promtool", func(t *testing.T) {
		tool := needs.Program(t, "promtool", "apt-get install prometheus")
		cmd := exec.CommandContext(t.Context(), tool, "check", "metrics")
		cmd.Stdin = bytes.NewReader(data)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v\n%s\nof\n%s", err, out, data)
		}
	})
}

// ReadMetrics reads a metrics file: the samples by family and by the values of
// their labels in the order of the file, joined by a space.
func ReadMetrics(t testing.TB, file string) map[string]map[string]float64 {
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
