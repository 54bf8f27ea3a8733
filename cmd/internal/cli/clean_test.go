package cli

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/upkeep"
)

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
			`recorded commit    s3://b/lake/                 -       run lost  -                           undone, because it could not be finished
unfinished upload  s3://b/lake/part (upload 1)  8.4 MB  run dead  since 2026-02-01T09:00:00Z  removed
temporary file     s3://b/lake/ temp            -       -         -                           kept: run live is alive
recorded commit    /out/a.csv                   -       run done  -                           finished
staged file  b  0 B  -  -  removed
             c  -    -  -  removed
                0 B  -  -  kept: it is young
`,
			"1 interrupted write finished; 1 interrupted write undone; 3 leftovers removed (8.4 MB); 3 checkpoints of interrupted runs removed (the next run reads that again); 2 leftovers kept\n",
		},
		{
			true,
			`recorded commit    s3://b/lake/                 -       run lost  -                           would finish
unfinished upload  s3://b/lake/part (upload 1)  8.4 MB  run dead  since 2026-02-01T09:00:00Z  would remove
temporary file     s3://b/lake/ temp            -       -         -                           kept: run live is alive
recorded commit    /out/a.csv                   -       run done  -                           would finish
staged file  b  0 B  -  -  would remove
             c  -    -  -  would remove
                0 B  -  -  kept: it is young
`,
			"2 interrupted writes would be finished; 3 leftovers would be removed (8.4 MB); 3 checkpoints of interrupted runs would be removed (the next run reads that again); 2 leftovers kept\n",
		},
	} {
		var stdout, stderr bytes.Buffer
		log := console.NewLog(&stderr, nil)
		result := &cleanResult{dryRun: c.dryRun}
		second := &upkeep.CleanReport{Checkpoints: 1, Outputs: []upkeep.CleanedOutput{{Cleaned: load.Cleaned{
			Removed: []load.Leftover{{Kind: load.StagedFile, Path: "b", Bytes: 0}, {Path: "c", Bytes: -1}}, Kept: []load.Kept{{Why: "it is young"}},
		}}}}
		if err := errors.Join(console.Table(&stdout, result.add(cleanReports())...), console.Table(&stdout, result.add(second)...)); err != nil {
			t.Fatal(err)
		}
		result.tell(log, true)
		if stdout.String() != c.stdout || stderr.String() != c.sentence {
			t.Errorf("dry run %v: got\n%s%s\nwant\n%s%s", c.dryRun, &stdout, &stderr, c.stdout, c.sentence)
		}
	}
}
