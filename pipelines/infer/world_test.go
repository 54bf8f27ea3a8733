package infer_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/load/parquetout"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/schemas"
)

const testKey = "infer-key"

// world is a real service over HTTP and a folder for what runs write.
type world struct {
	t       testing.TB
	service *formservice.Server
	url     string
	dir     string
	zone    *time.Location
}

func newWorld(t testing.TB, forms ...*formservice.Form) *world {
	t.Helper()
	service := &formservice.Server{Key: testKey, Forms: forms}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	zone, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, service: service, url: server.URL, dir: t.TempDir(), zone: zone}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// definition takes every result of form1 to the outputs, whose paths are
// relative to the world's folder.
func (w *world) definition(outputs ...definition.Output) *definition.Definition {
	for i, o := range outputs {
		outputs[i].Path = w.path(o.Path)
		if strings.HasSuffix(o.Path, "/") {
			outputs[i].Path += "/"
		}
		if o.Partition == "" {
			outputs[i].Partition = definition.PartitionNone
		}
	}
	return &definition.Definition{
		Name: "infer", Forms: []string{"form1"}, State: w.path("state"), Outputs: outputs,
		Source: definition.Source{
			BaseURL: w.url, Account: formservice.DefaultAccount, Key: transport.NewSecret(testKey), Zone: w.zone,
			Requests: definition.Requests{Concurrency: 4, Timeout: 20 * time.Second, Retries: 30},
		},
		Extract: definition.Extract{Settle: time.Minute, Verify: true},
	}
}

func options() account.Options {
	return account.Options{
		Tables: output.Tables{
			Formats: []load.Format{csvout.Format(), jsonout.NDJSON(), parquetout.Format()},
			Open: func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
				return local.New(root)
			},
		},
		Client: account.ClientOptions{BackoffMin: time.Millisecond, BackoffMax: 5 * time.Millisecond},
	}
}

func (w *world) run(def *definition.Definition) {
	w.t.Helper()
	if _, err := pipelines.Run(w.t.Context(), def, pipelines.Options{Options: options()}); err != nil {
		w.t.Fatalf("run: %v", err)
	}
}

func changeLines(changes []schemas.Change) string {
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = fmt.Sprintf("%s %s %s", c.Kind, c.From, c.Column)
		if c.Key != "" {
			list[i] += " " + c.Key
		}
		list[i] += fmt.Sprintf(" [%s] [%s]", c.Was, c.Is)
		if c.Label != "" {
			list[i] += " " + c.Label
		}
		if c.Count > 0 {
			list[i] += fmt.Sprint(" x", c.Count)
		}
		if c.Breaking {
			list[i] += " breaks"
		}
	}
	return strings.Join(list, "\n")
}

// at is a wall-clock time such as "2026-01-02" or "2026-01-02 10:00:00".
func at(t testing.TB, s string) time.Time {
	t.Helper()
	if len(s) == len("2006-01-02") {
		s += " 00:00:00"
	}
	when, err := time.Parse("2006-01-02 15:04:05", s)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// result is a result finished at a time ("" for one without a date), with one answer.
func result(id int64, finished, answer string) formservice.Result {
	r := formservice.Result{
		ID: id, Metas: []formservice.Meta{{ID: "result_status", Value: "Complete"}},
		Items: []formservice.Answer{{ID: "1", Type: "text", Index: 1, Values: []string{answer}}},
	}
	if finished != "" {
		r.Metas = append(r.Metas, formservice.Meta{ID: "date_finish", Value: finished})
	}
	return r
}

// truth are the results of a form that keep passes, by ascending id.
func truth(f *formservice.Form, keep func(formservice.Result) bool) []formservice.Result {
	var rs []formservice.Result
	f.Each(func(r formservice.Result) bool {
		if keep == nil || keep(r) {
			rs = append(rs, r.Clone())
		}
		return true
	})
	return rs
}

// date is the wall clock that the service filters a result by.
func date(r formservice.Result) string {
	if d, ok := r.Meta("date_finish"); ok && d != "" {
		return d
	}
	d, _ := r.Meta("date_start")
	return d
}

func day(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return t
}
