package pipelines_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/maintain"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

var errBoom = errors.New("boom")

// asking is a watched destination that tells also what is asked of it.
type asking struct{ *watched }

func (a asking) Get(ctx context.Context, name string) ([]byte, string, error) {
	if err := a.before("get", name); err != nil {
		return nil, "", err
	}
	return a.watched.Get(ctx, name)
}

func (a asking) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if err := a.before("list", prefix); err != nil {
		return nil, err
	}
	return a.watched.List(ctx, prefix)
}

func (a asking) Check(ctx context.Context, p load.Prepared) error {
	if err := a.before("check", p.Name); err != nil {
		return err
	}
	return a.watched.Check(ctx, p)
}

func (a asking) Abort(ctx context.Context, p load.Prepared) error {
	if err := a.before("abort", p.Name); err != nil {
		return err
	}
	return a.watched.Abort(ctx, p)
}

func (a asking) Remove(ctx context.Context, l load.Leftover) error {
	if err := a.before("remove", l.Name); err != nil {
		return err
	}
	return a.watched.Remove(ctx, l)
}

// failing are options whose destinations fail at an operation on a name that
// the pattern matches.
func (r *resumed) failing(op, pattern string) pipelines.Options {
	o := r.o
	o.Tables.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
		d, err := local.New(root)
		return asking{&watched{d, func(now, name string) error {
			if hit, err := path.Match(pattern, name); now != op || !hit {
				return err
			}
			return errBoom
		}}}, err
	}
	return o
}

// TestCheckpointCannotBeWritten: the run fails, names the folder and what to do,
// and leaves nothing that is half written. What it had read by then is resumed
// from.
func TestCheckpointCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		object string // a folder stands in its place
		kept   int
	}{
		"the header":             {"header", 0},
		"the first rows":         {"0000000-rows", 0},
		"the first record":       {"0000000-record", 0},
		"the rows of the third":  {"0000002-rows", 2},
		"the record of the last": {"0000003-record", 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			o := r.o
			var once sync.Once
			o.At = func(p string) {
				if p == "planned" {
					once.Do(func() {
						folder := r.path("state/checkpoint/" + account.CheckpointKey(r.daily(days()), "form1"))
						if err := os.MkdirAll(filepath.Join(folder, c.object), 0o700); err != nil {
							t.Error(err)
						}
					})
				}
			}
			_, err := pipelines.Run(t.Context(), r.daily(days()), o)
			failed := new(checkpoint.StateError)
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), "the state in "+r.path("state")) || !strings.Contains(err.Error(), "--state") {
				t.Errorf("error %v", err)
			}
			for _, at := range r.checkpoints(c.object) {
				if err := os.Remove(at); err != nil {
					t.Fatal(err)
				}
			}
			_, report := r.asked(r.daily(days()))
			if report.Forms[0].Kept != c.kept {
				t.Errorf("%d windows were kept", report.Forms[0].Kept)
			}
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}

