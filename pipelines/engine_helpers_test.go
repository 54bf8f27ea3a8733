package pipelines_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// fourDays is a form with two results on each of four days, two of next month
// and one without a date.
func fourDays() *formservice.Form {
	return formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, []formservice.Result{
		pipelinestest.Result(1, "2026-01-01 09:00:00", "a"), pipelinestest.Result(2, "2026-01-02 09:00:00", "b"),
		pipelinestest.Result(3, "2026-01-03 09:00:00", "c"), pipelinestest.Result(4, "2026-01-04 09:00:00", "d"),
		pipelinestest.Result(5, "2026-01-01 10:00:00", "e"), pipelinestest.Result(6, "2026-01-02 10:00:00", "f"),
		pipelinestest.Result(7, "2026-01-03 10:00:00", "g"), pipelinestest.Result(8, "2026-01-04 10:00:00", "h"),
		pipelinestest.Result(10, "2026-02-10 10:00:00", "i"), pipelinestest.Result(11, "2026-02-11 10:00:00", "j"),
		pipelinestest.Result(50, "", "undated"),
	})
}

// inJanuary passes the results of the four days.
func inJanuary(r formservice.Result) bool {
	return strings.HasPrefix(pipelinestest.Date(r), "2026-01-0")
}

// daily reads January's four days window by window, one after the other.
func (w *world) daily(outputs ...definition.Output) *definition.Definition {
	def := w.definition(outputs...)
	def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-01-05")
	def.Extract.Window = extract.Period{Days: 1}
	def.Source.Requests.Concurrency = 1
	return def
}

func fileAndDays() []definition.Output {
	return []definition.Output{
		{Path: "form1.ndjson", Format: "ndjson"},
		{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay},
	}
}

// once calls do before the first request that passes when.
func once(when func(formservice.Request) bool, do func()) func(formservice.Request) {
	var done sync.Once
	return func(r formservice.Request) {
		if when(r) {
			done.Do(do)
		}
	}
}

// reads tells whether a request reads results from a day on.
func reads(day string) func(formservice.Request) bool {
	return func(r formservice.Request) bool {
		return r.Transaction == formservice.TransactionResults && strings.Contains(r.Query, "fs_min_date="+day)
	}
}

// asksWhatChanged tells whether a request is of the feed of changes.
func asksWhatChanged(r formservice.Request) bool { return strings.Contains(r.Query, "fs_sort=") }

// feedRequests counts the requests of the feed of changes in a service's log.
func feedRequests(service *formservice.Server) (n int) {
	for _, r := range service.Log() {
		if asksWhatChanged(r) {
			n++
		}
	}
	return n
}

// tree is every file below a folder with its content, but for the state folder,
// where a run that ended early leaves its checkpoint.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path == filepath.Join(dir, "state") {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+string(filepath.Separator))] = string(data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

func sameTree(t testing.TB, before, after map[string]string) {
	t.Helper()
	for name, data := range before {
		if got, ok := after[name]; !ok {
			t.Errorf("%s is gone", name)
		} else if got != data {
			t.Errorf("%s changed", name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

// dataOnly leaves out what names a run.
func dataOnly(files map[string]string) map[string]string {
	data := map[string]string{}
	for name, content := range files {
		if !strings.HasPrefix(name, "_") && !strings.Contains(name, "/_") && !strings.HasSuffix(name, ".manifest.json") {
			data[name] = content
		}
	}
	return data
}

// watched is a destination that tells a test what is done to it, and fails
// where the test says so.
type watched struct {
	*local.Destination
	before func(op, name string) error
}

func (w *watched) Stage(ctx context.Context, run, name string) (load.Upload, error) {
	if err := w.before("stage", name); err != nil {
		return nil, err
	}
	return w.Destination.Stage(ctx, run, name)
}

func (w *watched) Commit(ctx context.Context, p load.Prepared) error {
	if err := w.before("commit", p.Name); err != nil {
		return err
	}
	return w.Destination.Commit(ctx, p)
}

func (w *watched) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := w.before("put", name); err != nil {
		return err
	}
	return w.Destination.Put(ctx, name, data, version)
}

func (w *watched) Delete(ctx context.Context, name string) error {
	if err := w.before("delete", name); err != nil {
		return err
	}
	return w.Destination.Delete(ctx, name)
}

// watching are options whose destinations call before with their root, the
// operation and the object's name.
func watching(before func(root, op, name string) error) pipelines.Options {
	o := options()
	o.BuiltIn.Open = func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
		d, err := local.New(root)
		if err != nil {
			return nil, err
		}
		return &watched{d, func(op, name string) error { return before(root, op, name) }}, nil
	}
	return o
}

// zoned is a clock that stands at a wall-clock time of the world's zone.
func zoned(t testing.TB, w *world, s string) func() time.Time {
	t.Helper()
	wall := extracttest.Wall(s)
	now := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, w.source.Zone)
	return func() time.Time { return now }
}

// between is the range of the flags --from and --to; a zero time is no bound.
func between(from, to time.Time) (r definition.Range) {
	if !from.IsZero() {
		r.From = definition.At(from)
	}
	if !to.IsZero() {
		r.To = definition.At(to)
	}
	return r
}
