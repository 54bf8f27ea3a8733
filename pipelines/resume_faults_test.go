//go:build resumeold

package pipelines_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
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

// TestJournalCannotBeWritten: the run fails and names the place; what is
// recorded by then is kept, and nothing else.
func TestJournalCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		op, pattern string
		kept        int
	}{
		"it cannot be opened":     {"put", ".formetl/journal", 0},
		"a part is not recorded":  {"put", ".formetl/journal-*/000002", 2},
		"the first part is not":   {"put", ".formetl/journal-*/000000", 0},
		"a part cannot be staged": {"stage", "dt=2026-01-04/*", 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			_, err := pipelines.Run(t.Context(), r.daily(days()), r.failing(c.op, c.pattern))
			if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "/days/: ") || r.staged() != c.kept {
				t.Errorf("error %v; %d parts are staged", err, r.staged())
			}
			r.leaveHost()
			_, report := r.asked(r.daily(days()))
			if report.Forms[0].Kept != c.kept {
				t.Errorf("%d windows were kept", report.Forms[0].Kept)
			}
			r.checkDataset("days", truth(r.form, inJanuary))
		})
	}
}

// cleaned does what the log says where something could not be tidied up.
func (r *resumed) cleaned() {
	r.t.Helper()
	if _, err := pipelines.Clean(r.t.Context(), r.daily(days()), r.o, load.CleanOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.checkTidy()
}

// TestJournalCannotBeUsed: what a run left cannot be looked at, taken over or
// discarded. The run fails and names the place, and the next one goes on with
// what is still there.
func TestJournalCannotBeUsed(t *testing.T) {
	gone := func(r *resumed) { r.damaged("staged-") }
	for name, c := range map[string]struct {
		op, pattern string
		before      func(*resumed)
		full        bool
		kept        int
	}{
		"its header cannot be read":               {op: "get", pattern: ".formetl/journal", kept: 2},
		"its records cannot be listed":            {op: "list", pattern: ".formetl/journal-*/", kept: 2},
		"a record cannot be read":                 {op: "get", pattern: ".formetl/journal-*/000001", kept: 2},
		"a part cannot be looked at":              {op: "check", pattern: "*/*", kept: 2},
		"a part cannot be dropped":                {op: "abort", pattern: "*/*", before: gone},
		"a record cannot be forgotten":            {op: "delete", pattern: ".formetl/journal-*/*", before: gone},
		"it is broken and cannot be removed":      {op: "delete", pattern: ".formetl/journal", before: func(r *resumed) { r.damage("journal", "{") }},
		"the commit's record cannot be read":      {op: "get", pattern: ".formetl/intent", kept: 2},
		"the manifest cannot be read":             {op: "get", pattern: load.ManifestName, kept: 2},
		"its parts cannot be discarded":           {op: "abort", pattern: "*/*", full: true, kept: 2},
		"it cannot be closed when it is given up": {op: "delete", pattern: ".formetl/journal*", full: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			r.stopAt(r.daily(days()), "recorded", 2)
			if c.before != nil {
				c.before(r)
			}
			o := r.failing(c.op, c.pattern)
			o.Full = c.full
			_, err := pipelines.Run(t.Context(), r.daily(days()), o)
			if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "/days/") {
				t.Errorf("error %v", err)
			}
			report, err := pipelines.Run(t.Context(), r.daily(days()), r.o)
			if err != nil || report.Forms[0].Kept != c.kept {
				t.Fatalf("%v; report %+v", err, report.Forms[0])
			}
			r.cleaned()
			r.checkDataset("days", truth(r.form, inJanuary))
		})
	}
}

// TestFrozenCannotBeUsed: the header of the journal can be read, and what its
// run had decided cannot, or does not fit together. All is read again, and
// nothing of that run is left.
func TestFrozenCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct{ key, value string }{
		"no windows":           {"windows", `[]`},
		"a window of no group": {"windows", `[{"to":"2026-01-05 00:00:00","count":1,"group":-1}]`},
		"windows with a gap":   {"windows", `[{"to":"2026-01-02 00:00:00","count":1,"group":0},{"from":"2026-01-03 00:00:00","to":"2026-01-05 00:00:00","count":1,"group":0}]`},
		"another range":        {"range", `{"from":"2026-01-01 00:00:00","to":"2026-01-04 00:00:00"}`},
		"another kind":         {"windows", `1`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			r.stopAt(r.daily(days()), "recorded", 2)
			header := filepath.Join(r.path("days"), load.ControlFolder, load.JournalName)
			change(t, header, func(h *load.JournalHeader) {
				body := map[string]json.RawMessage{}
				err := json.Unmarshal(h.Body, &body)
				body[c.key] = json.RawMessage(c.value)
				if h.Body, _ = json.Marshal(body); err != nil {
					t.Fatal(err)
				}
			})
			var log bytes.Buffer
			r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			asked, report := r.asked(r.daily(days()))
			if len(asked) != 4 || report.Forms[0].Continued != "" || !strings.Contains(log.String(), "is discarded") {
				t.Errorf("asked for %v, report %+v\n%s", asked, report.Forms[0], &log)
			}
			r.checkDataset("days", truth(r.form, inJanuary))
		})
	}
}

