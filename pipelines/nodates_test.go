package pipelines_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// ignoring are the ways in which a service may not keep to dates.
func ignoring() map[string]formservice.Faults {
	return map[string]formservice.Faults{
		"both":  {IgnoreDates: true},
		"lower": {IgnoreMinDate: true},
		"upper": {IgnoreMaxDate: true},
	}
}

// steps are windows of every kind.
func steps() []extract.Step {
	return []extract.Step{{}, {Days: 7}, {Seconds: 900}}
}

// sent is how many requests the service was sent.
func (w *world) sent() int { return len(w.service.Log()) }

// TestAllResultsWithoutDates: where no range is asked for, a service that
// ignores dates is read as one window, for a few requests more than that.
func TestAllResultsWithoutDates(t *testing.T) {
	for name, faults := range ignoring() {
		for _, step := range steps() {
			for _, verify := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, verify %v", name, step, verify), func(t *testing.T) {
					t.Parallel()
					form := generated(300)
					w := newWorld(t, form)
					w.service.SetFaults(faults)
					def := w.definition(
						definition.Output{Path: "form1.ndjson", Format: "ndjson"},
						definition.Output{Path: "all/", Format: "ndjson"})
					def.Extract.Window, def.Extract.Verify = step, verify
					def.Source.Requests.Concurrency = 1
					report := w.run(def)
					all := pipelinestest.Truth(form, nil)
					w.checkFile("form1.ndjson", all)
					m := w.checkDataset("all", all)
					f := report.Forms[0]
					if most := 45; w.sent() > most {
						t.Errorf("%d requests, want at most %d", w.sent(), most)
					}
					if n := f.Requests.Results + f.Requests.Count; n != int64(w.sent()) {
						t.Errorf("the report says %d requests, %d were sent", n, w.sent())
					}
					noticed := len(f.Drift) == 1 && strings.Contains(f.Drift[0], "ignores fs_min_date and fs_max_date")
					if one := step.Auto(); !noticed && !one || noticed && len(m.Parts) != 1 {
						t.Errorf("drift %q, %d parts", f.Drift, len(m.Parts))
					}
					if verify && !f.Verified.Match {
						t.Errorf("verified %+v", f.Verified)
					}
				})
			}
		}
	}
}

// TestNoticedAtOnce counts the requests that it takes to notice, and to read
// 300 results then: a count, four pages, a count.
func TestNoticedAtOnce(t *testing.T) {
	for _, tc := range []struct {
		step    extract.Step
		noticed map[string]int // requests by transaction, beyond those that the reading takes
	}{
		{extract.Step{Days: 7}, map[string]int{formservice.TransactionCount: 3}},
		{extract.Step{Days: 1}, map[string]int{formservice.TransactionCount: 3}},
		{extract.Step{Seconds: 900}, map[string]int{formservice.TransactionCount: 3}},
	} {
		w := newWorld(t, generated(300))
		w.service.SetFaults(formservice.Faults{IgnoreDates: true})
		def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
		def.Extract.Window = tc.step
		def.Source.Requests.Concurrency = 1
		w.run(def)
		counts := w.service.Counts()
		if c, p := counts[formservice.TransactionCount], counts[formservice.TransactionResults]; c != tc.noticed[formservice.TransactionCount]+2 || p != 4+feedRequests(w.service) || feedRequests(w.service) > 2 {
			t.Errorf("%s: %d counts and %d pages", tc.step, c, p)
		}
	}
}

// TestRangeWithoutDates: a range that was asked for, or a partition, cannot be
// had from a service that ignores dates. It is said after a few requests.
func TestRangeWithoutDates(t *testing.T) {
	file := definition.Output{Path: "form1.ndjson", Format: "ndjson"}
	byDay := definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay}
	byMonth := definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth}
	whole := definition.Output{Path: "all/", Format: "ndjson"}
	for _, tc := range []struct {
		name, from, to string
		out            definition.Output
		want           string
	}{
		{"from and to", "2025-06-01", "2025-07-01", file, "leave from and to out"},
		{"from and to of a dataset", "2025-06-01", "2025-07-01", whole, "leave from and to out"},
		{"from and to by months", "2025-06-01", "2025-08-01", byMonth, "leave from and to out"},
		{"only from", "2025-06-01", "", file, "leave from and to out"},
		{"only to", "", "2025-02-01", file, "leave from and to out"},
		{"by days", "", "", byDay, "leave `partition` out"},
		{"by months", "", "", byMonth, "leave `partition` out"},
	} {
		for _, step := range steps() {
			for _, verify := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, verify %v", tc.name, step, verify), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, generated(300))
					w.service.SetFaults(formservice.Faults{IgnoreDates: true})
					def := w.definition(tc.out)
					def.Extract.Window, def.Extract.Verify = step, verify
					def.Source.Requests.Concurrency = 1
					if tc.from != "" {
						def.Extract.From = extracttest.Wall(tc.from)
					}
					if tc.to != "" {
						def.Extract.To = extracttest.Wall(tc.to)
					}
					_, err := pipelines.Run(t.Context(), def, options())
					var ignored *pipelines.DatesIgnoredError
					if !errors.As(err, &ignored) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "the service ignores fs_min_date and fs_max_date") {
						t.Fatalf("err = %v", err)
					}
					if w.sent() > 24 {
						t.Errorf("%d requests before it was noticed", w.sent())
					}
					if entries, err := os.ReadDir(w.dir); err != nil || len(dataOf(entries)) > 0 {
						t.Errorf("it left %v, %v", entries, err)
					}
				})
			}
		}
	}
}

