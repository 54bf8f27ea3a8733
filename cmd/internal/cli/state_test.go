package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/upkeep"
)

func wallAt(s string) load.WallTime {
	t, err := time.Parse(time.DateTime, s)
	if err != nil {
		panic(err)
	}
	return load.Wall(t)
}

// stateReport holds all that a state can tell.
func stateReport(t *testing.T) *upkeep.StateReport {
	t.Helper()
	zone, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 10, 18, 0, 0, 5, time.UTC)
	committed := func(watermark load.WallTime) *load.Manifest {
		return &load.Manifest{
			RunID: "run1", CreatedAt: now.Add(-90 * time.Minute).Truncate(time.Second), Watermark: watermark, Rows: 12345,
			Range: load.Range{To: wallAt("2026-03-10 11:30:00")}, Parts: slices.Repeat([]load.Part{{From: wallAt("2026-01-01 00:00:00"), To: wallAt("2026-03-10 00:00:00")}}, 31),
		}
	}
	asked, back := committed(wallAt("2026-03-07 12:00:00")), committed(load.WallTime{})
	asked.Changes = &load.Changes{Method: load.MethodChanges, KnownTo: wallAt("2026-03-07 11:58:12")}
	back.Changes = &load.Changes{Method: load.MethodLookback, Reason: "the service does not sort"}
	dead := load.Leftover{Kind: load.StagedFile, Run: "dead", Name: "x", Path: "/lake/form1/.formetl/dead/x", Bytes: 13}
	next := wallAt("2026-03-07 00:00:00")
	return &upkeep.StateReport{
		Definition: &definition.Definition{
			File: "nightly.yaml", Name: "nightly", Source: definition.Source{Zone: zone}, Extract: definition.Extract{Incremental: true},
		}, Now: now,
		Forms: []*upkeep.FormState{
			{Form: "form1", Next: &next, Outputs: []*upkeep.OutputState{
				// Spring forward lies between the watermark and now.
				{Path: "/lake/form1/", Dataset: true, Manifest: asked, Found: load.Found{Leftovers: []load.Leftover{dead}}},
				{Path: "s3://b/form1/", Dataset: true, Found: load.Found{
					Holder: &load.Holder{RunID: "run3", Pipeline: "nightly", Host: "here", PID: 7, Since: now.Add(-5 * time.Second)},
				}},
			}},
			{Form: "form2\x1b", Outputs: []*upkeep.OutputState{
				{Path: "/out/form2.csv", Manifest: committed(load.WallTime{}), Found: load.Found{Pending: "run4"}},
				{Path: "/lake/form2/", Dataset: true},
				{Path: "/old/form2/", Dataset: true, Manifest: back, Inventory: load.Inventory{Unlisted: []load.Object{{Name: "spare"}}, Damaged: make([]load.DamagedPart, 2)}},
				{Path: "/more/form2/", Dataset: true, Found: load.Found{Holder: &load.Holder{}}},
				{Path: "/lake/{run_id}/", Dataset: true, PerRun: true},
				{Path: "/bad/", Dataset: true, Err: errors.New("denied")},
			}},
		},
		Budget: pipelines.Booked{PerMinute: 60, Minute: 1, PerDay: 5000, Day: 5000, Next: now.Add(5 * time.Hour)},
		Checkpoints: []checkpoint.Unfinished{{
			Header:  checkpoint.Header{RunID: "run5", Form: "form2", OpenedAt: now.Add(-time.Hour)},
			Windows: 4, Rows: 1200, Bytes: 34_000,
		}},
	}
}

