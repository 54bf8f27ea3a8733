package report

import (
	"errors"
	"fmt"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// hostile is a text that leaves whatever it is put in, unless it is escaped.
const hostile = `</script></style></title><img src=/stolen onerror="fetch('/stolen')">'"--><svg onload=fetch('/stolen')>` + "\v\x00\u202e\xff]]>"

func day(n int) time.Time { return time.Date(2026, 1, 1+n, 0, 0, 0, 0, time.UTC) }

func number64(n int64) *int64 { return &n }

// doneForm is a form of n daily windows in which everything happened that a page tells of.
func doneForm(name string, windows int) *pipelines.FormReport {
	f := &pipelines.FormReport{
		Form: name, StartedAt: day(100), EndedAt: day(100).Add(12300 * time.Millisecond), Timezone: "America/Chicago",
		Range:   load.Span(day(0), day(windows)),
		Windows: windows, Rows: int64(windows) * 90, Rejected: int64(windows), Continued: "20260301T000000Z-00000001", WindowsKept: 1, Replaced: 3,
		Rejects:  []reading.FaultCount{{Column: "price", Reason: "not a decimal", Count: int64(windows)}},
		Nulled:   []reading.FaultCount{{Column: "born", Reason: "not a date", Count: 7}},
		Spans:    spans(min(windows, 60)),
		Verified: &load.Verified{Counted: int64(windows) * 91, Extracted: int64(windows) * 91, Match: true, Method: load.MethodChanges}, Reread: 1, Older: 1,
		ResultChanges: &pipelines.ChangesReport{Method: load.MethodChanges, KnownTo: load.Wall(day(windows)), Changed: 5, StaleParts: 1},
		Requests:      load.Requests{Results: int64(windows) + 2, Count: 3, Retries: 4},
		Outputs: []output.Report{
			{Path: "out/" + name + ".csv", Format: "csv", Rows: int64(windows) * 90, Parts: 1, Bytes: 123_456, SHA256: "5a"},
			{Path: "lake/" + name + "/", Format: "parquet", Rows: int64(windows) * 90, Parts: windows, Bytes: 1_234_567, Watermark: load.Wall(day(windows))},
		},
	}
	f.Drift = []string{"column colours is a string, and 2 results had several values: they were joined by |"}
	f.Changes = []schemas.Change{
		{Kind: schemas.ColumnAdded, From: "item:9", Label: "New question", Count: 3},
		{Kind: schemas.ColumnRelabelled, From: "item:1", Column: "full_name", Was: "Name", Is: "Your name"},
		{Kind: schemas.ColumnRemoved, From: "item:7", Column: "fax", Was: "string", Label: "Fax", Breaking: true},
	}
	plan := &pipelines.Planned{Results: number64(int64(windows)*91 + 1), Budget: pipelines.Budget{PerMinute: 60}}
	minutes := 0.5
	plan.Budget.Minutes = &minutes
	plan.Requests.Results, plan.Requests.Counts, plan.Requests.Total = number64(int64(windows)), number64(3), number64(int64(windows)+3)
	f.Planned = plan
	return f
}

// spans are those of daily windows.
func spans(windows int) (list []pipelines.Span) {
	for i := range windows {
		s := pipelines.Span{Range: load.Span(day(i), day(i+1)), Windows: 1, Planned: number64(91), Results: 91, Rejected: int64(i % 2)}
		switch i {
		case 3:
			s.Results, s.Rejected, s.Planned = 0, 0, number64(0)
		case 4:
			s.Results = 80
		}
		list = append(list, s)
	}
	return list
}

// runOf is a run of forms that took twelve seconds.
func runOf(forms ...*pipelines.FormReport) *pipelines.Report {
	r := &pipelines.Report{
		Pipeline: "feedback", Definition: "pipelines/feedback.yaml", RunID: "20260411T000000Z-5ac1d0e2", StartedAt: day(100), EndedAt: day(100).Add(12345 * time.Millisecond),
		Version: "v1.2.3", Host: "etl-1", Forms: forms,
		RequestOutcomes: map[string]int64{"ok": 100, "busy": 3, "failed": 1, "invalid": 0},
	}
	for _, f := range forms {
		r.Requests.Results, r.Requests.Count, r.Requests.Retries = r.Requests.Results+f.Requests.Results, r.Requests.Count+f.Requests.Count, r.Requests.Retries+f.Requests.Retries
	}
	return r
}

// failedForm is a form that ended early.
func failedForm(name string, code int, err error) *pipelines.FormReport {
	return &pipelines.FormReport{
		Form: name, StartedAt: day(100), EndedAt: day(100).Add(time.Second), Timezone: "UTC", ExitCode: code, Error: err.Error(), Err: err,
		Rejects: []reading.FaultCount{{Column: "price", Reason: "not a decimal", Count: 101}}, Rejected: 101,
		ResultsKept: number64(300), Outputs: []output.Report{{Path: "out/x.csv", Format: "csv", Error: "the disk is full"}},
	}
}

// hostileRun has hostile texts wherever a text may come from elsewhere.
func hostileRun() *pipelines.Report {
	f := doneForm(hostile, 6)
	f.Timezone, f.Drift, f.Continued = hostile, []string{hostile}, hostile
	f.Rejects = []reading.FaultCount{{Column: hostile, Reason: hostile, Count: 1}}
	f.Changes = []schemas.Change{{Kind: hostile, From: hostile, Column: hostile, Key: hostile, Was: hostile, Is: hostile, Label: hostile}}
	f.Outputs = []output.Report{{Path: hostile, Format: hostile, Explode: hostile, SHA256: hostile, CompanionsError: hostile, Error: hostile}}
	f.Verified = &load.Verified{Reason: hostile}
	f.ResultChanges = &pipelines.ChangesReport{Reason: hostile}
	f.Error, f.Err, f.ExitCode = hostile, errors.New(hostile), 65
	r := runOf(f, failedForm(hostile, 65, errors.New(hostile)))
	r.Pipeline, r.Definition, r.RunID, r.Version, r.Host, r.Error, r.Hint = hostile, hostile, hostile, hostile, hostile, hostile, hostile
	r.RequestOutcomes, r.ExitCode = map[string]int64{hostile: 1}, 65
	return r
}

// year is a run of a year of daily windows, on whose form so many columns changed. Their
// texts are long.
func year(columns int) *pipelines.Report {
	f := doneForm("feedback", 366)
	f.Changes = nil
	for i := range columns {
		f.Changes = append(f.Changes, schemas.Change{
			Kind: schemas.ColumnAdded, From: fmt.Sprintf("item:%d", i), Column: fmt.Sprintf("item_%d_with_a_name_that_is_rather_long", i), Count: int64(i),
			Label: fmt.Sprintf("How satisfied were you with number %d of the services that we offer to guests & friends?", i),
		})
	}
	return runOf(f)
}

// pages are the runs whose pages are kept.
func pages() map[string][]*pipelines.Report {
	done := doneForm("feedback", 1)
	nothing := &pipelines.FormReport{
		Form: done.Form, StartedAt: done.StartedAt, EndedAt: done.EndedAt, Range: done.Range, Timezone: done.Timezone, Outputs: done.Outputs,
		Windows: 1, Spans: []pipelines.Span{{Range: load.Span(day(0), day(1)), Windows: 1, Planned: new(int64)}},
		Verified: &load.Verified{Match: true, Method: load.MethodCounts}, Requests: load.Requests{Count: 2},
	}
	unread := runOf()
	unread.ExitCode, unread.Error, unread.Hint, unread.EndedAt = 78, "feedback.yaml:3:1: the key \"fromm\" is not known; did you mean from?", "mend what the message names", unread.StartedAt
	several := runOf(
		doneForm("feedback", 6), failedForm("orders", 65, errors.New("101 results were rejected and max_rejects is 100")),
		failedForm("late", 75, &pipelines.NotRunError{Form: "late", Stopped: true, Err: errors.New("told to stop")}))
	several.ExitCode, several.Error, several.Hint = 65, "2 of 3 forms failed:\nform orders: 101 results were rejected\nform late: told to stop", "mend the schema"
	return map[string][]*pipelines.Report{
		"done": {runOf(doneForm("feedback", 8))}, "nothing": {runOf(nothing)}, "notbegun": {unread}, "several": {several, unread}, "hostile": {hostileRun()}, "none": nil,
	}
}
