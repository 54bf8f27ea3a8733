package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// resumed is a world whose runs can be stopped at a point.
type resumed struct {
	*world
	o    pipelines.Options
	form *formservice.Form
}

func newResumed(t *testing.T) *resumed { return newResumedOf(t, fourDays()) }

func newResumedOf(t *testing.T, form *formservice.Form) *resumed {
	t.Helper()
	w := newWorld(t, form)
	o := options()
	o.Now = zoned(t, w, "2026-02-15 12:00:00")
	return &resumed{world: w, o: o, form: form}
}

func days() definition.Output {
	return definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay}
}

func months() definition.Output {
	return definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth}
}

// stopAt runs until a point is reached for the n-th time, and stops there. It
// gives the report of the run that was stopped.
func (r *resumed) stopAt(def *definition.Definition, point string, n int) *pipelines.Report {
	r.t.Helper()
	ctx, cancel := context.WithCancelCause(r.t.Context())
	defer cancel(nil)
	o := r.o
	var mu sync.Mutex
	o.At = func(p string) {
		mu.Lock()
		defer mu.Unlock()
		if p == point {
			if n--; n == 0 {
				cancel(errStop)
			}
		}
	}
	report, err := pipelines.Run(ctx, def, o)
	if !errors.Is(err, errStop) {
		r.t.Fatalf("stopped at %s: %v", point, err)
	}
	return report
}

// leaveHost removes what only a run on the same host finds.
func (w *world) leaveHost() {
	w.t.Helper()
	if err := os.RemoveAll(w.path("state")); err != nil {
		w.t.Fatal(err)
	}
}

// asked runs to the end and gives the days that were asked for results, and
// the report.
func (r *resumed) asked(def *definition.Definition) ([]string, *pipelines.Report) {
	r.t.Helper()
	days, report := r.askedUntidy(def)
	r.checkTidy()
	return days, report
}

