package pipelines_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// TestReadAgain changes the form at an exact place of a run over windows of a day, read one
// after the other. What moves otherwise TestModel walks.
func TestReadAgain(t *testing.T) {
	finish := func(f *formservice.Form, id int64, when string) {
		if err := f.Finish(id, extracttest.Wall(when)); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		do     func(*formservice.Form)
		reread bool
	}{
		"to a window that was not read":       {func(f *formservice.Form) { finish(f, 1, "2026-01-03 12:00:00") }, true},
		"within its window before it is read": {func(f *formservice.Form) { finish(f, 3, "2026-01-03 12:00:00") }, false},
		"out of the range before it is read":  {func(f *formservice.Form) { finish(f, 3, "2026-03-01 12:00:00") }, false},
		"into the range":                      {func(f *formservice.Form) { finish(f, 10, "2026-01-01 12:00:00") }, true},
		"a swap that leaves all counts": {func(f *formservice.Form) {
			finish(f, 1, "2026-01-03 12:00:00")
			finish(f, 3, "2026-01-04 12:00:00")
			finish(f, 8, "2026-01-01 12:00:00")
		}, true},
		"one to a window that was read, while one that was read is deleted": {func(f *formservice.Form) {
			finish(f, 3, "2026-01-01 12:00:00") // the sum agrees with what was read, and each day does not
			f.Delete(2)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			form := fourDays()
			w := newWorld(t, form)
			w.service.Before = once(reads("2026-01-03"), func() { c.do(form) })
			report := w.run(w.daily(fileAndDays()...))
			w.checkFile("form1.ndjson", pipelinestest.Truth(form, inJanuary))
			w.checkDataset("days", pipelinestest.Truth(form, inJanuary))
			if got := report.Forms[0].Reread > 0; got != c.reread {
				t.Errorf("%d windows were read again", report.Forms[0].Reread)
			}
		})
	}
}

// countsAll tells whether a request counts all results.
func countsAll(r formservice.Request) bool {
	return r.Transaction == formservice.TransactionCount && !strings.Contains(r.Query, "_date=")
}

// countsRange tells whether a request counts up to the end of the range.
func countsRange(r formservice.Request) bool {
	return r.Transaction == formservice.TransactionCount && strings.Contains(r.Query, "fs_max_date")
}

// TestUndatedResults come, go and get their dates at an exact place of a run.
func TestUndatedResults(t *testing.T) {
	insert := func(f *formservice.Form, id int64, date string) {
		if _, err := f.Insert(pipelinestest.Result(id, date, "x")); err != nil {
			t.Error(err)
		}
	}
	dated := func(f *formservice.Form) {
		if err := f.Finish(50, extracttest.Wall("2026-01-02 12:00:00")); err != nil {
			t.Error(err)
		}
	}
	countsDated := func(r formservice.Request) bool {
		return r.Transaction == formservice.TransactionCount && strings.Contains(r.Query, "fs_min_date=1970")
	}
	readsUndated := func(r formservice.Request) bool {
		return r.Transaction == formservice.TransactionResults && !strings.Contains(r.Query, "_date=")
	}
	countsAfterwards := func() func(formservice.Request) bool {
		return after(readsUndated, func(r formservice.Request) bool {
			return r.Transaction == formservice.TransactionCount && strings.Contains(r.Query, "fs_max_date")
		})
	}
	for name, c := range map[string]struct {
		more int // results without a date, whose ids lie in a range of their own
		when func(formservice.Request) bool
		do   func(*formservice.Form)
	}{
		"one gets its date after it was read":                         {more: 400, when: countsAfterwards(), do: dated},
		"one among others gets its date after it was read":            {when: countsAfterwards(), do: dated},
		"the last one gets its date after the range was counted":      {when: countsDated, do: dated},
		"one with a date comes between the counts":                    {when: countsDated, do: func(f *formservice.Form) { insert(f, 70, "2026-01-02 12:00:00") }},
		"one with a date comes between the counts, and two have none": {more: 1, when: countsDated, do: func(f *formservice.Form) { insert(f, 70, "2026-01-02 12:00:00") }},
		"one with a date comes after all were counted, before the range is": {
			when: after(countsAll, countsRange), do: func(f *formservice.Form) { insert(f, 70, "2026-01-02 12:00:00") },
		},
		"some come and one goes while they are read": {
			when: func(r formservice.Request) bool { return readsUndated(r) && !strings.Contains(r.Query, "fs_limit") },
			do: func(f *formservice.Form) {
				f.Delete(50)
				insert(f, 60, "")
				insert(f, 61, "")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			form := fourDays()
			for id := range int64(c.more) {
				insert(form, 1000+id, "")
			}
			w := newWorld(t, form)
			w.service.Before = once(c.when, func() { c.do(form) })
			def := w.definition(fileAndDays()...)
			def.Source.Requests.Concurrency = 1
			w.run(def)
			w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
			if m := w.checkDataset("days", pipelinestest.Truth(form, nil)); m.Verified.Counted != m.Rows || m.Verified.Extracted != m.Rows || !m.Verified.Match {
				t.Errorf("verified %+v, rows %d", m.Verified, m.Rows)
			}
		})
	}
}

