package worker_test

import (
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestWorkflow runs two forms. A second workflow finds that little is to be done.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{concurrency: 4}, january("small", 3), january("large", 250))
	w.worker()
	flow := w.workflow("--wait")
	if code := flow.code(); code != 0 || !strings.Contains(flow.output.String(), "\tlarge\t7750\ts3://") {
		t.Fatalf("exit code %d:\n%s", code, flow.output)
	}
	w.check(w.forms...)
	if got, want := w.activities(), map[string]int{"List": 1, "Run": 2}; !maps.Equal(got, want) {
		t.Errorf("the activities are %v", got)
	}
	if code := w.workflow("--wait").code(); code != 0 {
		t.Errorf("again: exit code %d", code)
	}
	w.check(w.forms...)
	if code := w.formetl("state", "show", w.definition()).code(); code != 0 {
		t.Errorf("state show: exit code %d", code)
	}
	if code := w.formetl("verify", w.definition()).code(); code != 0 {
		t.Errorf("verify: exit code %d", code)
	}
	w.checkSecrets()
}

// slow is a world whose run takes seconds.
func slow(t *testing.T) *world {
	w := newWorld(t, settings{concurrency: 2}, january("form1", 150))
	w.service.SetFaults("latency=100ms")
	return w
}

// TestLease: a run and a workflow exclude each other. The run ends with 75; the workflow
// waits for the run.
func TestLease(t *testing.T) {
	t.Run("the workflow was first", func(t *testing.T) {
		t.Parallel()
		w := slow(t)
		w.worker()
		flow := w.workflow("--wait")
		w.after(15, flow)
		run := w.formetl("run", w.definition())
		if code := run.code(); code != 75 || !strings.Contains(run.output.String(), "of pipeline "+w.name) {
			t.Errorf("the run ends with %d:\n%s", code, run.output)
		}
		second := w.workflow()
		if code := second.code(); code != 75 {
			t.Errorf("a second workflow ends with %d", code)
		}
		if code := flow.code(); code != 0 {
			t.Errorf("the workflow ends with %d", code)
		}
		w.check(w.forms...)
		if code := w.formetl("run", w.definition()).code(); code != 0 {
			t.Errorf("after the workflow the run ends with %d", code)
		}
	})
	t.Run("the run was first", func(t *testing.T) {
		t.Parallel()
		needs.Long(t) // the workflow waits for 20 seconds
		w := slow(t)
		w.worker()
		run := w.formetl("run", w.definition())
		w.after(15, run)
		flow := w.workflow("--wait")
		if code := run.code(); code != 0 {
			t.Errorf("the run ends with %d", code)
		}
		if code := flow.code(); code != 0 {
			t.Errorf("the workflow ends with %d", code)
		}
		w.check(w.forms...)
	})
}

// TestCancel cancels a workflow in the middle. It ends soon, gives the lease back, leaves
// nothing staged, and what it read is not asked for again.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := slow(t)
	w.service.Before = func(r formservice.Request) {
		if r.Number == 40 { // the rest takes longer than a worker needs to hear that it is cancelled
			w.service.SetFaults("latency=3s")
		}
	}
	w.worker()
	flow := w.workflow("--wait")
	w.after(40, flow)
	if err := w.client().CancelWorkflow(t.Context(), "formetl/"+w.name, ""); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if code := flow.code(); code != 130 || time.Since(began) > 30*time.Second {
		t.Errorf("exit code %d after %s:\n%s", code, time.Since(began), flow.output)
	}
	w.service.SetFaults("")
	read := w.service.Counts()["results"]
	run := w.formetl("run", w.definition())
	if code := run.code(); code != 0 {
		t.Errorf("the next run ends with %d", code)
	}
	w.check(w.forms...)
	if all := w.service.Counts()["results"]; all > 62+12 || read < 30 {
		t.Errorf("%d requests for results, %d of them before; the form has 62 pages", all, read)
	}
	if clean := w.formetl("clean", w.definition(), "--dry-run"); clean.code() != 0 || !strings.Contains(clean.output.String(), "nothing to clean") {
		t.Errorf("something is left:\n%s", clean.output)
	}
}