// askedUntidy is asked, where others left something.
func (r *resumed) askedUntidy(def *definition.Definition) ([]string, *pipelines.Report) {
	r.t.Helper()
	r.service.Reset()
	report, err := pipelines.Run(r.t.Context(), def, r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	var days []string
	for _, request := range r.service.Log() {
		if strings.Contains(request.Query, "fs_min_id=") {
			continue // the tail of a day that was read
		}
		if _, from, ok := strings.Cut(request.Query, "fs_min_date="); ok && request.Transaction == formservice.TransactionResults {
			days = append(days, from[:len("2026-01-01")])
		}
	}
	slices.Sort(days)
	return slices.Compact(days), report
}

// staged counts the staged objects of the dataset "days".
func (r *resumed) staged() int {
	r.t.Helper()
	found := 0
	err := filepath.WalkDir(filepath.Join(r.path("days"), load.ControlFolder), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), "staged-") {
			found++
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// checkpoints are the files of the checkpoints in the state folder that match a
// pattern.
func (w *world) checkpoints(pattern string) []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.path("state/checkpoint"), "*", pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// noCheckpoint fails if anything of a checkpoint is left.
func (w *world) noCheckpoint() {
	w.t.Helper()
	if left, err := os.ReadDir(w.path("state/checkpoint")); len(left) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Errorf("the checkpoint holds %v, %v", left, err)
	}
}

// TestResume stops a run after some of its windows were read: the next one
// reads the rest, in its own range and under its own id.
func TestResume(t *testing.T) {
	r := newResumed(t)
	stopped := r.stopAt(r.daily(days()), "read", 2)
	if n := r.staged(); n != 0 {
		t.Errorf("%d parts are staged before everything is read", n)
	}
	if kept := stopped.Forms[0].ResultsKept; kept == nil || *kept != 4 {
		t.Errorf("the report of the run that was stopped says that %v results are kept", kept)
	}
	asked, report := r.asked(r.daily(days()))
	if !slices.Equal(asked, []string{"2026-01-03", "2026-01-04"}) {
		t.Errorf("asked again for %v", asked)
	}
	m := r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
	f := report.Forms[0]
	if len(report.Forms) != 1 || f.Continued != stopped.RunID || f.Kept != 2 || f.Rows != 8 || m.RunID != report.RunID || !m.Verified.Match {
		t.Errorf("report %+v, manifest of %s", f, m.RunID)
	}
}

// TestResumeFromEveryPoint stops at every point, with one output and with two
// that are divided differently, and resumes until a run ends.
func TestResumeFromEveryPoint(t *testing.T) {
	points := []string{
		"planned", "piece", "read", "verified", "snapshot", "staged", "prepared", "codebook",
		string(load.StepCheck), string(load.StepBeside), string(load.StepIntent), string(load.StepUnmark), string(load.StepParts),
		string(load.StepManifest), string(load.StepMark), string(load.StepClose),
	}
	for name, outputs := range map[string][]definition.Output{
		"one": {days()}, "two": {days(), months()}, "with a file": {days(), {Path: "form1.csv", Format: "csv"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, point := range needs.Sample(points, 6) {
				r := newResumed(t)
				def := func() *definition.Definition { return r.daily(slices.Clone(outputs)...) }
				ctx, cancel := context.WithCancelCause(t.Context())
				o := r.o
				o.At = func(p string) {
					if p == point {
						cancel(errStop)
					}
				}
				_, err := pipelines.Run(ctx, def(), o)
				cancel(nil)
				_, report := r.asked(def())
				r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
				if name == "two" {
					r.checkDataset("months", pipelinestest.Truth(r.form, inJanuary))
				}
				if t.Failed() {
					t.Fatalf("stopped at %s (%v); report %+v", point, err, report.Forms[0])
				}
			}
		})
	}
}

// TestResumeBeyond: the clock went on, so the run's own range holds more.
func TestResumeBeyond(t *testing.T) {
	r := newResumed(t)
	def := func() *definition.Definition {
		d := r.daily(days())
		d.Extract.To = extract.Window{}.To
		return d
	}
	stopped := r.stopAt(def(), "read", 3)
	for id, day := range map[int64]string{100: "2026-02-15 12:30:00", 101: "2026-02-17 09:00:00"} {
		if _, err := r.form.Insert(pipelinestest.Result(id, day, "late")); err != nil {
			t.Fatal(err)
		}
	}
	r.o.Now = zoned(t, r.world, "2026-02-18 12:00:00")
	asked, report := r.asked(def())
	f := report.Forms[0]
	if len(report.Forms) != 1 || f.Continued != stopped.RunID || f.Kept != 3 || f.Range.To.String() != "2026-02-18 11:59:00" {
		t.Fatalf("reports %+v", report.Forms)
	}
	if len(asked) == 0 || asked[0] < "2026-01-04" {
		t.Errorf("asked for %v", asked)
	}
	m := r.checkDataset("days", pipelinestest.Truth(r.form, dated))
	if m.RunID != report.RunID || m.Watermark.String() != "2026-02-15 11:59:00" || m.Range.From.String() != "2026-01-01 00:00:00" {
		t.Errorf("manifest of %s, range %v, watermark %s", m.RunID, m.Range, m.Watermark)
	}
}

// TestCheckpointOfADataset tells what becomes of a dataset's checkpoint where
// something else has changed: what is of no use is read again, and nothing of
// the earlier run is left.
func TestCheckpointOfADataset(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*resumed, *definition.Definition)
		kept   int
		stays  bool // it is another definition's
	}{
		"--full":       {change: func(r *resumed, _ *definition.Definition) { r.o.Full = true }},
		"compression":  {change: func(_ *resumed, d *definition.Definition) { d.Outputs[0].Compression = "gzip" }, kept: 2},
		"a partition":  {change: func(_ *resumed, d *definition.Definition) { d.Outputs[0].Partition = definition.PartitionMonth }, kept: 2},
		"another name": {change: func(_ *resumed, d *definition.Definition) { d.Name = "other" }, stays: true},
		"another file": {change: func(r *resumed, d *definition.Definition) { d.File = r.path("other.yaml") }, kept: 2},
		"another output": {change: func(r *resumed, d *definition.Definition) {
			d.Outputs = append(d.Outputs, r.definition(months()).Outputs...)
		}, stays: true},
		"a file": {change: func(r *resumed, d *definition.Definition) {
			d.Outputs = append(d.Outputs, r.definition(fileAndDays()[0]).Outputs...)
		}, stays: true},
		"a broken record": {change: func(r *resumed, _ *definition.Definition) { r.overwrite("0000000-record", "{") }, kept: 1},
		"broken records":  {change: func(r *resumed, _ *definition.Definition) { r.overwrite("*-record", "{") }},
		"a broken header": {change: func(r *resumed, _ *definition.Definition) { r.overwrite("header", `{"run_id": "../x"`) }},
		"another base":    {change: func(r *resumed, _ *definition.Definition) { r.writeManifest() }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			r.stopAt(r.daily(days()), "read", 2)
			def := r.daily(days())
			c.change(r, def)
			r.service.Reset()
			report, err := pipelines.Run(t.Context(), def, r.o)
			if err != nil {
				t.Fatal(err)
			}
			if f := report.Forms[0]; f.Kept != c.kept || (f.Continued != "") != (c.kept > 0) || f.Requests.Results < int64(4-c.kept) {
				t.Errorf("report %+v", f)
			}
			if c.stays {
				if n := len(r.checkpoints("header")); n != 1 {
					t.Errorf("%d checkpoints are left", n)
				}
				r.leaveHost()
			}
			r.checkTidy()
			if name != "compression" { // its parts are not read here
				r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
			}
		})
	}
}

