package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestWorldsDiffer makes sure that fifty worlds hold what programs are to be compared in.
func TestWorldsDiffer(t *testing.T) {
	var all strings.Builder
	kills := 0
	for n := 1; n <= 50; n++ {
		w := newWorld(n)
		if again := newWorld(n); again.definition != w.definition || again.schema != w.schema || len(again.steps) != len(w.steps) {
			t.Errorf("world %d is another one each time", n)
		}
		all.WriteString(w.api + w.definition + w.schema + w.service.String())
		for _, s := range w.steps {
			all.WriteString("\n" + s.command + " " + string(s.weather))
			if s.kill != "" {
				kills++
			}
		}
	}
	if kills < 30 {
		t.Errorf("only %d runs are killed", kills)
	}
	for _, what := range []string{
		"v1", "v2", ".csv", ".csv.gz", ".csv.zst", ".tsv", ".ndjson", ".json", ".parquet", ".arrow", ".xlsx", "format: csv", "format: ndjson", "format: parquet", "format: arrow",
		"partition: none", "partition: day", "partition: month", "partition: year", "compression: gzip", "compression: zstd", "profile: excel", "incremental", "view: 10", "search:",
		"explode: true", "list_as: json", "pii:", "names: label", "window: 1d", "export", "--full", "--from", "replay", "state show", "verify", "clean", "plan", "busy", "truncate",
	} {
		if !strings.Contains(all.String(), what) {
			t.Errorf("no world has %s", what)
		}
	}
}

// TestDifferencesAreFound takes two programs that are no formetl through a world. The
// second one differs from the first in one thing at a time.
func TestDifferencesAreFound(t *testing.T) {
	needs.Program(t, "sh", "apt-get install dash")
	needs.Program(t, "curl", "apt-get install curl")
	count := "curl -s -o answer $(grep -o 'http://[^,]*' net.yaml)/api/users/acme/forms/form1/results/count?fs_api_key=$FORMETL_API_KEY\n"
	const writes = `echo '{"rows": 1, "created_at": "now"}' >_manifest.json; echo '"a|b"' >a.csv; mkdir -p state; date +%N >state/now; echo 20260101T000000Z-12345678 in $PWD` + "\n"
	base := "#!/bin/sh\n" + writes + count
	for what, c := range map[string]struct{ program, want string }{
		"nothing":          {base, ""},
		"another id":       {strings.Replace(base, "12345678", "87654321", 1), ""},
		"another moment":   {strings.Replace(base, `"now"`, `"then"`, 1), ""},
		"a separator":      {strings.Replace(base, "a|b", "a;b", 1), `a.csv: line 1: "\"a|b\"\n", now "\"a;b\"\n"`},
		"a manifest field": {strings.Replace(base, `"rows": 1`, `"rows": 2`, 1), `_manifest.json: .rows: "1", now "2"`},
		"a request more":   {base + count, `request of run: v1 results/count : "I", now "II"`},
		"an exit code":     {base + "exit 65\n", `end of run net.yaml --report report.json: "exit status 0", now "exit status 65"`},
		"standard output":  {base + "echo more\n", `output of (run net.yaml --report report.json): | more: "", now "I"`},
		"a file more":      {base + "echo >b.csv\n", `b.csv: line 1: "", now "\n"`},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"base": base, "present": c.program} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // it is run
					t.Fatal(err)
				}
			}
			found := strings.Join(live(newWorld(1), dir), "\n")
			for _, kept := range regexp.MustCompile(`/\S+formetl-world-\d+`).FindAllString(found, -1) {
				_ = os.RemoveAll(kept) // it is a temporary folder
			}
			if (c.want == "") != (found == "") || !strings.Contains(found, c.want) {
				t.Errorf("it finds %q and not %q", found, c.want)
			}
		})
	}
}
