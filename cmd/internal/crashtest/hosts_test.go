package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// fleet is an account of many forms, which several processes read side by side. Their state lies
// on S3, and they keep to one budget.
type fleet struct {
	*world
	url    string // of the service
	forms  []*formservice.Form
	budget int // requests of a minute
	each   int // requests of a process at once

	mu      sync.Mutex
	came    []time.Time // when each request for results or counts came
	at      map[int]func()
	answers time.Duration
}

func newFleet(t *testing.T, forms, results, budget int, answers time.Duration) *fleet {
	t.Helper()
	f := &fleet{world: &world{t: t, dir: t.TempDir(), patience: 10 * time.Minute}, budget: budget, each: 6, answers: answers, at: map[int]func(){}}
	for i := range forms {
		f.forms = append(f.forms, formservice.Generate(formservice.GenerateOptions{
			Directory: fmt.Sprintf("form%03d", i), Results: results, Items: 4, Seed: uint64(i + 1), NoUndated: true, NoUnfinished: true, NoLate: true, //nolint:gosec // not negative
			From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		}))
	}
	service := &formservice.Server{Key: testKey, Forms: f.forms, Faults: formservice.Faults("").With("latency", answers)}
	service.Before = f.note
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// note takes down a request, and does what was to be done at it.
func (f *fleet) note(formservice.Request) {
	f.mu.Lock()
	f.came = append(f.came, time.Now())
	act := f.at[len(f.came)]
	f.mu.Unlock()
	if act != nil {
		go act()
	}
}

func (f *fleet) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.came)
}