// overwrite replaces the checkpoint's files that match a pattern.
func (r *resumed) overwrite(pattern, content string) {
	r.t.Helper()
	found := r.checkpoints(pattern)
	if len(found) == 0 {
		r.t.Fatalf("no %s", pattern)
	}
	for _, file := range found {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// writeManifest leaves an empty manifest, as another run would.
func (r *resumed) writeManifest() {
	r.t.Helper()
	source := r.daily(days()).Source
	m := load.Manifest{
		Format: "ndjson", Form: "form1", RunID: "other", Names: "id", Parts: []load.Part{},
		Source: load.Source{Account: source.Account, Timezone: source.Zone.String()},
	}
	data, err := m.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.path("days"), load.ManifestName), data, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// TestResumeAfterRowsWereLost: what a piece's record promises is gone, so its
// window is read again.
func TestResumeAfterRowsWereLost(t *testing.T) {
	r := newResumed(t)
	r.stopAt(r.daily(days()), "read", 3)
	if err := os.Remove(r.checkpoints("*-rows")[1]); err != nil {
		t.Fatal(err)
	}
	asked, report := r.asked(r.daily(days()))
	if !slices.Equal(asked, []string{"2026-01-02", "2026-01-04"}) || report.Forms[0].Kept != 2 {
		t.Errorf("asked for %v, kept %d", asked, report.Forms[0].Kept)
	}
	r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
}

// TestResumeWithChanges: a result that a kept window holds was finished
// again later, on a day that is read now; one that was deleted; a column that
// the kept windows do not have.
func TestResumeWithChanges(t *testing.T) {
	later := extracttest.Wall("2026-01-04 12:00:00")
	for name, change := range map[string]func(*formservice.Form) error{
		"moved to a later day": func(f *formservice.Form) error { return f.Finish(1, later) },
		"deleted":              func(f *formservice.Form) error { f.Delete(2); return nil },
		"a late column": func(f *formservice.Form) error {
			late, _ := f.Get(8)
			late.Items = append(late.Items, formservice.Answer{ID: "7", Type: "text", Index: 7, Values: []string{"new"}})
			return f.Update(late)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			copied := days()
			copied.Path = "copy/"
			def := func() *definition.Definition { return r.daily(days(), copied) }
			r.stopAt(def(), "read", 2)
			if err := change(r.form); err != nil {
				t.Fatal(err)
			}
			_, report := r.asked(def())
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
			r.checkDataset("copy", pipelinestest.Truth(r.form, inJanuary))
			if report.Forms[0].Kept != 2 {
				t.Errorf("report %+v", report.Forms[0])
			}
		})
	}
}

// TestDataAtFaultKeepsNothing: what another run would meet again is no
// beginning for it.
func TestDataAtFaultKeepsNothing(t *testing.T) {
	r := newResumed(t)
	def := r.daily(days())
	def.Schema = &schemas.Schema{Name: "strict", Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		{Name: "n", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.Int64}},
	}, MaxRejects: 5}
	_, err := pipelines.Run(t.Context(), def, r.o)
	if e := new(reading.RejectsError); !errors.As(err, &e) {
		t.Fatal(err)
	}
	r.checkTidy()
}

