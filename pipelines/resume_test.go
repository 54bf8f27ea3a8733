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
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// resumed is a world whose runs can be stopped at a point.
type resumed struct {
	*world
	// spool tells that the next run finds what the one before had spooled. Else
	// it is on another host, and finds the destinations only.
	spool bool
	o     pipelines.Options
	form  *formservice.Form
}

func newResumed(t *testing.T) *resumed {
	t.Helper()
	form := fourDays()
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

// stopAt runs until a point is reached for the n-th time, and stops there.
func (r *resumed) stopAt(def *definition.Definition, point string, n int) {
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
	if _, err := pipelines.Run(ctx, def, o); !errors.Is(err, errStop) {
		r.t.Fatalf("stopped at %s: %v", point, err)
	}
	if !r.spool {
		r.leaveHost()
	}
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

// TestGoOn stops a run after some of its parts were recorded: the next one
// reads the rest, in the earlier one's range and under its id.
func TestGoOn(t *testing.T) {
	r := newResumed(t)
	r.stopAt(r.daily(days()), "recorded", 2)
	if n := r.staged(); n != 2 {
		t.Errorf("%d parts are staged", n)
	}
	asked, report := r.asked(r.daily(days()))
	if !slices.Equal(asked, []string{"2026-01-03", "2026-01-04"}) {
		t.Errorf("asked again for %v", asked)
	}
	m := r.checkDataset("days", truth(r.form, inJanuary))
	f := report.Forms[0]
	if len(report.Forms) != 1 || f.Continued == "" || f.Kept != 2 || f.Rows != 8 || m.RunID != f.Continued || m.RunID == report.RunID || !m.Verified.Match {
		t.Errorf("report %+v, manifest of %s", f, m.RunID)
	}
}

// TestGoOnFromEveryPoint stops at every point, with one output and with two
// that are divided differently, and goes on until a run ends.
func TestGoOnFromEveryPoint(t *testing.T) {
	points := []string{
		"planned", "journal", "staged", "prepared", "recorded", "verified",
		string(load.StepCheck), string(load.StepIntent), string(load.StepUnmark), string(load.StepParts),
		string(load.StepManifest), string(load.StepMark), string(load.StepClose),
	}
	for name, outputs := range map[string][]definition.Output{
		"one": {days()}, "two": {days(), months()}, "with a file": {days(), {Path: "form1.csv", Format: "csv"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, point := range points {
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
				r.checkDataset("days", truth(r.form, inJanuary))
				if name == "two" {
					r.checkDataset("months", truth(r.form, inJanuary))
				}
				if t.Failed() {
					t.Fatalf("stopped at %s (%v); report %+v", point, err, report.Forms[0])
				}
			}
		})
	}
}

// TestGoOnBeyond: the clock went on, so the run's own range holds more.
func TestGoOnBeyond(t *testing.T) {
	r := newResumed(t)
	def := func() *definition.Definition {
		d := r.daily(days())
		d.Extract.To = extract.Window{}.To
		return d
	}
	r.stopAt(def(), "recorded", 3)
	for id, day := range map[int64]string{100: "2026-02-15 12:30:00", 101: "2026-02-17 09:00:00"} {
		if _, err := r.form.Insert(result(id, day, "late")); err != nil {
			t.Fatal(err)
		}
	}
	r.o.Now = zoned(t, r.world, "2026-02-18 12:00:00")
	asked, report := r.asked(def())
	if len(report.Forms) != 2 || report.Forms[0].Continued == "" || report.Forms[1].Continued != "" {
		t.Fatalf("reports %+v", report.Forms)
	}
	for _, day := range asked[:len(asked)-2] {
		if day < "2026-01-04" {
			t.Errorf("%s was asked for again", day)
		}
	}
	m := r.checkDataset("days", truth(r.form, func(x formservice.Result) bool { return date(x) != "" }))
	if m.RunID == report.Forms[0].Continued || m.Watermark.String() != "2026-02-15 11:59:00" || m.Range.From.String() != "2026-02-15 11:59:00" {
		t.Errorf("manifest of %s, range %v, watermark %s", m.RunID, m.Range, m.Watermark)
	}
}

// TestDiscard tells what keeps a run from going on: it reads everything then,
// and nothing of the earlier one is left.
func TestDiscard(t *testing.T) {
	all := []string{"2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"}
	for name, change := range map[string]func(*resumed, *definition.Definition){
		"--full":         func(r *resumed, _ *definition.Definition) { r.o.Full = true },
		"another format": func(_ *resumed, d *definition.Definition) { d.Outputs[0].Compression = "gzip" },
		"another name":   func(_ *resumed, d *definition.Definition) { d.Name = "other" },
		"another output": func(r *resumed, d *definition.Definition) {
			d.Outputs = append(d.Outputs, r.definition(months()).Outputs...)
		},
		"a file": func(r *resumed, d *definition.Definition) {
			d.Outputs = append(d.Outputs, r.definition(fileAndDays()[0]).Outputs...)
		},
		"a broken record": func(r *resumed, _ *definition.Definition) { r.damage("journal-", "{") },
		"a broken header": func(r *resumed, _ *definition.Definition) { r.damage("journal", `{"run_id": "../x"`) },
		"another base":    func(r *resumed, _ *definition.Definition) { r.writeManifest() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			r.stopAt(r.daily(days()), "recorded", 2)
			def := r.daily(days())
			change(r, def)
			r.service.Reset()
			report, err := pipelines.Run(t.Context(), def, r.o)
			if err != nil {
				t.Fatal(err)
			}
			if f := report.Forms[0]; f.Continued != "" || f.Requests.Results < int64(len(all)) {
				t.Errorf("report %+v", f)
			}
			if name == "another format" {
				return // its parts are not read here
			}
			if n := r.staged(); n != 0 && !strings.HasPrefix(name, "a broken") {
				t.Errorf("%d parts are still staged", n)
			}
			if err := os.RemoveAll(filepath.Join(r.path("days"), load.ControlFolder)); err != nil { // as clean does
				t.Fatal(err)
			}
			r.checkDataset("days", truth(r.form, inJanuary))
		})
	}
}

// damage overwrites the journal's objects that begin with a name.
func (r *resumed) damage(name, content string) {
	r.t.Helper()
	folder := filepath.Join(r.path("days"), load.ControlFolder)
	for _, file := range files(r.t, folder) {
		rel, err := filepath.Rel(folder, file)
		if err != nil {
			r.t.Fatal(err)
		}
		if rel == name || strings.HasSuffix(name, "-") && strings.HasPrefix(rel, name) {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// writeManifest leaves an empty manifest, as another run would.
func (r *resumed) writeManifest() {
	r.t.Helper()
	m := load.Manifest{Format: "ndjson", Form: "form1", RunID: "other", Names: "id", Parts: []load.Part{}}
	data, err := m.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.path("days"), load.ManifestName), data, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// TestGoOnAfterAPartWasLost: a rule of the store removed it.
func TestGoOnAfterAPartWasLost(t *testing.T) {
	r := newResumed(t)
	r.stopAt(r.daily(days()), "recorded", 3)
	lost := false
	for _, file := range files(t, filepath.Join(r.path("days"), load.ControlFolder)) {
		if strings.Contains(file, "staged-") && !lost {
			lost = true
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	asked, report := r.asked(r.daily(days()))
	if len(asked) != 2 || report.Forms[0].Kept != 2 {
		t.Errorf("asked for %v, kept %d", asked, report.Forms[0].Kept)
	}
	r.checkDataset("days", truth(r.form, inJanuary))
}

// TestGoOnWithChanges: a result that a kept window holds was finished
// again later, on a day that is read now; one that was deleted; a column that
// the kept parts do not have.
func TestGoOnWithChanges(t *testing.T) {
	later := at(t, "2026-01-04 12:00:00")
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
			r.stopAt(def(), "recorded", 5)
			if err := change(r.form); err != nil {
				t.Fatal(err)
			}
			_, report := r.asked(def())
			r.checkDataset("days", truth(r.form, inJanuary))
			r.checkDataset("copy", truth(r.form, inJanuary))
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

// TestGoOnWithOneOutput: one output was committed and the other was not.
func TestGoOnWithOneOutput(t *testing.T) {
	r := newResumed(t)
	r.stopAt(r.daily(days(), months()), "close", 1)
	r.checkDataset("days", truth(r.form, inJanuary))
	asked, report := r.asked(r.daily(days(), months()))
	if len(asked) != 0 || report.Forms[0].Kept != 4 || len(report.Forms[0].Outputs) != 2 {
		t.Errorf("asked for %v, report %+v", asked, report.Forms[0])
	}
	r.checkDataset("months", truth(r.form, inJanuary))
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
	for _, point := range []string{"recorded", "verified", "parts"} {
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
			if n := r.staged(); n == 0 {
				t.Error("nothing is staged any more")
			}
			r.asked(r.daily(days()))
			r.checkDataset("days", truth(r.form, inJanuary))
		})
	}
}

// small is a destination whose objects may have so many bytes.
type small struct {
	*local.Destination
	most int64
}

func (s small) MaxObjectBytes() int64 { return s.most }

// TestPartGoesOnInTheNext: what is too large for one object of the destination
// becomes several, each with its own ids.
func TestPartGoesOnInTheNext(t *testing.T) {
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
	m := w.checkDataset("lake", truth(form, nil))
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

// TestGoOnFormByForm: each form has its own journal.
func TestGoOnFormByForm(t *testing.T) {
	second := fourDays()
	second.Directory = "form2"
	w := newWorld(t, fourDays(), second)
	def := func() *definition.Definition {
		d := w.daily(definition.Output{Path: "{form}/", Format: "ndjson", Partition: definition.PartitionDay})
		d.Forms = []string{"form1", "form2"}
		return d
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o := options()
	n := 0
	o.At = func(p string) {
		if p == "recorded" {
			if n++; n == 6 {
				cancel(errStop)
			}
		}
	}
	if _, err := pipelines.Run(ctx, def(), o); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	o.At = nil
	report, err := pipelines.Run(t.Context(), def(), o)
	if err != nil {
		t.Fatal(err)
	}
	w.checkTidy()
	if len(report.Forms) != 2 || report.Forms[0].Continued != "" || report.Forms[1].Kept < 2 {
		t.Errorf("reports %+v, %+v", report.Forms[0], report.Forms[1])
	}
	for _, name := range []string{"form1", "form2"} {
		w.checkDataset(name, truth(second, inJanuary))
	}
}

// TestManyStops: however often a run is stopped, in the end all is there once
// and hardly anything was asked for twice.
func TestManyStops(t *testing.T) {
	results := make([]formservice.Result, 0, 1500)
	for i := range int64(1500) {
		results = append(results, result(i+1, fmt.Sprintf("2026-01-%02d 10:00:00", i%30+1), "x"))
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Label: "Answer"}}, results)
	w := newWorld(t, form)
	def := func() *definition.Definition {
		d := w.daily(days())
		d.Extract.To = at(t, "2026-02-01")
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
			if p == "recorded" {
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
	w.checkDataset("days", truth(form, nil))
	if n := len(w.service.Log()); n > 30+7*4+12 {
		t.Errorf("%d requests for 30 pages", n)
	}
}
