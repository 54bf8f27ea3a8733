package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/pipelines"
)

func TestWrite(t *testing.T) {
	one, two := &pipelines.Report{Pipeline: "a"}, &pipelines.Report{Pipeline: "b"}
	for _, c := range []struct {
		name    string
		reports []*pipelines.Report
		begins  string
	}{
		{"none.json", nil, "[]\n"},
		{"one.json", []*pipelines.Report{one}, "{\n  \"pipeline\": \"a\""},
		{"two.json", []*pipelines.Report{one, two}, "[\n  {\n    \"pipeline\": \"a\""},
		{"page.HTML", []*pipelines.Report{one}, "<!DOCTYPE html>"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, c.name)
		err := Write(file, c.reports)
		data, _ := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(data), c.begins) || strings.Contains(string(data), "null,") {
			t.Errorf("%s: %v, got %s", c.name, err, data)
		}
		info, err := os.Stat(file)
		if all, _ := os.ReadDir(dir); err != nil || info.Mode() != 0o640 || len(all) != 1 {
			t.Errorf("%s: %v, mode %v, beside %v", c.name, err, info.Mode(), all)
		}
		if err := Write(dir, c.reports); err == nil || !strings.Contains(err.Error(), "this is a folder") {
			t.Errorf("a folder gives %v", err)
		}
	}
}
