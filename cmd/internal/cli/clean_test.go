package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/upkeep"
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

// cleanReports hold all that clean can tell.
func cleanReports() *upkeep.CleanReport {
	since := time.Date(2026, 2, 1, 10, 0, 0, 5, time.FixedZone("", 3600))
	upload := load.Leftover{Kind: load.UnfinishedUpload, Run: "dead", Name: "part", Path: "s3://b/lake/part (upload 1)", Bytes: 8_400_000, Since: since}
	return &upkeep.CleanReport{Checkpoints: 2, Outputs: []upkeep.CleanedOutput{
		{Path: "s3://b/lake/", Cleaned: load.Cleaned{
			Removed:  []load.Leftover{upload},
			Kept:     []load.Kept{{Leftover: load.Leftover{Kind: load.Temporary, Path: "s3://b/lake/\x1btemp", Bytes: -1}, Why: "run live is alive"}},
			Recovery: load.Recovery{RunID: "lost"},
		}},
		{Path: "/out/a.csv", Cleaned: load.Cleaned{Recovery: load.Recovery{RunID: "done", Finished: true}}},
	}}
}

func TestCleanTells(t *testing.T) {
	for _, c := range []struct {
		dryRun           bool
		stdout, sentence string
	}{
		{
			false,
			`recorded commit    s3://b/lake/                 -       run lost  -                           taken back: it could not be finished
unfinished upload  s3://b/lake/part (upload 1)  8.4 MB  run dead  since 2026-02-01T09:00:00Z  removed
temporary file     s3://b/lake/ temp            -       -         -                           kept: run live is alive
recorded commit    /out/a.csv                   -       run done  -                           finished
`,
			"1 commit finished; 1 commit taken back; 1 leftover removed (8.4 MB); 2 checkpoints of dead runs removed; 1 leftover kept, because run live is alive\n",
		},
		{
			true,
			`recorded commit    s3://b/lake/                 -       run lost  -                           would finish
unfinished upload  s3://b/lake/part (upload 1)  8.4 MB  run dead  since 2026-02-01T09:00:00Z  would remove
temporary file     s3://b/lake/ temp            -       -         -                           kept: run live is alive
recorded commit    /out/a.csv                   -       run done  -                           would finish
`,
			"2 commits would be finished; 1 leftover would be removed (8.4 MB); 2 checkpoints of dead runs would be removed; 1 leftover kept, because run live is alive\n",
		},
	} {
		var stdout, stderr bytes.Buffer
		log := console.NewLog(&stderr, nil)
		result := &cleanResult{dryRun: c.dryRun}
		if err := console.Table(&stdout, result.add(cleanReports())...); err != nil {
			t.Fatal(err)
		}
		result.tell(log, true)
		if stdout.String() != c.stdout || stderr.String() != c.sentence {
			t.Errorf("dry run %v: got\n%s%s\nwant\n%s%s", c.dryRun, &stdout, &stderr, c.stdout, c.sentence)
		}
	}
}