// TestWorkerIsStopped stops one of two workers in order. The other one goes on at once.
func TestWorkerIsStopped(t *testing.T) {
	t.Parallel()
	w := slow(t)
	stopped := w.worker()
	time.Sleep(time.Second)
	w.worker()
	flow := w.workflow("--wait")
	w.after(20, flow)
	stopped.signal(syscall.SIGTERM)
	if code := stopped.code(); code != 0 {
		t.Errorf("the worker ends with %d", code)
	}
	if code := flow.code(); code != 0 {
		t.Errorf("the workflow ends with %d", code)
	}
	w.check(w.forms...)
	if all := w.service.Counts()["results"]; all > 62+16 {
		t.Errorf("%d requests for results; the form has 62 pages", all)
	}
}

// TestKilledAtEachPoint kills the only worker with -9 at a point of a run. Another one ends
// the run, and asks for little again.
func TestKilledAtEachPoint(t *testing.T) {
	points := []string{"planned", "read", "verified", "snapshot", "staged", "prepared", "intent", "unmark", "parts", "manifest", "mark", "codebook"}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			need(t)
			needs.Long(t)
			t.Parallel() // most of it is waiting for the heartbeat of the dead
			w := newWorld(t, settings{concurrency: 2}, january("form1", 150))
			dead := w.start(shared.worker, w.environment("FORMETL_FAULT="+point, "XDG_CACHE_HOME="+t.TempDir()), "run", "--task-queue", w.name, "--definitions", w.dir)
			flow := w.workflow("--wait")
			if code := dead.code(); code == 0 {
				t.Error("the worker was not killed")
			}
			w.worker()
			if code := flow.code(); code != 0 {
				t.Errorf("the workflow ends with %d", code)
			}
			w.check(w.forms...)
			if all := w.service.Counts()["results"]; all > 62+12 {
				t.Errorf("%d requests for results; the form has 62 pages", all)
			}
		})
	}
}

// TestFailures holds the exit codes of workflows that cannot succeed, and that none of them
// is tried for long.
func TestFailures(t *testing.T) {
	t.Run("the key is refused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, settings{concurrency: 2}, january("form1", 2))
		w.start(shared.worker, w.environment("FORMETL_API_KEY=another"), "run", "--task-queue", w.name, "--definitions", w.dir)
		if code := w.workflow("--wait").code(); code != 77 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("no such form", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, settings{concurrency: 2}, january("form1", 2))
		w.write(strings.Replace(w.text(), `forms: ["*"]`, "forms: [form1, form2]", 1))
		w.worker()
		if code := w.workflow("--wait").code(); code != 66 {
			t.Errorf("exit code %d", code)
		}
		w.check(w.forms...)
	})
	t.Run("the data are at fault", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, settings{concurrency: 2}, january("form1", 150))
		w.write(strings.Replace(w.text(), "type: string}", "type: int64, on_error: fail}", 1))
		w.worker()
		if p := w.workflow("--wait"); p.code() != 65 || strings.Count(p.output.String(), "form form1:") != 1 {
			t.Errorf("exit code %d:\n%s", p.code(), p.output)
		}
		w.checkSecrets()
	})
	t.Run("standard output", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, settings{concurrency: 2, load: `{path: "-", format: csv}`}, january("form1", 2))
		if code := w.workflow().code(); code != 78 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, settings{concurrency: 2}, january("form1", 2))
		w.temporal = "127.0.0.1:1"
		for _, more := range []string{"TEMPORAL_TLS=false", "TEMPORAL_API_KEY=" + canary} {
			p := w.start(shared.worker, w.environment(more), "start", filepath.Base(w.definition()), "--definitions", w.dir)
			if code := p.code(); code != 75 || !strings.Contains(p.output.String(), "127.0.0.1:1") {
				t.Errorf("exit code %d:\n%s", code, p.output)
			}
		}
	})
}