// TestOneCommitFails: one output was committed and the other was not, before or
// after its commit was recorded. The next run reads again what both lack, and
// takes nothing over that is older than what was committed.
func TestOneCommitFails(t *testing.T) {
	for name, fails := range map[string]func(op, name string) bool{
		"staging":    func(op, _ string) bool { return op == "stage" },
		"recording":  func(op, name string) bool { return op == "put" && name == ".formetl/intent" },
		"publishing": func(op, name string) bool { return op == "put" && name == load.ManifestName },
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			o := watching(func(root, op, object string) error {
				if filepath.Clean(root) == r.path("months") && fails(op, object) {
					return errBoom
				}
				return nil
			})
			o.Now = r.o.Now
			report, err := pipelines.Run(t.Context(), r.daily(days(), months()), o)
			if !errors.Is(err, errBoom) || report.Forms[0].Outputs[0].Error != "" || report.Forms[0].Outputs[1].Error == "" {
				t.Fatalf("%v; report %+v", err, report.Forms[0])
			}
			if kept := report.Forms[0].ResultsKept; kept == nil || *kept != 0 {
				t.Errorf("%v results are said to be kept", kept)
			}
			r.noCheckpoint()
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
			if err := r.form.Update(pipelinestest.Result(2, "2026-01-02 11:11:11", "edited")); err != nil {
				t.Fatal(err)
			}
			asked, report := r.asked(r.daily(days(), months()))
			if len(asked) != 4 || report.Forms[0].Continued != "" || len(report.Forms[0].Outputs) != 2 {
				t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
			}
			for _, name := range []string{"days", "months"} {
				r.checkDataset(name, pipelinestest.Truth(r.form, inJanuary))
			}
		})
	}
}

// lostLease is a destination whose lease is lost when a part is staged.
type lostLease struct {
	*local.Destination
	lost chan struct{}
}

type lostLeaseOf struct {
	load.Lease
	lost chan struct{}
}

func (l lostLeaseOf) Lost() <-chan struct{} { return l.lost }

func (l *lostLease) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	lease, err := l.Destination.Acquire(ctx, scope, h)
	return lostLeaseOf{lease, l.lost}, err
}

