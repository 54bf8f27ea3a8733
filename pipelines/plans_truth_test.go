package pipelines_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestPlanTellsTheTruth: a plan's total is within 2 % or three requests of what the run
// then sends, over the worlds of the test service that keep their results, and the run's
// report has the same plan. Where the plan says that a run fails, it fails. Worlds whose faults no count shows are left out:
// PageCap, IgnoreMinID, and IgnoreDates where one window holds everything.
func TestPlanTellsTheTruth(t *testing.T) {
	needs.Slow(t)
	forms := map[string]formservice.GenerateOptions{
		"dated":   {Results: 3000, NoUndated: true},
		"undated": {Results: 3000},
		"bare":    {Results: 1500, NoUpdates: true},
		"empty":   {Results: 0},
		"single":  {Results: 1, NoUndated: true},
		"page":    {Results: 100, NoUndated: true, NoUnfinished: true},
		"more":    {Results: 101, NoUndated: true, NoUnfinished: true},
		"large":   {Results: 12_000, NoHostile: true},
		"even":    {Results: 2000, Even: true, NoUnfinished: true},
	}
	faults := map[string]formservice.Faults{
		"":            "",
		"ignore-sort": "ignore-sort",
		"lack-update": "lack-update=50",
		"old":         "old-root,errors-200,latin1,headings=nested",
		"page":        "ignore-page",
		"dates":       "ignore-dates",
		"strict":      "strict-limit,bare-max-midnight,no-gzip",
	}
	shapes := map[string]func(*definition.Definition){
		"all": func(*definition.Definition) {},
		"range": func(d *definition.Definition) {
			d.Extract.From, d.Extract.To = extracttest.Wall("2025-03-01"), extracttest.Wall("2025-09-01")
		},
		"from": func(d *definition.Definition) { d.Extract.From = extracttest.Wall("2025-06-01") },
		"to":   func(d *definition.Definition) { d.Extract.To = extracttest.Wall("2025-06-01") },
		"days": func(d *definition.Definition) {
			d.Outputs = []definition.Output{{Path: d.Outputs[0].Path + ".days/", Format: "ndjson", Partition: definition.PartitionDay}}
		},
		"months": func(d *definition.Definition) {
			d.Outputs = []definition.Output{{Path: d.Outputs[0].Path + ".months/", Format: "ndjson", Partition: definition.PartitionMonth}}
			d.Extract.From, d.Extract.To = extracttest.Wall("2025-01-01"), extracttest.Wall("2026-01-01")
		},
		"steps": func(d *definition.Definition) {
			d.Extract.Window = extract.Period{Days: 7}
			d.Extract.From, d.Extract.To = extracttest.Wall("2025-01-01"), extracttest.Wall("2026-01-01")
		},
		"unverified": func(d *definition.Definition) { d.Extract.Verify = false },
		"incremental": func(d *definition.Definition) {
			d.Outputs = []definition.Output{{Path: d.Outputs[0].Path + ".parts/", Format: "ndjson"}}
			d.Extract.Incremental = true
		},
	}
	type world struct{ form, fault, shape string }
	var worlds []world
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		for _, fault := range slices.Sorted(maps.Keys(faults)) {
			if fault != "" && form != "undated" && form != "dated" {
				continue // what a service breaks shows on forms of some size
			}
			for _, shape := range slices.Sorted(maps.Keys(shapes)) {
				worlds = append(worlds, world{form, fault, shape})
			}
		}
	}
	for _, c := range needs.Sample(worlds, 10) {
		t.Run(c.form+" "+c.fault+" "+c.shape, func(t *testing.T) {
			t.Parallel()
			g := forms[c.form]
			g.Seed = 5
			w := newWorld(t, formservice.Generate(g))
			w.service.SetFaults(faults[c.fault])
			def := w.definition(definition.Output{Path: "out.ndjson", Format: "ndjson"})
			def.Source.Requests.Concurrency = 1 // how many parts a window is divided into is a matter of time
			shapes[c.shape](def)
			for range 2 { // the second run of an incremental definition continues the first
				plan, err := pipelines.MakePlan(t.Context(), def, options(), false)
				w.service.Reset()
				report, failed := pipelines.Run(t.Context(), def, options())
				if c.fault == "dates" && ignoresDates(failed) {
					return // a page shows it
				}
				if err := errors.Join(err, failed); err != nil {
					t.Fatal(err)
				}
				var sent [2]int64
				for i, name := range []string{formservice.TransactionResults, formservice.TransactionCount} {
					sent[i] = int64(w.service.Counts()[name])
				}
				results := *plan.Forms[0].Results
				if u := plan.Forms[0].Undated; u != nil {
					results += u.Results
				}
				if rows := report.Forms[0].Rows; results != rows && !def.Extract.Incremental && c.fault == "" {
					t.Errorf("planned %d results, wrote %d", results, rows)
				}
				planned, told := plan.Forms[0].Planned, *report.Forms[0].Planned
				told.Requests.Planned, told.Requests.Most = planned.Requests.Planned, planned.Requests.Most // the plan made more counts
				if !reflect.DeepEqual(planned, told) {
					got, _ := json.Marshal(told)
					want, _ := json.Marshal(planned)
					t.Errorf("the report says that %s was planned, and the plan %s", got, want)
				}
				p := planned.Requests
				if p.Total == nil {
					t.Fatalf("nothing is planned: %+v", p)
				}
				if one := plan.Forms[0].Windows; len(one) == 1 && c.form == "large" && !def.Extract.Incremental && plan.Forms[0].Undated == nil && *one[0].Requests != *p.Results {
					t.Errorf("the only window takes %d requests, all results %d", *one[0].Requests, *p.Results)
				}
				run := sent[0] + sent[1]
				if off := *p.Total - run; max(off, -off) > max(4, run/50) {
					feed := 0
					for _, q := range w.service.Log() {
						if strings.Contains(q.Query, "fs_sort=") {
							feed++
						}
					}
					t.Errorf("planned %d (%d pages, %d feed, %d counts), sent %d (%d pages, %d feed, %d counts)",
						*p.Total, *p.Results, *p.Feed, *p.Counts, run, sent[0]-int64(feed), feed, sent[1])
				}
				if !def.Extract.Incremental {
					break
				}
			}
		})
	}
}