// write writes the definition. state is its state, and perMinute its budget.
func (f *fleet) write(state string, perMinute int) {
	f.t.Helper()
	text := fmt.Sprintf(`version: 1
name: fleet
source: {base_url: %q, account: acme, timezone: UTC, requests: {concurrency: %d, retries: 8, per_minute: %d}}
forms: ["*"]
state: %s
extract: {from: 2026-01-01, mode: incremental}
load: [{path: "out/{form}/", format: ndjson, partition: month}]
`, f.url, f.each, perMinute, state)
	if err := os.WriteFile(f.definition(), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// names are the flags for every nth form from first on.
func (f *fleet) names(first, n int) (args []string) {
	for i := first; i < len(f.forms); i += n {
		args = append(args, "--form", f.forms[i].Directory)
	}
	return args
}

// whole checks that each form's dataset equals the truth.
func (f *fleet) whole() {
	f.t.Helper()
	for _, form := range f.forms {
		parts, err := filepath.Glob(filepath.Join(f.dir, "out", form.Directory, "*", "*.ndjson"))
		if err != nil {
			f.t.Fatal(err)
		}
		times := map[int64]int{}
		for _, part := range parts {
			data, err := os.ReadFile(part)
			if err != nil {
				f.t.Fatal(err)
			}
			for line := range bytes.Lines(data) {
				var row struct {
					ID int64 `json:"result_id"`
				}
				if err := json.Unmarshal(line, &row); err != nil {
					f.t.Fatal(err)
				}
				times[row.ID]++
			}
		}
		missing := 0
		form.Each(func(r formservice.Result) bool {
			if times[r.ID] != 1 {
				missing++
			}
			return true
		})
		if missing > 0 || len(times) != form.Len() {
			f.t.Errorf("%s: %d of %d results are not there once, and %d in all", form.Directory, missing, form.Len(), len(times))
		}
	}
}

// most is the largest number of requests of any 60 seconds.
func (f *fleet) most() (most int) {
	from := 0
	for i, at := range f.came {
		for at.Sub(f.came[from]) >= time.Minute {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// TestHostsShareForms has three processes read the forms of an account: one is killed with -9
// and begun again, one is stopped for a while, and the store of their state goes away and comes
// back. Each form equals the truth, and the budget is kept, used and not spent twice. In large
// the process is stopped until its leases have run out: it ends with 75, and is begun again
// for the forms that failed.
func TestHostsShareForms(t *testing.T) {
	needs.Slow(t)
	needs.RequireS3(t)
	forms, results, budget, answers, pause := 24, 400, 600, 50*time.Millisecond, 4*time.Second
	large := os.Getenv("FORMETL_TEST_LARGE") != ""
	if large { // four minutes, most of them waiting
		forms, results, budget, answers, pause = 200, 3000, 3000, 200*time.Millisecond, time.Minute
	}
	alone := newFleet(t, forms, results, 0, 0)
	alone.write("state", 0)
	if o := alone.do(alone.pipeline("")); o.code != 0 {
		t.Fatalf("alone it ends with %d:\n%s", o.code, o.stderr)
	}
	alone.whole()
	want := alone.requests()

	f := newFleet(t, forms, results, budget, answers)
	if large {
		f.each = 12 // two processes must be able to use the budget
	}
	server, err := startServer(filepath.Join(f.dir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	newPrefix(t, server.URL, "")
	f.write(fmt.Sprintf("{path: s3://%s/state/, s3: {endpoint: %q, path_style: true}}", bucket, server.URL), budget)

	processes := make([]*process, 3)
	for i := range processes {
		processes[i] = f.pipeline("", f.names(i, len(processes))...)
	}
	killed, stopped := processes[0], processes[1]
	again := f.pipeline("", f.names(0, len(processes))...)
	f.at = map[int]func(){
		want / 4: killed.kill,
		want / 3: func() {
			_ = stopped.Process.Signal(syscall.SIGSTOP)
			time.Sleep(pause)
			_ = stopped.Process.Signal(syscall.SIGCONT)
		},
		want / 2: func() {
			server.Stop()
			time.Sleep(2 * time.Second)
			if err := server.Restart(t.Context()); err != nil {
				t.Error(err)
			}
		},
	}
	began := time.Now()
	var ends sync.WaitGroup
	for i, p := range processes {
		ends.Go(func() {
			o := f.do(p)
			if p == killed && !o.killed {
				t.Errorf("process %d ended with %d before it was killed:\n%s", i, o.code, o.stderr)
			}
			if o.killed {
				o = f.do(again)
			}
			if large && p == stopped && o.code == 75 {
				var args []string
				for _, failed := range regexp.MustCompile(`msg="form failed".* form=(\w+)`).FindAllStringSubmatch(o.stderr, -1) {
					args = append(args, "--form", failed[1])
				}
				t.Logf("the leases of %d forms were lost", len(args)/2)
				o = f.do(f.pipeline("", args...))
			}
			if o.code != 0 {
				t.Errorf("process %d ends with %d:\n%s", i, o.code, o.stderr)
			}
		})
	}
	ends.Wait()
	took := time.Since(began)
	f.whole()
	sent := f.requests()
	t.Logf("%d requests, alone %d; %d in the busiest minute of %d allowed; %s", sent, want, f.most(), budget, took.Round(time.Second))
	if most := f.most(); most > budget {
		t.Errorf("%d requests were sent in a minute, and %d are allowed", most, budget)
	}
	// A process that is killed has requests of up to eight forms under way, and asks for their
	// forms, counts and changes again. In large the one whose leases ran out loses what it had
	// read for a few seconds, 60 requests each.
	slack := 48.0
	if large {
		slack += 5 * 60
	}
	if float64(sent) > 1.03*float64(want)+slack {
		t.Errorf("%d requests were sent, alone it takes %d", sent, want)
	}
	// While all work, the budget of each minute is used but for a tenth.
	minutes := int(math.Floor(f.came[len(f.came)-1].Sub(f.came[0]).Minutes()))
	for m := range minutes {
		from := f.came[0].Add(time.Duration(m) * time.Minute)
		n := len(slices.DeleteFunc(slices.Clone(f.came), func(at time.Time) bool { return at.Before(from) || !at.Before(from.Add(time.Minute)) }))
		if float64(n) < 0.9*float64(budget) {
			t.Errorf("in minute %d, %d requests were sent of %d", m, n, budget)
		}
	}
}