// TestRecordIsOfNoUse: a record does not fit the plan or itself. Its part alone
// is read again.
func TestRecordIsOfNoUse(t *testing.T) {
	body := func(key, value string) func(*load.JournalRecord) {
		return func(r *load.JournalRecord) {
			all := map[string]json.RawMessage{}
			_ = json.Unmarshal(r.Body, &all) // an empty one shows below
			all[key] = json.RawMessage(value)
			r.Body, _ = json.Marshal(all)
		}
	}
	for name, damage := range map[string]func(*load.JournalRecord){
		"no windows":     body("windows", `[]`),
		"another window": body("windows", `[{"from":"2026-01-02 00:00:00","to":"2026-01-03 00:00:00"}]`),
		"no ids":         body("windows", `[{"from":"2026-01-01 00:00:00","to":"2026-01-02 00:00:00"}]`),
		"undated":        body("undated", `true`),
		"another kind":   func(r *load.JournalRecord) { r.Body = json.RawMessage(`[]`) },
		"fewer rows":     func(r *load.JournalRecord) { r.Parts[0].Part.Rows-- },
		"no part":        func(r *load.JournalRecord) { r.Parts = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			r.stopAt(r.daily(days()), "recorded", 2)
			change(t, r.records()[0], damage)
			asked, report := r.asked(r.daily(days()))
			if want := []string{"2026-01-01", "2026-01-03", "2026-01-04"}; !slices.Equal(asked, want) || report.Forms[0].Kept != 1 {
				t.Errorf("asked for %v, kept %d", asked, report.Forms[0].Kept)
			}
			r.checkDataset("days", truth(r.form, inJanuary))
		})
	}
}

// bare is a destination that cannot tell what is left over.
type bare struct {
	load.Destination
	load.Leaser
}

// TestSweep: what a run was staging when it ended is removed by the one that
// goes on with it, unless another scope's lease says that it is at it still.
// That it cannot be removed fails nothing.
func TestSweep(t *testing.T) {
	const run = "20260215T180000Z-00000001"
	staging := load.PartName(load.PartKey{DT: "2026-01-03", From: at(t, "2026-01-03"), To: at(t, "2026-01-04"), Generation: 1, Extension: ".ndjson"})
	for name, c := range map[string]struct {
		alive bool
		open  func(*local.Destination) load.Destination
		left  int
	}{
		"it died":     {},
		"it is alive": {alive: true, left: 1},
		"no sweeper":  {open: func(d *local.Destination) load.Destination { return bare{d, d} }, left: 1},
		"no removal": {open: func(d *local.Destination) load.Destination {
			return asking{&watched{d, func(op, _ string) error {
				if op == "remove" {
					return errBoom
				}
				return nil
			}}}
		}, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumed(t)
			now := r.o
			r.o.RunID = run
			r.stopAt(r.daily(days()), "recorded", 2)
			r.leave("days", run, staging)
			d, err := local.New(r.path("days"))
			if err != nil {
				t.Fatal(err)
			}
			release := func() error { return nil }
			if c.alive {
				lease, err := d.Acquire(t.Context(), "other.csv", load.Holder{RunID: run})
				if err != nil {
					t.Fatal(err)
				}
				release = func() error { return lease.Release(t.Context()) }
			}
			if c.open != nil {
				now.Tables.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
					d, err := local.New(root)
					return c.open(d), err
				}
			}
			report, err := pipelines.Run(t.Context(), r.daily(days()), now)
			if err != nil || report.Forms[0].Kept != 2 {
				t.Fatalf("%v; report %+v", err, report.Forms[0])
			}
			left, err := d.Leftovers(t.Context())
			if err != nil || len(left) != c.left {
				t.Errorf("left over are %+v, %v", left, err)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			r.cleaned()
			r.checkDataset("days", truth(r.form, inJanuary))
		})
	}
}
