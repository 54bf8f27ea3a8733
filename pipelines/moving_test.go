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

// TestResultsThatMoveWhileTheyAreRead changes the form at an exact place of a
// run over windows of a day, read one after the other.
func TestResultsThatMoveWhileTheyAreRead(t *testing.T) {
	counts := func(r formservice.Request) bool { return r.Transaction == formservice.TransactionCount }
	type change struct {
		name   string
		when   func(formservice.Request) bool
		do     func(*testing.T, *formservice.Form)
		reread bool
	}
	finish := func(id int64, when string) func(*testing.T, *formservice.Form) {
		return func(t *testing.T, f *formservice.Form) {
			if err := f.Finish(id, extracttest.Wall(when)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range []change{
		{"from a window that was read to one that was not", reads("2026-01-03"), finish(1, "2026-01-03 12:00:00"), true},
		{"from a window that was not read to one that was", reads("2026-01-03"), finish(3, "2026-01-01 12:00:00"), true},
		{"to a window that is read next", reads("2026-01-02"), finish(5, "2026-01-02 12:00:00"), true},
		{"within its window before it is read", reads("2026-01-03"), finish(3, "2026-01-03 12:00:00"), false},
		{"out of the range", reads("2026-01-03"), finish(1, "2026-03-01 12:00:00"), true},
		{"out of the range before it is read", reads("2026-01-03"), finish(3, "2026-03-01 12:00:00"), false},
		{"into the range", reads("2026-01-03"), finish(10, "2026-01-01 12:00:00"), true},
		{"deleted", reads("2026-01-03"), func(_ *testing.T, f *formservice.Form) { f.Delete(1) }, true},
		{"inserted", reads("2026-01-03"), func(t *testing.T, f *formservice.Form) {
			if _, err := f.Insert(pipelinestest.Result(99, "2026-01-02 23:59:59", "late")); err != nil {
				t.Error(err)
			}
		}, true},
		{"a swap that leaves all counts", reads("2026-01-03"), func(t *testing.T, f *formservice.Form) {
			finish(1, "2026-01-03 12:00:00")(t, f)
			finish(3, "2026-01-04 12:00:00")(t, f)
			finish(8, "2026-01-01 12:00:00")(t, f)
		}, true},
		{"while the run is verified", func() func(formservice.Request) bool {
			n := 0
			return func(r formservice.Request) bool {
				if counts(r) {
					n++
				}
				return n == 2
			}
		}(), finish(1, "2026-01-04 12:00:00"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			form := fourDays()
			w := newWorld(t, form)
			w.service.Before = once(c.when, func() { c.do(t, form) })
			report := w.run(w.daily(fileAndDays()...))
			ids := map[int64]bool{}
			for _, row := range readNDJSON(t, w.path("form1.ndjson")) {
				ids[int64(row["result_id"].(float64))] = true
			}
			if c.name == "while the run is verified" { // it had both states during the run
				if len(ids) != 8 {
					t.Errorf("%d results, want 8", len(ids))
				}
				return
			}
			w.checkFile("form1.ndjson", pipelinestest.Truth(form, inJanuary))
			w.checkDataset("days", pipelinestest.Truth(form, inJanuary))
			if got := report.Forms[0].Reread > 0; got != c.reread {
				t.Errorf("%d windows were read again", report.Forms[0].Reread)
			}
		})
	}
}

// TestUndatedResultGetsItsDate finishes an undated result after it was read as
// one: its window is read again, and then the undated are.
func TestUndatedResultGetsItsDate(t *testing.T) {
	for name, mixed := range map[string]bool{"all undated": false, "among others": true} {
		t.Run(name, func(t *testing.T) {
			form := fourDays()
			if !mixed { // ids of undated results alone in their range
				for id := int64(1000); id < 1400; id++ {
					if _, err := form.Insert(pipelinestest.Result(id, "", "x")); err != nil {
						t.Fatal(err)
					}
				}
			}
			w := newWorld(t, form)
			read := false
			w.service.Before = once(func(r formservice.Request) bool {
				if r.Transaction == formservice.TransactionResults && !strings.Contains(r.Query, "_date=") {
					read = true
				}
				return read && r.Transaction == formservice.TransactionCount && strings.Contains(r.Query, "fs_max_date")
			}, func() {
				if err := form.Finish(50, extracttest.Wall("2026-01-02 12:00:00")); err != nil {
					t.Error(err)
				}
			})
			def := w.definition(fileAndDays()...)
			def.Source.Requests.Concurrency = 1
			w.run(def)
			w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
			m := w.checkDataset("days", pipelinestest.Truth(form, nil))
			if m.Verified.Counted != m.Rows || m.Verified.Extracted != m.Rows || !m.Verified.Match {
				t.Errorf("verified %+v, rows %d", m.Verified, m.Rows)
			}
		})
	}
}

// TestLastUndatedResultGetsItsDate after the range was counted, and before the dated results
// are: none is without a date then, and the range's count is not true any more.
func TestLastUndatedResultGetsItsDate(t *testing.T) {
	form := fourDays()
	w := newWorld(t, form)
	w.service.Before = once(func(r formservice.Request) bool {
		return r.Transaction == formservice.TransactionCount && strings.Contains(r.Query, "fs_min_date=1970")
	}, func() {
		if err := form.Finish(50, extracttest.Wall("2026-01-02 12:00:00")); err != nil {
			t.Error(err)
		}
	})
	w.run(w.definition(fileAndDays()...))
	w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
	if m := w.checkDataset("days", pipelinestest.Truth(form, nil)); m.Verified.Counted != m.Rows || !m.Verified.Match {
		t.Errorf("verified %+v, rows %d", m.Verified, m.Rows)
	}
}

// TestResultComesBetweenCounts of all results and of those with a date: it does not hide the
// one without a date.
func TestResultComesBetweenCounts(t *testing.T) {
	for _, undated := range []int{1, 2} {
		form := fourDays()
		if undated == 2 {
			if _, err := form.Insert(formservice.Result{ID: 60, Items: []formservice.Answer{{ID: "1", Values: []string{"undated"}}}}); err != nil {
				t.Fatal(err)
			}
		}
		w := newWorld(t, form)
		w.service.Before = once(func(r formservice.Request) bool {
			return r.Transaction == formservice.TransactionCount && strings.Contains(r.Query, "fs_min_date=1970")
		}, func() {
			if _, err := form.Insert(pipelinestest.Result(70, "2026-01-02 12:00:00", "comes")); err != nil {
				t.Error(err)
			}
		})
		w.run(w.definition(fileAndDays()...))
		w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
		w.checkDataset("days", pipelinestest.Truth(form, nil))
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

// TestUndatedResultsAreVerified makes one undated result come and one go
// while they are read.
func TestUndatedResultsAreVerified(t *testing.T) {
	form := fourDays()
	w := newWorld(t, form)
	w.service.Before = once(func(r formservice.Request) bool {
		return r.Transaction == formservice.TransactionResults && !strings.Contains(r.Query, "_date=") && !strings.Contains(r.Query, "fs_limit")
	}, func() {
		form.Delete(50)
		for _, id := range []int64{60, 61} {
			if _, err := form.Insert(pipelinestest.Result(id, "", "came")); err != nil {
				t.Error(err)
			}
		}
	})
	w.run(w.definition(fileAndDays()...))
	w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
	if m := w.checkDataset("days", pipelinestest.Truth(form, nil)); m.Verified.Counted != 12 || m.Verified.Extracted != 12 {
		t.Errorf("verified %+v", m.Verified)
	}
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
			if f := report.Forms[0]; f.Verified != nil && !c.undated || f.Error == "" || len(f.Outputs) != 0 || f.Reread != 3 || f.Requests.Count == 0 {
				t.Errorf("report %+v", f)
			}
			sameTree(t, before, tree(t, w.dir))
			w.checkTidy()
		})
	}
}