// dataOf are the entries that are no state and hold something.
func dataOf(entries []os.DirEntry) (data []string) {
	for _, e := range entries {
		if e.Name() != "state" && !e.IsDir() {
			data = append(data, e.Name())
		}
	}
	return data
}

// TestLargeRangeWithoutDates is noticed by counts, before any page.
func TestLargeRangeWithoutDates(t *testing.T) {
	w := newWorld(t, generated(5000))
	w.service.SetFaults(formservice.Faults{IgnoreDates: true})
	def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
	def.Extract.From, def.Extract.To = extracttest.Wall("2025-01-01"), extracttest.Wall("2025-11-01")
	var ignored *pipelines.DatesIgnoredError
	if _, err := pipelines.Run(t.Context(), def, options()); !errors.As(err, &ignored) {
		t.Errorf("err = %v", err)
	}
	if n := w.service.Counts(); n[formservice.TransactionResults] != feedRequests(w.service) || n[formservice.TransactionCount] != 3 {
		t.Errorf("requests %v", n)
	}
}

// TestDatesThatAreKept: forms whose results are easily taken for those of a
// service that ignores dates. None of them is looked into.
func TestDatesThatAreKept(t *testing.T) {
	items := []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}
	many := func(n int, date func(i int) string) (rs []formservice.Result) {
		for i := range n {
			rs = append(rs, pipelinestest.Result(int64(i+1), date(i), "a"))
		}
		return rs
	}
	second := func(int) string { return "2026-01-02 10:00:00" }
	for _, tc := range []struct {
		name    string
		results []formservice.Result
	}{
		{"one", many(1, second)},
		{"all in a second", many(250, second)},
		{"all undated", many(30, func(int) string { return "" })},
		{"some undated", many(60, func(i int) string { return []string{"", "2026-01-02 10:00:00"}[i%2] })},
		{"undated, stored as 1970", many(60, func(i int) string { return []string{"1970-01-01 00:00:00", "2026-01-02 10:00:00"}[i%2] })},
		{"before 1970", many(60, func(i int) string { return []string{"1960-01-01 00:00:00", "2026-01-02 10:00:00"}[i%2] })},
		{"all before 1984", many(60, func(int) string { return "1983-01-01 00:00:00" })},
	} {
		for _, step := range []extract.Step{{}, {Days: 7}, {Months: 1}} {
			for _, asked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, range %v", tc.name, step, asked), func(t *testing.T) {
					form := formservice.NewForm("form1", items, tc.results)
					w := newWorld(t, form)
					def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
					def.Extract.Window = step
					keep := func(formservice.Result) bool { return true }
					if asked {
						def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-01-08")
						keep = func(r formservice.Result) bool { return strings.HasPrefix(pipelinestest.Date(r), "2026-01-0") }
					}
					report := w.run(def)
					w.checkFile("form1.ndjson", pipelinestest.Truth(form, keep))
					if d := strings.Join(report.Forms[0].Drift, ""); strings.Contains(d, "ignores") {
						t.Errorf("drift %q", d)
					}
					for _, r := range w.service.Log() {
						if strings.Contains(r.Query, "fs_max_id") {
							t.Errorf("a result was doubted: %s", r.Query)
						}
					}
				})
			}
		}
	}
}

