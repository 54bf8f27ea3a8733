package pipelines_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestCostlyPlan is told before a result is asked for, by plan and by run, and
// one that is fair is not.
func TestCostlyPlan(t *testing.T) {
	file := definition.Output{Path: "form1.ndjson", Format: "ndjson"}
	byMonth := definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth}
	for _, tc := range []struct {
		step   extract.Step
		out    definition.Output
		verify bool
		want   string // "" is a fair plan
	}{
		{extract.Step{}, file, true, ""},
		{extract.Step{Months: 1}, byMonth, false, ""},
		{extract.Step{Days: 7}, file, false, ""},
		{extract.Step{Months: 1}, file, true, "about 12 requests for 296 results, where 6 would do (12 windows, window: 1mo); set window: auto"},
		{extract.Step{Days: 7}, byMonth, true, "where 18 would do"},
		{extract.Step{Days: 1}, file, false, "at least 365 requests, one for each window of 1d, and nothing was counted"},
	} {
		t.Run(fmt.Sprintf("%s, %s, verify %v", tc.step, tc.out.Path, tc.verify), func(t *testing.T) {
			w := newWorld(t, generated(300))
			def := w.definition(tc.out)
			def.Extract.From, def.Extract.To = extracttest.Wall("2025-01-01"), extracttest.Wall("2026-01-01")
			def.Extract.Window, def.Extract.Verify = tc.step, tc.verify
			p := planned(t, w, def, false).Forms[0]
			told := strings.Join(p.Warnings, "\n")
			if tc.want == "" && told != "" || !strings.Contains(told, tc.want) {
				t.Errorf("the plan warns %q, want %q", told, tc.want)
			}
			var log bytes.Buffer
			o := options()
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			before := ""
			w.service.Before = once(reads(""), func() { before = log.String() })
			w.runBy(def, o)
			if warned := strings.Contains(before, "level=WARN msg=\"the plan takes"); warned != (tc.want != "") || !strings.Contains(before, tc.want) {
				t.Errorf("before it read the run logged\n%s\nwant %q", before, tc.want)
			}
		})
	}
}

// TestMaxRequests: a plan that needs more than that is not begun.
func TestMaxRequests(t *testing.T) {
	for _, tc := range []struct {
		name   string
		edit   func(*definition.Definition)
		counts int
		want   string
	}{
		{"windows", func(d *definition.Definition) { d.Extract.Window = extract.Step{Days: 1} }, 1, "needs at least 366 requests for 296 results (window: 1d, windows: 365), and max_requests is 20; nothing was read: set window: auto"},
		{"uncounted", func(d *definition.Definition) {
			d.Extract.Window, d.Extract.Verify = extract.Step{Days: 7}, false
		}, 0, "needs at least 53 requests for results that were not counted"},
		{"partitions", func(d *definition.Definition) { d.Outputs[0].Partition = definition.PartitionDay }, 20, "planning alone takes more than the 20 requests"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, generated(300))
			def := w.definition(definition.Output{Path: "all/", Format: "ndjson"})
			def.Extract.From, def.Extract.To = extracttest.Wall("2025-01-01"), extracttest.Wall("2026-01-01")
			def.Source.Requests.MaxRequests, def.Source.Requests.Concurrency = 20, 1
			tc.edit(def)
			_, err := pipelines.Run(t.Context(), def, options())
			var costly *extract.CostError
			if !errors.As(err, &costly) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "raise max_requests") {
				t.Fatalf("err = %v", err)
			}
			if n := w.service.Counts(); n[formservice.TransactionResults] != feedRequests(w.service) || n[formservice.TransactionCount] > tc.counts {
				t.Errorf("requests %v", n)
			}
			if tc.name == "uncounted" {
				def.Source.Requests.MaxRequests = 53
				if report := w.run(def); report.Forms[0].Rows != 296 {
					t.Errorf("%d rows", report.Forms[0].Rows)
				}
			}
		})
	}
}
