package workertest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/servers"
)

// TestMustHold has three workers run 200 forms. One is killed with -9 in the middle, one is
// paused for longer than Temporal waits for it, and Temporal's server is killed and started
// again. Every form equals the truth, the account's limit is never passed, and nothing is
// read twice as a whole. In large each form has 3,000 results, an answer takes 200 ms, and the
// store of the state is restarted too.
func TestMustHold(t *testing.T) {
	need(t)
	needs.Long(t)
	large := os.Getenv("FORMETL_TEST_LARGE") != "" // five minutes
	limit, answers, days := 1200, 15*time.Millisecond, 10
	s := settings{concurrency: 4, extract: "from: 2026-01-01, to: 2026-01-11, window: 1d"}
	if large {
		limit, answers, days = 3000, 200*time.Millisecond, 31
		s = settings{concurrency: 6, extract: "from: 2026-01-01, mode: incremental"}
	}
	s.perMinute = limit
	forms := make([]*formservice.Form, 0, 200)
	for i := range 200 {
		each := 1 + i%3
		if large {
			each = 97
		} else if i%20 == 7 {
			each = 120
		}
		forms = append(forms, january(fmt.Sprintf("form%03d", i), each))
	}
	w := newWorld(t, s, forms...)
	server, err := servers.StartTemporal(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	w.temporal = server.Address

	alone := *w
	alone.dir, alone.name = t.TempDir(), w.name+"-alone"
	alone.write(strings.NewReplacer(w.name, alone.name, fmt.Sprintf("per_minute: %d", limit), "per_minute: 0").Replace(w.text()))
	if code := alone.formetl("run", alone.definition()).code(); code != 0 {
		t.Fatalf("one process ends with %d", code)
	}
	one := len(w.service.Log())
	truth := firstDays(forms, days)
	alone.check(truth...)
	w.service.Reset()
	w.service.SetFaults(formservice.Faults("").With("latency", answers).With("per-minute", limit))

	killed, paused, third := w.worker(), w.worker(), w.worker()
	defer func() {
		if t.Failed() {
			t.Logf("the third worker:\n%s", third.output)
		}
	}()
	began := time.Now()
	flow := w.workflow("--wait")
	w.after(one/4, flow)
	killed.signal(syscall.SIGKILL)
	w.after(one*2/5, flow)
	paused.signal(syscall.SIGSTOP)
	w.after(one/2, flow)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if large {
		shared.buckets.Stop()
		time.Sleep(2 * time.Second)
		if err := shared.buckets.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.goesOn(flow) // the others need not wait for it
	paused.signal(syscall.SIGCONT)
	if code := flow.code(); code != 0 {
		t.Errorf("the workflow ends with %d:\n%s", code, tail(flow.output.String()))
	}
	took := time.Since(began)
	time.Sleep(3 * time.Second) // the paused worker would still send something
	w.check(truth...)
	sent := len(w.service.Log())
	t.Logf("%d requests in %s, one process sends %d: %.3f; at most %d at once", sent, took.Round(time.Second), one, float64(sent)/float64(one), w.service.Peak())
	for _, r := range w.service.Log() {
		if r.Fault == formservice.FaultBusy {
			t.Fatalf("the service refused request %d", r.Number)
		}
	}
	// A worker that is killed has requests of 16 forms under way, and each run asks for its form.
	if slack := 100.0; float64(sent) > 1.03*float64(one)+slack {
		t.Errorf("%d requests, and one process sends %d", sent, one)
	}
}

// goesOn waits until the workflow has ended. It fails if no request comes for two minutes.
func (w *world) goesOn(flow *program) {
	w.t.Helper()
	for sent := -1; ; sent = len(w.service.Log()) {
		select {
		case <-flow.ended:
			return
		case <-time.After(2 * time.Minute):
			if len(w.service.Log()) == sent {
				w.t.Error("the workflow does not go on without the paused worker")
				return
			}
		}
	}
}

// after waits until the service has answered so many requests.
func (w *world) after(requests int, unless *program) {
	w.t.Helper()
	for {
		if len(w.service.Log()) >= requests {
			return
		}
		select {
		case <-unless.ended:
			w.t.Fatalf("the workflow ended after %d requests:\n%s", len(w.service.Log()), tail(unless.output.String()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// firstDays are copies of forms with the results of the first days of January.
func firstDays(forms []*formservice.Form, days int) (first []*formservice.Form) {
	until := time.Date(2026, 1, 1+days, 0, 0, 0, 0, time.UTC).Format(formservice.WallTime)
	for _, form := range forms {
		var results []formservice.Result
		form.Each(func(r formservice.Result) bool {
			if at, _ := r.Meta("date_finish"); at < until {
				results = append(results, r.Clone())
			}
			return true
		})
		first = append(first, formservice.NewForm(form.Directory, nil, results))
	}
	return first
}