// TestOutputFailsAndReadingIsKept: whatever fails at an output before its commit
// is recorded, the only output's results are not asked for again.
func TestOutputFailsAndReadingIsKept(t *testing.T) {
	for name, c := range map[string]struct{ op, pattern string }{
		"the first part cannot be staged": {"stage", "dt=2026-01-01/*"},
		"the last part cannot be staged":  {"stage", "dt=2026-01-04/*"},
		"an id set cannot be written":     {"put", "_ids/*"},
		"the commit is not recorded":      {"put", ".formetl/intent"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			_, err := pipelines.Run(t.Context(), r.daily(days()), r.failing(c.op, c.pattern))
			if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "/days/: ") {
				t.Errorf("error %v", err)
			}
			asked, report := r.askedUntidy(r.daily(days()))
			if f := report.Forms[0]; len(asked) != 0 || f.Kept != 4 || f.Requests.Results != 0 {
				t.Errorf("asked for %v, report %+v", asked, f)
			}
			r.cleaned()
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}

// cleaned does what the log says where something could not be tidied up.
func (r *resumed) cleaned() {
	r.t.Helper()
	if _, err := maintain.Clean(r.t.Context(), r.daily(days()), r.o.Options, load.CleanOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.checkTidy()
}

// TestOldStateCannotBeUsed: what lies at the destination cannot be looked at. The run fails and names the place, and the next one has what was
// read before.
func TestOldStateCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct{ op, pattern string }{
		"the record of a commit is not given": {op: "get", pattern: ".formetl/intent"},
		"the manifest cannot be read":         {op: "get", pattern: load.ManifestName},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			r.stopAt(r.daily(days()), "read", 2)
			_, err := pipelines.Run(t.Context(), r.daily(days()), r.failing(c.op, c.pattern))
			if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "/days/") {
				t.Errorf("error %v", err)
			}
			report, err := pipelines.Run(t.Context(), r.daily(days()), r.o)
			if err != nil || report.Forms[0].Kept != 2 {
				t.Fatalf("%v; report %+v", err, report.Forms[0])
			}
			r.cleaned()
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}

// reseal writes a file of the checkpoint with other JSON and the checksum that
// belongs to it.
func (r *declaredRun) reseal(name string, change func(map[string]any)) {
	r.t.Helper()
	for _, file := range r.checkpoints(name) {
		data, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		_, body, _ := bytes.Cut(data, []byte(" "))
		all := map[string]any{}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		if err := decoder.Decode(&all); err != nil {
			r.t.Fatal(err)
		}
		change(all)
		if body, err = json.Marshal(all); err != nil {
			r.t.Fatal(err)
		}
		data = append(fmt.Appendf(nil, "%08x ", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))), body...)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestHeaderOfNoUse: the header is whole, and what it says does not fit. All is
// read again, nothing of that run is left, and the log says so.
func TestHeaderOfNoUse(t *testing.T) {
	for name, c := range map[string]struct {
		key    string
		value  any
		reason string
	}{
		"another version":        {"version", 2, "its version is 2"},
		"another fingerprint":    {"fingerprint", "x", "the definition has changed since"},
		"another base":           {"bases", map[string]string{}, "has changed since"},
		"columns of no type":     {"inferred", []map[string]string{{"name": "a", "type": "colour", "from": "item:1"}}, "column 1"},
		"columns of one name":    {"inferred", []map[string]string{{"name": "a", "type": "string", "from": "item:1"}, {"name": "a", "type": "string", "from": "item:2"}}, ""},
		"something of its kinds": {"counts", "many", "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			def := func() *definition.Definition {
				d := r.daily(days())
				d.File = r.path("e2e.yaml")
				return d
			}
			if name == "another base" { // there is one
				r.asked(def())
				_ = r.form.Finish(8, extracttest.Wall("2026-01-04 15:00:00"))
			}
			r.stopAt(def(), "read", 2)
			r.reseal("header", func(h map[string]any) { h[c.key] = c.value })
			var log bytes.Buffer
			r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			asked, report := r.asked(def())
			told := strings.Contains(log.String(), "the checkpoint of an earlier run is discarded") && strings.Contains(log.String(), c.reason)
			if len(asked) != 4 || report.Forms[0].Continued != "" || !told && c.key != "version" && c.key != "counts" {
				t.Errorf("asked for %v, report %+v\n%s", asked, report.Forms[0], &log)
			}
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}

// TestRecordOfNoUse: a record is whole and does not agree with itself or with
// the windows. Its window alone is read again.
func TestRecordOfNoUse(t *testing.T) {
	within := func(r map[string]any, key string) map[string]any { return r[key].(map[string]any) }
	for name, damage := range map[string]func(map[string]any){
		"no window":          func(r map[string]any) { delete(r, "window") },
		"another window":     func(r map[string]any) { within(r, "window")["to"] = "2026-01-02 12:00:00" },
		"no ids":             func(r map[string]any) { delete(r, "ids") },
		"ids of no kind":     func(r map[string]any) { r["ids"] = "AAAA" },
		"passing":            func(r map[string]any) { r["passing"] = true },
		"not from the first": func(r map[string]any) { r["after"] = 1 },
		"not to the end":     func(r map[string]any) { r["through"] = 0 },
		"fewer rows":         func(r map[string]any) { within(r, "stats")["rows"] = 1 },
		"more rows":          func(r map[string]any) { within(r, "stats")["rows"] = 3 },
		"no streams":         func(r map[string]any) { delete(r, "streams") },
		"a longer stream":    func(r map[string]any) { r["streams"].([]any)[0].(map[string]any)["bytes"] = 1 << 40 },
		"a negative stream":  func(r map[string]any) { r["streams"].([]any)[0].(map[string]any)["bytes"] = -1 },
		"another kind":       func(r map[string]any) { r["streams"] = "none" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			r.stopAt(r.daily(days()), "read", 2)
			r.reseal("0000000-record", damage)
			asked, report := r.asked(r.daily(days()))
			if want := []string{"2026-01-01", "2026-01-03", "2026-01-04"}; !slices.Equal(asked, want) || report.Forms[0].Kept != 1 {
				t.Errorf("asked for %v, kept %d", asked, report.Forms[0].Kept)
			}
			r.checkDataset("days", pipelinestest.Truth(r.form, inJanuary))
		})
	}
}

// TestStagedIsSwept: what the run of a checkpoint was staging when it was killed
// is removed by the one that resumes from it, unless another scope's lease says
// that it is at it still. That it cannot be removed fails nothing.
func TestStagedIsSwept(t *testing.T) {
	for name, c := range map[string]struct {
		alive, full bool
		open        func(*local.Destination) load.Destination
		left        int
	}{
		"it died":            {left: 2}, // those of another run
		"it died, --full":    {full: true, left: 2},
		"it is alive":        {alive: true, left: 6},
		"it cannot be swept": {open: func(d *local.Destination) load.Destination { return asking{&watched{d, refusing("remove")}} }, left: 6},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeclared(t)
			def := func() *definition.Definition {
				return r.daily(file(), definition.Output{Path: "./", Format: "csv", Partition: definition.PartitionDay})
			}
			now := r.o
			stopped := r.stopAt(def(), "read", 2)
			part := load.PartName(load.PartKey{DT: "2026-01-03", From: extracttest.Wall("2026-01-03"), To: extracttest.Wall("2026-01-04"), Generation: 1, Extension: ".csv"})
			before := r.leftovers()
			for _, object := range []string{part, "form1.ndjson"} {
				r.leave(".", stopped.RunID, object)
			}
			mine := r.leftovers() - before
			r.leave(".", "20260101T000000Z-0000aaaa", part)
			others := r.leftovers() - before - mine
			d, err := local.New(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			if c.alive {
				lease, err := d.Acquire(t.Context(), "other.csv", load.Holder{RunID: stopped.RunID})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = lease.Release(context.WithoutCancel(t.Context())) })
			}
			if now.Full = c.full; c.open != nil {
				now.Tables.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
					d, err := local.New(root)
					return c.open(d), err
				}
			}
			report, err := pipelines.Run(t.Context(), def(), now)
			if err != nil || !c.full && report.Forms[0].Kept != 2 {
				t.Fatalf("%v; report %+v", err, report.Forms[0])
			}
			want := others
			if c.left > 2 {
				want += mine
			}
			if n := r.leftovers(); n != want || mine == 0 || others == 0 {
				t.Errorf("%d are left over, want %d of %d and %d", n, want, mine, others)
			}
		})
	}
}