// TestDatesThatAreNotShown: a view may leave the dates out. It costs a few
// requests to see that the service keeps to them, and to see that it does not.
func TestDatesThatAreNotShown(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		form := fourDays()
		form.Views = []formservice.View{{ID: "7", Columns: []string{"1"}}}
		w := newWorld(t, form)
		w.service.SetFaults(formservice.Faults{IgnoreDates: ignores})
		def := w.daily(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
		def.Extract.View = "7"
		report, err := pipelines.Run(t.Context(), def, options())
		var ignored *pipelines.DatesIgnoredError
		if errors.As(err, &ignored) != ignores || !ignores && (err != nil || report.Forms[0].Rows != 8) {
			t.Errorf("ignores %v: %v", ignores, err)
		}
		if most := 12; w.sent() > most {
			t.Errorf("ignores %v: %d requests, want at most %d", ignores, w.sent(), most)
		}
	}
}

// TestIncrementalWithoutDates: each run of a dataset without partitions holds
// all results there are.
func TestIncrementalWithoutDates(t *testing.T) {
	l := newLiving(t, definition.Output{Path: "all/", Format: "ndjson"})
	l.service.SetFaults(formservice.Faults{IgnoreDates: true})
	for i, now := range []string{"2026-01-21 00:00:30", "2026-01-22 00:00:30", "2026-01-30 00:00:30"} {
		l.now(now)
		report, err := pipelines.Run(t.Context(), l.definition(), l.o)
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		l.checkDataset("all", pipelinestest.Truth(l.form, nil))
		if d := report.Forms[0].Drift; len(d) == 0 || !strings.Contains(strings.Join(d, " "), "ignores fs_min_date") {
			t.Errorf("run %d: drift %q", i, d)
		}
		l.insert(int64(600+i), fmt.Sprintf("2026-01-%d 10:00:00", 21+i), "new")
		l.form.Delete(int64(5 + i))
	}
}

// TestDatesIgnoredFromNowOn: parts that an honest service filled stay.
func TestDatesIgnoredFromNowOn(t *testing.T) {
	l := newLiving(t)
	if _, err := pipelines.Run(t.Context(), l.definition(), l.o); err != nil {
		t.Fatal(err)
	}
	before := tree(t, l.path("days"))
	l.service.SetFaults(formservice.Faults{IgnoreDates: true})
	l.now("2026-01-22 00:00:30")
	l.service.Reset()
	var ignored *pipelines.DatesIgnoredError
	if _, err := pipelines.Run(t.Context(), l.definition(), l.o); !errors.As(err, &ignored) || l.sent() > 12 {
		t.Errorf("after %d requests: %v", l.sent(), err)
	}
	sameTree(t, before, tree(t, l.path("days")))
}

// TestResumeWithoutDates: what was read before a run ended early is not taken
// for all there is later.
func TestResumeWithoutDates(t *testing.T) {
	form := generated(900)
	w := newWorld(t, form)
	faults := formservice.Faults{IgnoreDates: true}
	w.service.SetFaults(faults)
	pages := 0
	w.service.Decide = func(r formservice.Request) formservice.Fault {
		if r.Transaction == formservice.TransactionResults {
			if pages++; pages > 6 && pages < 40 {
				return formservice.FaultBusy
			}
		}
		return formservice.NoFault
	}
	def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"}, definition.Output{Path: "all/", Format: "ndjson"})
	def.Extract.Window = extract.Step{Days: 7}
	def.Source.Requests.Retries, def.Source.Requests.Concurrency = 2, 1
	if _, err := pipelines.Run(t.Context(), def, options()); !transport.Temporary(err) {
		t.Fatalf("err = %v", err)
	}
	pages = 100
	if _, err := form.Insert(pipelinestest.Result(5000, time.Now().UTC().Add(-time.Hour).Format(extract.WireTime), "new")); err != nil {
		t.Fatal(err)
	}
	w.run(def)
	w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
	w.checkDataset("all", pipelinestest.Truth(form, nil))
}

// TestPlanWithoutDates says what a run would do.
func TestPlanWithoutDates(t *testing.T) {
	w := newWorld(t, generated(300))
	w.service.SetFaults(formservice.Faults{IgnoreDates: true})
	def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
	def.Extract.Window = extract.Step{Days: 7}
	p := planned(t, w, def, false).Forms[0]
	if len(p.Windows) != 1 || *p.Results != 300 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "ignores fs_min_date") || w.sent() != 4 {
		t.Errorf("after %d requests: %+v", w.sent(), p)
	}
	def.Extract.To = extracttest.Wall("2025-06-01")
	var ignored *pipelines.DatesIgnoredError
	if _, err := pipelines.MakePlan(t.Context(), def, options().Options, false); !errors.As(err, &ignored) {
		t.Errorf("err = %v", err)
	}
}