// TestOutputAdded: a dataset is added to a definition, and a run over a range reads an older
// part of the other one again, because a result moved out of it.
func TestOutputAdded(t *testing.T) {
	form := fourDays()
	w := newWorld(t, form)
	w.run(w.definition(days()))
	if err := form.Finish(1, extracttest.Wall("2026-01-04 12:00:00")); err != nil {
		t.Fatal(err)
	}
	def := w.daily(days(), months())
	def.Extract.From = extracttest.Wall("2026-01-04")
	w.run(def)
	w.checkDataset("days", pipelinestest.Truth(form, nil))
}

// TestResultsInWindowsThatCountsShowedEmpty inserts results, after the plan was
// made, into days that it left out.
func TestResultsInWindowsThatCountsShowedEmpty(t *testing.T) {
	for name, days := range map[string][]string{
		"one day":      {"2026-01-20"},
		"several days": {"2026-01-20", "2026-01-21", "2026-01-25", "2026-02-01", "2026-01-20"},
	} {
		for _, first := range []string{"2026-01-01 09:00:00", ""} {
			t.Run(name+" after "+first, func(t *testing.T) {
				var results []formservice.Result
				if first != "" { // else the whole range was empty when it was planned
					results = []formservice.Result{pipelinestest.Result(1, first, "a"), pipelinestest.Result(2, "2026-02-27 10:00:00", "b")}
				}
				form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Label: "Answer"}}, results)
				w := newWorld(t, form)
				w.service.Before = once(func(r formservice.Request) bool { return r.Transaction == formservice.TransactionResults }, func() {
					for i, day := range days {
						if _, err := form.Insert(pipelinestest.Result(int64(100+i), fmt.Sprintf("%s 0%d:00:00", day, i), "new")); err != nil {
							t.Error(err)
						}
					}
				})
				def := w.definition(append(fileAndDays(), definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth})...)
				def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-03-01")
				w.run(def)
				w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
				checkPartitions(t, w.checkDataset("days", pipelinestest.Truth(form, nil)))
				checkPartitions(t, w.checkDataset("months", pipelinestest.Truth(form, nil)))
			})
		}
	}
}

// TestCountThatNeverAgrees has a result that counts see and reading does not.
func TestCountThatNeverAgrees(t *testing.T) {
	for name, c := range map[string]struct {
		ghost   formservice.Result
		all     bool
		windows []extract.Window
		undated bool
	}{
		"in a window": {
			ghost:   pipelinestest.Result(77, "2026-01-02 12:00:00", "ghost"),
			windows: []extract.Window{{From: extracttest.Wall("2026-01-02"), To: extracttest.Wall("2026-01-03")}},
		},
		"without a date": {ghost: pipelinestest.Result(77, "", "ghost"), all: true, undated: true},
	} {
		t.Run(name, func(t *testing.T) {
			form := fourDays()
			w := newWorld(t, form)
			haunted := false
			w.service.Before = func(r formservice.Request) {
				switch {
				case !haunted:
				case r.Transaction == formservice.TransactionCount:
					_, _ = form.Insert(c.ghost) // it may be there
				default:
					form.Delete(c.ghost.ID)
				}
			}
			def := w.daily(fileAndDays()...)
			if c.all {
				def.Extract = definition.Extract{Verify: true}
			}
			w.run(def)
			before := tree(t, w.dir)
			haunted = true
			report, err := pipelines.Run(t.Context(), def, options())
			var v *reconcile.VerifyError
			if !errors.As(err, &v) {
				t.Fatalf("error %v", err)
			}
			if v.Undated != c.undated || v.Counted != v.Extracted+1 || len(v.Windows) != len(c.windows) || len(c.windows) > 0 && v.Windows[0] != c.windows[0] {
				t.Errorf("%+v", v)
			}
			if c.undated != strings.Contains(err.Error(), "without a date") || strings.Contains(err.Error(), "..") {
				t.Errorf("message %q", err)
			}
			if f := report.Forms[0]; f.Verified != nil || f.Error == "" || len(f.Outputs) == 0 || f.Outputs[0].Bytes == 0 || f.Reread != 3 || f.Requests.Count == 0 {
				t.Errorf("report %+v", f)
			}
			sameTree(t, before, tree(t, w.dir))
			w.checkTidy()
		})
	}
}
