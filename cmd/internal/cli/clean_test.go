package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
)

// TestCleanAgrees holds that the last lines of clean and its exit code say one thing,
// for people and for programs, whatever lies there.
func TestCleanAgrees(t *testing.T) {
	const live = "20260101T000000Z-00000000"
	text := func(name, out string) string {
		return "version: 1\nname: " + name + "\nsource: {base_url: \"https://fs1.example.com\", account: acme, timezone: UTC}\nforms: [form1]\nload: [" + out + "]\n"
	}
	for _, c := range []struct {
		name, out string
		prepare   func(t *testing.T, dir string)
		code      int
		says      string // the summary, or of a failure a part of its error
	}{
		{"nothing", "{path: lake/, format: ndjson}", nil, console.ExitOK, "nothing to clean"},
		{"a dead run", "{path: lake/, format: ndjson}", func(t *testing.T, dir string) {
			write(t, dir, "lake/.formetl/dead1/staged-x", "half")
		}, console.ExitOK, "1 leftover removed (4 B)"},
		{"a run that is alive", "{path: lake/, format: ndjson}", func(t *testing.T, dir string) {
			hold(t, filepath.Join(dir, "lake"), "", live)
		}, console.ExitTemporary, "has been writing to"},
		{"a dead run beside one that is alive", "{path: lake/, format: ndjson}, {path: other/, format: ndjson}", func(t *testing.T, dir string) {
			write(t, dir, "other/.formetl/dead1/staged-x", "half")
			hold(t, filepath.Join(dir, "lake"), "", live)
		}, console.ExitTemporary, "has been writing to"},
		{"what a run of another file needs", "{path: out/a.csv}", func(t *testing.T, dir string) {
			write(t, dir, "out/.formetl/"+live+"/staged-x", "half")
			hold(t, filepath.Join(dir, "out"), "b.csv", live)
		}, console.ExitOK, "1 leftover kept, because run " + live + " is alive"},
		{"parts that no manifest lists", "{path: lake/, format: ndjson}", func(t *testing.T, dir string) {
			write(t, dir, "lake/part-20260101T000000-20260102T000000-000001-0000.ndjson", "{}\n")
		}, console.ExitOK, "1 leftover kept, because no manifest lists it, and --unlisted removes it"},
		{"a path of each run", "{path: \"{run_id}.csv\"}", nil, console.ExitConfig, "another one for each run"},
	} {
		for _, how := range [][]string{nil, {"--dry-run"}, {"--log-format", "json"}} {
			t.Run(c.name+strings.Join(how, " "), func(t *testing.T) {
				dir := t.TempDir()
				if c.prepare != nil {
					c.prepare(t, dir)
				}
				code, stdout, stderr := inProcess("", append([]string{"clean", write(t, dir, "d.yaml", text("agrees", c.out))}, how...)...)
				lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
				last := lines[len(lines)-1]
				failed := strings.HasPrefix(last, "formetl: hint: ")
				if slices.Contains(how, "json") {
					values, _, err := logLine(last)
					if err != nil {
						t.Fatal(err)
					}
					failed = values["exit_code"] == float64(c.code) && values["hint"] != nil
				}
				if says := strings.Replace(c.says, "leftover removed", "leftover would be removed", strings.Count(strings.Join(how, " "), "dry-run")); code != c.code || failed != (code != console.ExitOK) ||
					!strings.Contains(stderr, says) || code != console.ExitOK && strings.Contains(stderr, "nothing to clean") {
					t.Errorf("ended with %d, want %d and %q:\n%s%s", code, c.code, says, stdout, stderr)
				}
			})
		}
	}
}

// hold takes the lease of a scope for a run, until the test ends.
func hold(t *testing.T, root, scope, run string) {
	t.Helper()
	dest, err := local.New(root)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := dest.Acquire(t.Context(), scope, load.Holder{RunID: run, Pipeline: "alive", PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release(context.Background()) })
}
