package pipelines_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reconcile"
)

func dated(r formservice.Result) bool { return pipelinestest.Date(r) != "" }

// TestLostCommitKeepsNothing, and does not say that it does.
func TestLostCommitKeepsNothing(t *testing.T) {
	r := newResumed(t)
	var log bytes.Buffer
	o := r.o
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.At = func(p string) {
		if p == string(load.StepCheck) {
			r.put("days/"+load.ManifestName, "another run's")
		}
	}
	_, err := pipelines.Run(t.Context(), r.daily(days()), o)
	if !errors.Is(err, load.ErrConflict) || strings.Contains(log.String(), "kept") {
		t.Errorf("%v\n%s", err, &log)
	}
	r.checkTidy()
}

// TestDamagedHeaderIsTold: with the header all is lost that was read.
func TestDamagedHeaderIsTold(t *testing.T) {
	r := newDeclared(t)
	r.stopAt(r.daily(file()), "read", 2)
	r.overwrite("header", "garbage")
	var log bytes.Buffer
	r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.asked(r.daily(file()))
	if !strings.Contains(log.String(), "its checkpoint is not used") {
		t.Errorf("the log says\n%s", &log)
	}
}

// TestUndatedByStart: between a run that was stopped and the next one, a day gets an
// unfinished result, which has a date of its start alone, and loses another. Its count agrees
// with what was read. The pass over the results without a date meets the new one there.
func TestUndatedByStart(t *testing.T) {
	form := fourDays()
	if _, err := form.Insert(formservice.Result{ID: 90, Items: []formservice.Answer{{ID: "1", Values: []string{"undated"}}}}); err != nil {
		t.Fatal(err)
	}
	r := newResumedOf(t, form)
	r.service.SetFaults("ignore-sort")
	def := func() *definition.Definition {
		d := r.definition(days())
		d.Source.Requests.Concurrency = 1
		return d
	}
	r.stopAt(def(), reconcile.PointVerified, 1)
	fresh := formservice.Result{ID: 91, Metas: []formservice.Meta{{ID: "result_status", Value: "Incomplete"}, {ID: "date_start", Value: "2026-01-02 15:00:00"}}}
	if _, err := form.Insert(fresh); err != nil {
		t.Fatal(err)
	}
	for _, old := range pipelinestest.Truth(form, nil) {
		if strings.HasPrefix(pipelinestest.Date(old), "2026-01-02") {
			form.Delete(old.ID)
			break
		}
	}
	r.asked(def())
	r.checkDataset("days", pipelinestest.Truth(form, nil))
}