func TestStateTells(t *testing.T) {
	const want = `pipeline nightly, mode incremental, times in America/Chicago

form form1
  the next run begins at 2026-03-07 00:00:00
  /lake/form1/
    watermark  2026-03-07 12:00:00, 3 days ago
    changes    the newest one seen is of 2026-03-07 11:58:12, by the service's clock
    last run   run1, 2026-03-10T16:30:00Z (90 minutes ago)
    range      the first result to 2026-03-10 11:30:00 (exclusive)
    rows       12,345 in 31 parts, 2026-01-01 00:00:00 to 2026-03-10 00:00:00 (exclusive)
    leftovers  1 of interrupted runs, which no run needs; after the next run, remove those still there with ` + "`formetl clean nightly.yaml`" + `, which also removes checkpoints
  s3://b/form1/
    watermark  none
    last run   none
    under way  run run3 of pipeline nightly, process 7 on here, since 2026-03-10T17:59:55Z (5 seconds ago)

form form2
  /out/form2.csv
    last run  run1, 2026-03-10T16:30:00Z (90 minutes ago)
    range     the first result to 2026-03-10 11:30:00 (exclusive)
    rows      12,345
    commit    run run4 ended while it put its files in place; the next run finishes that
  /lake/form2/
    watermark  none
    last run   none
  /old/form2/
    watermark  none
    changes    not known; the days before the watermark (lookback) were read again: the service does not sort
    last run   run1, 2026-03-10T16:30:00Z (90 minutes ago)
    range      the first result to 2026-03-10 11:30:00 (exclusive)
    rows       12,345 in 31 parts, 2026-01-01 00:00:00 to 2026-03-10 00:00:00 (exclusive)
    unlisted   1 part not listed in the manifest, so the next run will end with 73; remove with ` + "`formetl clean nightly.yaml --unlisted`" + `
    damaged    2 parts missing or with a different size; the next run writes them again
  /more/form2/
    watermark  none
    last run   none
    under way  a run is working
  /lake/{run_id}/
    unknown  each run writes to another path, so no run continues an earlier one
  /bad/
    unknown  see the error message

budget
  minute  1 of 60 requests used in the last minute
  day     5,000 of 5,000 requests used in the last 24 hours
  next    the next request can be sent at 2026-03-10T23:00:01Z (5 hours from now)

checkpoints of runs that ended early, with what the next run need not read again
  form form2  run run5  4 windows  1,200 results  34.0 kB
`
	r := stateReport(t)
	r.Definition.Extract.Verify = true
	m := r.Forms[0].Outputs[0].Manifest
	m.Rejected, m.Changes.Method, m.Changes.Witness = 30, load.MethodLookback, "meta:date_finish"
	r.Forms[0].Outputs = r.Forms[0].Outputs[:1]
	if got := stateText(r); !strings.Contains(got, "the next run begins at the watermark, and reads what changed") || !strings.Contains(got, "(exclusive), besides 30 rejected results\n") {
		t.Errorf("after a run that could not list the changes: %s", got)
	}
	if got := stateText(stateReport(t)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStateAsJSON(t *testing.T) {
	var out bytes.Buffer
	if err := console.Show(&out, true, stateJSONOf(stateReport(t)), ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "state.json")
	if *update {
		write(t, ".", file, out.String())
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, out.Bytes()) {
		t.Errorf("%v, got\n%s\nwant\n%s", err, &out, want)
	}
	// What there is nothing of is an empty list or null, and never left out.
	out.Reset()
	empty := &upkeep.StateReport{Definition: &definition.Definition{Name: "new", Source: definition.Source{Zone: time.UTC}}, Forms: []*upkeep.FormState{{Form: "f", Outputs: []*upkeep.OutputState{{Path: "/x/"}}}}}
	if err := console.Show(&out, true, stateJSONOf(empty), ""); err != nil {
		t.Fatal(err)
	}
	var full, least map[string]any
	data, err := json.Marshal(stateJSONOf(stateReport(t)))
	if err == nil {
		err = errors.Join(json.Unmarshal(data, &full), json.Unmarshal(out.Bytes(), &least))
	}
	if err != nil {
		t.Fatal(err)
	}
	sameKeys(t, "", full, least)
	if text := stateText(empty); strings.Contains(text, "budget") || !strings.Contains(text, "mode full") {
		t.Errorf("of a definition without a budget: %s", text)
	}
	firstOutput := func(m map[string]any) map[string]any {
		return m["forms"].([]any)[0].(map[string]any)["outputs"].([]any)[0].(map[string]any)
	}
	sameKeys(t, "outputs: ", firstOutput(full), firstOutput(least))
}

func sameKeys(t *testing.T, where string, a, b map[string]any) {
	t.Helper()
	for key := range a {
		if _, ok := b[key]; !ok {
			t.Errorf("%s%s is left out", where, key)
		}
	}
}

func TestResetTells(t *testing.T) {
	var stdout, stderr bytes.Buffer
	log := console.NewLog(&stderr, nil)
	r := &upkeep.ResetReport{
		Outputs: []*upkeep.ResetOutput{
			{Path: "/a/", Reset: output.Reset{Before: wallAt("2026-03-07 12:00:00"), Recovery: load.Recovery{RunID: "run1", Finished: true}}},
			{Path: "/b/", Reset: output.Reset{Before: wallAt("2026-03-07 12:00:00"), After: wallAt("2026-01-01 00:00:00")}},
			{Path: "/c/", Reset: output.Reset{Before: wallAt("2026-03-07 12:00:00"), After: wallAt("2026-03-07 12:00:00"), Recovery: load.Recovery{RunID: "run2"}}},
		},
		Checkpoints: []checkpoint.Unfinished{{Header: checkpoint.Header{RunID: "run3", Form: "form1"}, Windows: 1}},
	}
	if err := showReset(&process{stdout: &stdout, log: log}, r, false); err != nil {
		t.Fatal(err)
	}
	const want = `recorded commit  /a/         run run1                 finished
watermark        /a/         was 2026-03-07 12:00:00  now none
watermark        /b/         was 2026-03-07 12:00:00  now 2026-01-01 00:00:00
recorded commit  /c/         run run2                 undone, because it could not be finished
checkpoint       form form1  run run3                 1 window removed
`
	if stdout.String() != want || stderr.String() != "1 interrupted write finished; 2 watermarks set back, so the next run reads again from there and replaces the rows; 1 checkpoint removed\n" {
		t.Errorf("got\n%s%s", &stdout, &stderr)
	}
}

// TestStateUnreached: a state that cannot be reached ends a run with 75 before the service is asked.
func TestStateUnreached(t *testing.T) {
	service, server := newService(testKey, largeForm("form1", 3))
	defer server.Close()
	dir := t.TempDir()
	file := write(t, dir, "p.yaml", fmt.Sprintf(`version: 1
name: p
source: {base_url: %q, account: acme, timezone: UTC}
forms: ["*"]
state: {path: s3://bucket/state/, s3: {endpoint: "http://127.0.0.1:1", path_style: true}}
load: [{path: "out/{form}.csv"}]
`, server.URL))
	p := command(t, dir, testKey, "run", file)
	p.Env = append(p.Env, "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_MAX_ATTEMPTS=1", "AWS_EC2_METADATA_DISABLED=true")
	if code := p.code(t, p.Run()); code != console.ExitTemporary || len(service.Log()) > 0 || !strings.Contains(p.stderr.String(), "the state in s3://bucket/state/") {
		t.Errorf("it ends with %d after %d requests:\n%s", code, len(service.Log()), &p.stderr)
	}
}