func refusing(what string) func(op, name string) error {
	return func(op, _ string) error {
		if op == what {
			return errBoom
		}
		return nil
	}
}

// leftovers counts what runs left in the world's folder.
func (r *resumed) leftovers() int {
	r.t.Helper()
	d, err := local.New(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	left, err := d.Leftovers(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return len(left)
}

// TestKilledAfterEveryOperation: from one operation on nothing that is done at
// any destination has an effect, as if the process were gone. The next run
// finishes what was recorded, asks for no result that was read and is not
// committed, and all outputs hold what there is.
func TestKilledAfterEveryOperation(t *testing.T) {
	outs := func() []definition.Output { return []definition.Output{file(), days(), months()} }
	for n := 1; ; n++ {
		r := newDeclared(t)
		var mu sync.Mutex
		done, recorded := 0, false
		o := watching(func(_, op, name string) error {
			mu.Lock()
			defer mu.Unlock()
			if done++; done >= n {
				return errBoom
			}
			recorded = recorded || op == "put" && strings.HasPrefix(name, ".formetl/intent")
			return nil
		})
		o.Now = r.o.Now
		report, err := pipelines.Run(t.Context(), r.daily(outs()...), o)
		if err == nil {
			if n < 30 {
				t.Errorf("the run does %d operations", n)
			}
			return
		}
		if !errors.Is(err, errBoom) || len(report.Forms) != 1 {
			t.Fatalf("operation %d: %v", n, err)
		}
		if recorded != (len(r.checkpoints("header")) == 0) {
			t.Errorf("operation %d: a commit is recorded: %t, and the checkpoints are %v", n, recorded, r.checkpoints("header"))
		}
		asked, report := r.askedUntidy(r.daily(outs()...))
		if f := report.Forms[0]; !recorded && len(asked) > 0 || !f.Verified.Match {
			t.Errorf("operation %d: asked for %v, report %+v", n, asked, f)
		}
		r.checkAll(outs(), inJanuary)
		if _, err := maintain.Clean(t.Context(), r.daily(outs()...), r.o.Options, load.CleanOptions{}); err != nil {
			t.Fatal(err)
		}
		r.checkTidy()
		r.checkAll(outs(), inJanuary)
		if t.Failed() {
			t.Fatalf("killed at operation %d", n)
		}
	}
}