// TestLostLease: the run stops soon, commits nothing, and leaves what it
// prepared to whoever has the lease now.
func TestLostLease(t *testing.T) {
	for _, point := range []string{"read", "verified", "prepared", "parts"} {
		t.Run(point, func(t *testing.T) {
			r := newResumed(t)
			lost := make(chan struct{})
			o := r.o
			o.Tables.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
				d, err := local.New(root)
				return &lostLease{d, lost}, err
			}
			var once sync.Once
			o.At = func(p string) {
				if p == point {
					once.Do(func() { close(lost) })
				}
			}
			_, err := pipelines.Run(t.Context(), r.daily(days()), o)
			if e := new(load.HeldError); !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if n := r.staged(); (point == "prepared" || point == "parts") != (n > 0) {
				t.Errorf("%d parts are staged", n)
			}
			_, report := r.askedUntidy(r.daily(days()))
			if kept := report.Forms[0].Kept; (point != "parts") != (kept > 0) {
				t.Errorf("%d windows were kept", kept)
			}
			r.cleaned()
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}

// small is a destination whose objects may have so many bytes.
type small struct {
	*local.Destination
	most int64
}

func (s small) MaxObjectBytes() int64 { return s.most }

// TestPartIsDivided: what is too large for one object of the destination
// becomes several, each with its own ids.
func TestPartIsDivided(t *testing.T) {
	form := generated(20_000)
	w := newWorld(t, form)
	o := options()
	o.Tables.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
		d, err := local.New(root)
		return small{d, 16 << 20}, err
	}
	def := func() *definition.Definition {
		return w.definition(definition.Output{Path: "lake/", Format: "ndjson"})
	}
	if _, err := pipelines.Run(t.Context(), def(), o); err != nil {
		t.Fatal(err)
	}
	w.checkTidy()
	m := w.checkDataset("lake", pipelinestest.Truth(form, nil))
	if len(m.Parts) != 3 {
		t.Fatalf("%d parts", len(m.Parts))
	}
	for i, p := range m.Parts {
		if key, err := load.ParsePartName(p.Path); err != nil || key.N != i && !key.Undated || p.Bytes > 16<<20 {
			t.Errorf("part %d is %s of %d bytes", i, p.Path, p.Bytes)
		}
		lowest, highest := int64(1<<62), int64(0)
		for _, row := range readNDJSON(t, filepath.Join(w.path("lake"), filepath.FromSlash(p.Path))) {
			id := int64(row["result_id"].(float64))
			lowest, highest = min(lowest, id), max(highest, id)
		}
		if p.MinID != lowest || p.MaxID != highest {
			t.Errorf("part %d holds %d to %d, the manifest says %d to %d", i, lowest, highest, p.MinID, p.MaxID)
		}
	}
	before := tree(t, w.path("lake"))
	if _, err := pipelines.Run(t.Context(), def(), o); err != nil {
		t.Fatal(err)
	}
	for name, data := range tree(t, w.path("lake")) {
		if strings.Contains(name, "part-") && before[name] != data {
			t.Errorf("a second run made %s anew", name)
		}
	}
}

// twoForms is a world of two forms alike, and a definition that takes both,
// each to a dataset of its own. The form is the second one.
func twoForms(t *testing.T) (*world, func() *definition.Definition, *formservice.Form) {
	t.Helper()
	second := fourDays()
	second.Directory = "form2"
	w := newWorld(t, fourDays(), second)
	return w, func() *definition.Definition {
		d := w.daily(definition.Output{Path: "{form}/", Format: "ndjson", Partition: definition.PartitionDay})
		d.Forms = []string{"form1", "form2"}
		return d
	}, second
}

// TestResumeFormByForm: each form has its own checkpoint.
func TestResumeFormByForm(t *testing.T) {
	w, def, second := twoForms(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o := options()
	var mu sync.Mutex
	n := 0
	o.At = func(p string) {
		mu.Lock()
		defer mu.Unlock()
		if p == "read" {
			if n++; n == 6 {
				cancel(errStop)
			}
		}
	}
	if _, err := pipelines.Run(ctx, def(), o); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	if n := len(w.checkpoints("header")); n == 0 || n > 2 {
		t.Errorf("%d checkpoints", n)
	}
	o.At = nil
	report, err := pipelines.Run(t.Context(), def(), o)
	if err != nil {
		t.Fatal(err)
	}
	w.checkTidy()
	if len(report.Forms) != 2 || report.Forms[0].Kept+report.Forms[1].Kept < 2 {
		t.Errorf("reports %+v, %+v", report.Forms[0], report.Forms[1])
	}
	for _, name := range []string{"form1", "form2"} {
		w.checkDataset(name, pipelinestest.Truth(second, inJanuary))
	}
}

// TestManyStops: however often a run is stopped, in the end all is there once
// and hardly anything was asked for twice.
func TestManyStops(t *testing.T) {
	results := make([]formservice.Result, 0, 1500)
	for i := range int64(1500) {
		results = append(results, pipelinestest.Result(i+1, fmt.Sprintf("2026-01-%02d 10:00:00", i%30+1), "x"))
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Label: "Answer"}}, results)
	w := newWorld(t, form)
	def := func() *definition.Definition {
		d := w.daily(days())
		d.Extract.To = extracttest.Wall("2026-02-01")
		d.Source.Requests.Concurrency = 4
		return d
	}
	for stop := 1; ; stop++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		o := options()
		var mu sync.Mutex
		left := 5
		o.At = func(p string) {
			mu.Lock()
			defer mu.Unlock()
			if p == "read" {
				if left--; left == 0 {
					cancel(errStop)
				}
			}
		}
		_, err := pipelines.Run(ctx, def(), o)
		cancel(nil)
		if err == nil {
			if stop < 4 {
				t.Errorf("it ended after %d stops", stop-1)
			}
			break
		}
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
	}
	w.checkTidy()
	w.checkDataset("days", pipelinestest.Truth(form, nil))
	if n := len(w.service.Log()); n > 30+7*4+12 {
		t.Errorf("%d requests for 30 pages", n)
	}
}
