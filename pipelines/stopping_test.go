package pipelines_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

var errStop = errors.New("stopped by the test")

// TestStopAtEveryRequest stops a run at each of its requests, or lets the service fail for
// good from there on: nothing of it is left but its checkpoint, and what was there before is
// untouched.
func TestStopAtEveryRequest(t *testing.T) {
	needs.Slow(t)
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("the service fails: ", fails), func(t *testing.T) { stopAtEveryRequest(t, fails) })
	}
}

func stopAtEveryRequest(t *testing.T, fails bool) {
	form := fourDays()
	w := newWorld(t, form)
	def := func() *definition.Definition {
		d := w.definition(fileAndDays()...)
		d.Extract.Window = extract.Period{Days: 7}
		d.Source.Requests.Concurrency = 2
		if fails {
			d.Source.Requests.Retries = 0
		}
		return d
	}
	o := options()
	o.Now = zoned(t, w, "2026-02-15 12:00:00")
	var mu sync.Mutex // requests of a run that ended may still be answered
	var stop context.CancelCauseFunc
	var at int
	w.service.Decide = func(r formservice.Request) formservice.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case at == 0 || r.Number < at:
		case fails:
			return formservice.FaultTruncate
		case r.Number == at:
			stop(errStop)
		}
		return formservice.NoFault
	}
	run := func(n int) (*pipelines.Report, error) {
		w.service.Reset()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		mu.Lock()
		stop, at = cancel, n
		mu.Unlock()
		return pipelines.Run(ctx, def(), o)
	}
	if _, err := run(0); err != nil {
		t.Fatal(err)
	}
	form.Delete(1)
	for id := int64(100); id < 350; id++ {
		if _, err := form.Insert(pipelinestest.Result(id, "2026-01-03 12:00:00", "new")); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, w.dir)
	stops := 0
	for n := 1; ; n++ {
		report, err := run(n)
		if err == nil {
			break
		}
		stops++
		if fails != isA[*transport.AnswerError](err) || !fails && (!errors.Is(err, errStop) || strings.Contains(err.Error(), "window")) {
			t.Errorf("stop %d: %v", n, err)
		}
		if len(report.Forms) != 1 || report.Forms[0].Error == "" {
			t.Errorf("stop %d: report %+v", n, report)
		}
		w.leaveHost() // each stop is that of a whole run
		sameTree(t, before, tree(t, w.dir))
		w.checkTidy()
		if t.Failed() {
			t.FailNow()
		}
	}
	if stops < 15 {
		t.Errorf("the run was stopped %d times", stops)
	}
	w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
	w.checkDataset("days", pipelinestest.Truth(form, nil))
}

// TestStopDuringACommitFinishesIt, and those of the other outputs: all of them
// are recorded before the first is carried out.
func TestStopDuringACommitFinishesIt(t *testing.T) {
	form := fourDays()
	w := newWorld(t, form)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o := watching(func(_, op, name string) error {
		if op == "put" && strings.Contains(name, "intent") {
			cancel(errStop)
		}
		return nil
	})
	outputs := append(fileAndDays(), definition.Output{Path: "last.csv", Format: "csv"})
	_, err := pipelines.Run(ctx, w.daily(outputs[1], outputs[2]), o)
	if err != nil || ctx.Err() == nil {
		t.Errorf("error %v", err)
	}
	w.checkDataset("days", pipelinestest.Truth(form, inJanuary))
	if _, err := os.Stat(w.path("last.csv")); err != nil {
		t.Errorf("the other output was not written: %v", err)
	}
	w.checkTidy()
}

// broken is a standard output that somebody closed.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStandardOutput(t *testing.T) {
	form := fourDays()
	w := newWorld(t, form)
	def := w.daily(definition.Output{Path: "file.csv", Format: "csv"})
	def.Outputs = append(def.Outputs, definition.Output{Path: definition.StdoutPath, Format: "csv", Partition: definition.PartitionNone})
	var out bytes.Buffer
	o := options()
	o.Stdout = &out
	report := w.runBy(def, o)
	if data, err := os.ReadFile(w.path("file.csv")); err != nil || out.String() != string(data) || out.Len() == 0 {
		t.Errorf("%d bytes, the file has %d (%v)", out.Len(), len(data), err)
	}
	if r := report.Forms[0].Outputs[1]; r.Path != "-" || r.Format != "csv" || r.Rows != 8 || r.Bytes != int64(out.Len()) {
		t.Errorf("report %+v", r)
	}

	o.Stdout = broken{}
	_, err := pipelines.Run(t.Context(), def, o)
	var s *output.StdoutError
	if !errors.As(err, &s) || !errors.Is(err, io.ErrClosedPipe) || strings.Count(err.Error(), "standard output") != 1 {
		t.Errorf("error %v", err)
	}
	w.checkTidy()

	o.Stdout = nil // discards
	if _, err := pipelines.Run(t.Context(), def, o); err != nil {
		t.Error(err)
	}
	out.Reset()
	o.Stdout = &out
	w.service.Decide = func(r formservice.Request) formservice.Fault {
		if reads("2026-01-04")(r) {
			return formservice.FaultTruncate
		}
		return formservice.NoFault
	}
	if _, err := pipelines.Run(t.Context(), def, o); err == nil || out.Len() != 0 {
		t.Errorf("error %v, and %d bytes were written", err, out.Len())
	}
}

// TestProgress ends with all results, also where windows are read again.
func TestProgress(t *testing.T) {
	form := fourDays()
	w := newWorld(t, form)
	w.service.Before = once(reads("2026-01-03"), func() { _ = form.Finish(1, extracttest.Wall("2026-01-03 12:00:00")) })
	var mu sync.Mutex
	var last pipelines.Progress
	done := 0
	o := options()
	o.Progress = func(p pipelines.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Rows < 0 || p.Form != "form1" || p.Requests < last.Requests {
			t.Errorf("progress %+v after %+v", p, last)
		}
		if last = p; p.Done {
			done++
		}
	}
	def := w.definition(fileAndDays()...)
	def.Extract.Window = extract.Period{Days: 1}
	def.Source.Requests.Concurrency = 1
	w.runBy(def, o)
	if last.Rows != 11 || last.Expected != 11 || done != 1 || last.Requests != int64(len(w.service.Log())) {
		t.Errorf("the last is %+v, %d were done, %d requests", last, done, len(w.service.Log()))
	}
}
