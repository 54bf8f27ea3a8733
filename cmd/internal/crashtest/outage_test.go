package crashtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// A long form has so many windows of so many pages, as the issue has it, or one
// window of all of them.
const (
	longDays   = 60
	longPages  = 10
	longTwice  = 15 // percent of the requests that may be asked twice
	longRange  = "from: 2026-01-01, to: 2026-03-02, window: 1d"
	longWindow = "from: 2026-01-01, to: 2026-03-02, window: 12mo"
	fastPauses = "FORMETL_BACKOFF=1ms,5ms"
)

// newLongForm gives each of its days as many results as fill its pages.
func newLongForm() *formservice.Form {
	results := make([]formservice.Result, 0, longDays*longPages*100)
	for day := range longDays {
		for i := range 100 * longPages {
			id := int64(len(results) + 1)
			at := time.Date(2026, 1, 1+day, 0, 0, i, 0, time.UTC)
			results = append(results, formservice.Result{
				ID:    id,
				Metas: []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}},
				Items: []formservice.Answer{{ID: "1", Values: []string{fmt.Sprint("v", id)}}, {ID: "2", Values: []string{"1"}}},
			})
		}
	}
	form := formservice.NewForm("form1", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Value"},
		{ID: "2", Type: "text", Index: 2, Label: "Amount"},
	}, results)
	form.Metas = []string{"date_finish"}
	return form
}

// trouble happens to a service when it has answered so many requests for
// results.
type trouble struct {
	mu   sync.Mutex
	left int
	act  func()            // called once, at the request after those
	then formservice.Fault // of that request and all later ones
}

// come arms the trouble. Without anything to do and any fault there is none.
func (d *trouble) come(after int, act func(), then formservice.Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.act, d.then = after, act, then
}

func (d *trouble) over() { d.come(0, nil, formservice.NoFault) }

func (d *trouble) decide(r formservice.Request) formservice.Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left > 0 {
		if r.Transaction == formservice.TransactionResults {
			d.left--
		}
		return formservice.NoFault
	}
	if d.act != nil {
		d.act()
		d.act = nil
	}
	return d.then
}

// bill is what requests a service has answered.
type bill struct{ answered, twice int }

// paid counts the requests that were answered with results or counts, and
// those of them that had been answered so before.
func (w *world) paid() (b bill) {
	w.t.Helper()
	seen := map[string]bool{}
	for _, r := range w.service.Log() {
		if r.Status != 200 || r.Code != -1 || r.Fault != formservice.NoFault {
			continue
		}
		query := r.Transaction + "?" + r.Query
		if b.answered++; seen[query] {
			b.twice++
		}
		seen[query] = true
	}
	return b
}

func (b bill) String() string {
	return fmt.Sprintf("%d of %d requests were asked twice, %.1f %%", b.twice, b.answered, 100*float64(b.twice)/float64(b.answered))
}

// killedAfter runs the pipeline and kills it at a request for results.
func (w *world) killedAfter(d *trouble, requests int) {
	w.t.Helper()
	p := w.pipeline("")
	d.come(requests, p.kill, formservice.NoFault)
	o := w.do(p)
	d.over()
	if !o.killed {
		w.t.Fatalf("the run ended with %d before it was killed:\n%s", o.code, o.stderr)
	}
}

// stateInBucket lets the pipeline keep its state on S3, and returns its prefix.
func (w *world) stateInBucket() prefix {
	w.t.Helper()
	output := w.losing.(prefix)
	state := prefix{output.client, strings.TrimSuffix(output.path, "/") + "-state/"}
	w.state = fmt.Sprintf("{path: %q, s3: {endpoint: %q, path_style: true}}", state.address(), w.endpoint)
	define(w.output.columns, w)
	return state
}

// TestTwoKillsAndAnOutage holds what the issue asks for: two kills with -9 and
// an outage of exit 75 in between, each after about a third of the requests or
// of what was left of them, then a clean run, cost little that was paid before, also
// where the state lies on S3, for other hosts.
func TestTwoKillsAndAnOutage(t *testing.T) {
	needs.Slow(t)
	form := newLongForm()
	want := truth(form)
	run := func(t *testing.T, k kind, stateOnS3 bool, extract string, outputs ...output) {
		worlds, d := newWorldsOf(t, k, form, extract, outputs...), &trouble{}
		w := worlds[0]
		w.service.Decide, w.env = d.decide, []string{fastPauses}
		var state prefix
		if stateOnS3 {
			state = w.stateInBucket()
		}
		const third = longDays * longPages / 3
		w.killedAfter(d, third+5)
		began := time.Now()
		d.come(third-20, nil, formservice.FaultHTML)
		if o := w.do(w.pipeline("")); o.code != 75 {
			t.Errorf("the run ended with %d in an outage:\n%s", o.code, o.stderr)
		}
		t.Logf("the run with the outage took %s", time.Since(began).Round(time.Millisecond))
		w.killedAfter(d, third/2)
		w.run()
		b := w.paid()
		t.Log(b)
		if 100*b.twice > longTwice*b.answered {
			t.Errorf("%s, and no more than %d %% may be", b, longTwice)
		}
		for _, w := range worlds {
			if w.output.columns != "" { // readers know the names of those only
				w.whole(want)
			}
			w.clean()
		}
		if stateOnS3 {
			names, err := state.names(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "checkpoint/") }); len(names) > 0 {
				t.Errorf("in the state is left %v", names)
			}
			if left := w.checkpoints(); len(left) > 0 {
				t.Errorf("on the disk lies %v", left)
			}
		}
	}
	type shape struct {
		name      string
		stateOnS3 bool
		extract   string
		outputs   []output
	}
	everywhere := []shape{
		{"by day", false, longRange, []output{ndjsonDataset}},
		{"one window", false, longWindow, []output{wholeDataset}},
		{"a file and a dataset", false, longRange, []output{csvFile, ndjsonDataset}},
	}
	onS3 := append(slices.Clone(everywhere), []shape{
		{"state on S3, by day", true, longRange, []output{ndjsonDataset}},
		{"state on S3, one window", true, longWindow, []output{wholeDataset}},
		{"state on S3, a file", true, longRange, []output{csvFile}},
	}...)
	onDisk := append(slices.Clone(everywhere), []shape{
		{"inferred", false, longRange, []output{inferredDataset}},
		{"one part", false, longRange, []output{wholeDataset}},
		{"a file", false, longRange, []output{csvFile}},
		{"a file of one window", false, longWindow, []output{csvFile}},
		{"one window, inferred, a file and a dataset", false, longWindow, []output{inferredFile, inferredWhole}},
	}...)
	eachPlace(t, func(t *testing.T, k kind) {
		shapes := onDisk
		if k.s3 {
			shapes = onS3
		}
		for _, s := range needs.Sample(shapes, 3) {
			t.Run(s.name, func(t *testing.T) { run(t, k, s.stateOnS3, s.extract, s.outputs...) })
		}
	})
}

// checkpoints are what is left in the state folder of what runs had read.
func (w *world) checkpoints() []string {
	w.t.Helper()
	left, err := filepath.Glob(filepath.Join(w.dir, "state", "checkpoint", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return left
}
